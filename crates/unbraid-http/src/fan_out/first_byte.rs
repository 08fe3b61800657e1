//! The wait for the first byte of each body of a fan-out.
//!
//! The clock of a stream's reader begins with the completion, and a request may be queued behind others for longer than the
//! timeout. So this timeout counts from the head of the answer instead.

use std::{future, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::time::timeout;
use unbraid::{BoxError, Builder, TimedOut, Timeout};

use crate::{client::Timeouts, error::HttpError};

/// The settings of a reader whose source waits for its turn: it leaves the first byte to [`within`].
pub(super) fn left_to_source(settings: Builder, timeouts: Timeouts) -> Builder {
    match timeouts.first_byte {
        Some(_) => settings.first_byte_timeout(Duration::MAX),
        None => settings,
    }
}

/// The same body; it fails if no byte comes in time.
pub(super) fn within<S>(
    body: S,
    timeouts: Timeouts,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send
where
    S: Stream<Item = Result<Bytes, BoxError>> + Send,
{
    let begun = async move {
        let bytes = body.try_filter(|bytes| future::ready(!bytes.is_empty()));
        let mut bytes = Box::pin(bytes);
        let first = match timeouts.first_byte {
            None => bytes.next().await,
            Some(after) => {
                let passed = TimedOut {
                    timeout: Timeout::FirstByte,
                    after,
                };
                let first = timeout(after, bytes.next()).await;
                first.map_err(|_| HttpError::TimedOut(passed))?
            }
        };
        Ok::<_, BoxError>(stream::iter(first).chain(bytes))
    };
    stream::once(begun).try_flatten()
}
