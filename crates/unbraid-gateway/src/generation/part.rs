//! One upstream body of a generation, and the request for it.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture};
use tokio::time::Instant;
use unbraid_core::{StreamError, TransportError};
use unbraid_log::RecordBuilder;

use super::tracker::{Identity, Role, Tracker};
use crate::upstream::ByteStream;

/// How much is read after the end mark, and for how long, so that the connection can be reused.
const DRAIN_BYTES: usize = 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// Where the bytes of a part come from.
pub(crate) enum PartSource {
    /// The request has not been answered.
    Waiting(BoxFuture<'static, Result<ByteStream, StreamError>>),
    Open(ByteStream),
    Closed,
}

/// One body.
pub(super) struct Part {
    source: PartSource,
    pub(super) tracker: Tracker,
    /// When the body was last read, or its head arrived.
    last_byte: Instant,
}

impl Part {
    pub(super) fn new(source: PartSource, role: Role, max_choices: u32) -> Self {
        Self {
            source,
            tracker: Tracker::new(role, max_choices),
            last_byte: Instant::now(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.source, PartSource::Closed)
    }

    /// Notes that bytes have arrived.
    pub(super) fn touch(&mut self, now: Instant) {
        self.last_byte = now;
    }

    /// Since when the body is silent; `None` if it has ended or its request was not answered. Heads have a timeout of their
    /// own, and a request that waits for its turn is not silent.
    pub(super) fn silent_since(&self) -> Option<Instant> {
        matches!(self.source, PartSource::Open(_)).then_some(self.last_byte)
    }

    /// Since when a silence may end the choices of the body.
    pub(super) fn finished_since(&self) -> Option<Instant> {
        self.tracker
            .has_finished_choices()
            .then_some(self.last_byte)
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.source = PartSource::Closed;
    }

    /// Reads what is ready, up to a bound. Ready with the number of bytes if anything has happened.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        identity: &mut Identity,
        log: &mut RecordBuilder,
    ) -> Poll<usize> {
        let mut read = 0;
        let mut has_changed = false;
        while read < max {
            match self.poll_source(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    has_changed = true;
                    // An empty read counts, too: a body that is always ready with nothing must not hold the thread.
                    read += bytes.len().max(64);
                    self.tracker.feed(&bytes, identity, log);
                    if self.tracker.closed().is_some() {
                        self.finish_reading();
                        return Poll::Ready(read);
                    }
                }
                Poll::Ready(end) => {
                    self.fail(end.and_then(Result::err), identity, log);
                    return Poll::Ready(read);
                }
                Poll::Pending if has_changed => return Poll::Ready(read),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(read)
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        loop {
            match &mut self.source {
                PartSource::Closed => return Poll::Pending,
                PartSource::Waiting(answer) => match answer.as_mut().poll(cx) {
                    Poll::Ready(Ok(body)) => {
                        self.source = PartSource::Open(body);
                        self.last_byte = Instant::now();
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Pending => return Poll::Pending,
                },
                PartSource::Open(body) => {
                    let offset = self.tracker.bytes();
                    let transport =
                        |error| StreamError::Transport(TransportError::new(offset, error).into());
                    let read = body.poll_next_unpin(cx);
                    return read.map(|read| read.map(|read| read.map_err(transport)));
                }
            }
        }
    }

    /// Ends the body: with its end, or with an error.
    pub(super) fn fail(
        &mut self,
        error: Option<StreamError>,
        identity: &mut Identity,
        log: &mut RecordBuilder,
    ) {
        self.close();
        self.tracker.open_single();
        self.tracker.finish(error, identity, log);
    }

    /// The stream has closed. Its connection can be reused if the body has ended cleanly.
    fn finish_reading(&mut self) {
        let source = std::mem::replace(&mut self.source, PartSource::Closed);
        if let (PartSource::Open(body), true) = (source, self.tracker.is_done()) {
            tokio::spawn(tokio::time::timeout(DRAIN_TIME, drain(body)));
        }
    }
}

async fn drain(mut body: ByteStream) {
    let mut read = 0;
    while let Some(Ok(bytes)) = body.next().await {
        read += bytes.len();
        if read > DRAIN_BYTES {
            return;
        }
    }
}
