//! Bodies that are not waited for once the gateway has drained.

use std::task::Poll;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use unbraid_core::BoxError;

use crate::sync::wake_gate::WakeGate;

/// The gateway has drained.
#[derive(Debug, Error)]
#[error("the gateway has drained")]
pub(super) struct Drained;

/// Fails a body at the end of a drain, so that its client does not take it for complete.
pub(super) fn until_stopped(
    mut body: impl Stream<Item = Result<Bytes, BoxError>> + Send + Unpin + 'static,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + Unpin + 'static {
    let mut stopped = Box::pin(stop.cancelled_owned());
    let mut gate = WakeGate::default();
    let mut is_over = false;
    stream::poll_fn(move |cx| {
        if is_over {
            return Poll::Ready(None);
        }
        let read = body.poll_next_unpin(cx);
        // The gate spares each delta the locks of the token, which all bodies share.
        is_over = read.is_pending() && gate.poll(cx, |cx| stopped.as_mut().poll(cx)).is_ready();
        match is_over {
            true => Poll::Ready(Some(Err(Drained.into()))),
            false => read,
        }
    })
}
