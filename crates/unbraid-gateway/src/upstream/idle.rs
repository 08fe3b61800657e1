//! The timeout of bodies that no generation reads. A generation has a clock of its own.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::{error::Elapsed, timeout};
use unbraid_core::BoxError;

use super::ByteStream;
use crate::api_error::ApiError;

/// Fails a body that is silent for too long.
pub(crate) fn with_idle_timeout(
    body: ByteStream,
    idle: Duration,
) -> impl Stream<Item = Result<Bytes, BoxError>> {
    futures::stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match timeout(idle, body.next()).await {
            Ok(read) => read.map(|read| (read, Some(body))),
            Err(elapsed) => Some((Err(elapsed.into()), None)),
        }
    })
}

/// What a client gets if a body could not be read to its end.
pub(crate) fn read_error(error: &BoxError) -> ApiError {
    if error.is::<Elapsed>() {
        ApiError::UPSTREAM_TIMEOUT
    } else {
        ApiError::UPSTREAM_INVALID
    }
}
