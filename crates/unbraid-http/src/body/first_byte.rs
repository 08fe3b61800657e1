//! The timeout of the first byte of a body.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::{Sleep, sleep};
use unbraid::{BoxError, StreamError, TimedOut};

use super::ByteStream;

/// A body that fails with [`StreamError::TimedOut`] unless its first byte arrives in time.
///
/// The reader of a stream has such a timeout, too. That one counts from the moment at which the reader starts, which in a
/// fan-out is long before the request is sent.
pub(crate) struct FirstByte {
    bytes: ByteStream,
    deadline: Option<Deadline>,
}

struct Deadline {
    timer: Pin<Box<Sleep>>,
    timed_out: TimedOut,
}

impl FirstByte {
    /// Starts the timer, which needs a runtime with a time driver.
    pub(crate) fn new(bytes: ByteStream, timeout: Option<TimedOut>) -> Self {
        let deadline = timeout.map(|timed_out| Deadline {
            timer: Box::pin(sleep(timed_out.after)),
            timed_out,
        });
        Self { bytes, deadline }
    }

    /// Closes the connection. The body ends.
    pub(super) fn close(&mut self) {
        self.bytes = futures::stream::empty().boxed();
        self.deadline = None;
    }
}

impl Stream for FirstByte {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // The body first: bytes that are there count, even if they are polled after the deadline.
        let read = self.bytes.poll_next_unpin(cx);
        let Some(deadline) = &mut self.deadline else {
            return read;
        };
        let silent = match &read {
            Poll::Ready(Some(Ok(bytes))) => bytes.is_empty(),
            Poll::Ready(_) => false,
            Poll::Pending => true,
        };
        if silent && deadline.timer.as_mut().poll(cx).is_pending() {
            return read;
        }
        let timed_out = deadline.timed_out;
        if !silent {
            self.deadline = None;
            return read;
        }
        self.close();
        Poll::Ready(Some(Err(StreamError::TimedOut(timed_out).into())))
    }
}

impl fmt::Debug for FirstByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstByte").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
