//! The wait for the first byte of a body.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::{Sleep, sleep};
use unbraid::{BoxError, StreamError, TimedOut};

use super::Incoming;

/// A body that fails with [`StreamError::TimedOut`] unless its first byte comes in time.
///
/// The reader of a stream has such a timeout, too. That one counts from the moment at which the reader starts, which in a
/// fan-out is long before the request is sent.
pub(crate) struct FirstByte {
    bytes: Incoming,
    wait: Option<Wait>,
}

struct Wait {
    timer: Pin<Box<Sleep>>,
    passed: TimedOut,
}

impl FirstByte {
    /// Starts the timer. It needs a runtime that has timers.
    pub(crate) fn new(bytes: Incoming, wait: Option<TimedOut>) -> Self {
        let wait = wait.map(|passed| Wait {
            timer: Box::pin(sleep(passed.after)),
            passed,
        });
        Self { bytes, wait }
    }
}

impl Stream for FirstByte {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let read = self.bytes.poll_next_unpin(cx);
        let Some(wait) = &mut self.wait else {
            return read;
        };
        let silent = match &read {
            Poll::Ready(Some(Ok(bytes))) => bytes.is_empty(),
            Poll::Ready(_) => false,
            Poll::Pending => true,
        };
        if silent && wait.timer.as_mut().poll(cx).is_pending() {
            return read;
        }
        let passed = wait.passed;
        self.wait = None;
        if !silent {
            return read;
        }
        self.bytes = futures::stream::empty().boxed(); // closes the connection
        Poll::Ready(Some(Err(StreamError::TimedOut(passed).into())))
    }
}

impl fmt::Debug for FirstByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstByte").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
