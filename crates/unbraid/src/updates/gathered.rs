//! The reads of the flat view: those that may end a large event are gathered, so that many small ones share a job.

use std::{
    future::poll_fn,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;

use super::{decoder::Reading, yielding::YieldingSource};
use crate::reader::{
    Timer,
    job_pacer::{GATHER_BYTES, JobPacer},
};

/// A source, and the reads of it that are gathered.
pub(super) struct GatheredReads<S: Stream> {
    source: YieldingSource<S>,
    gathered: Vec<u8>,
    /// What arrived after the gathered bytes and is not one of them: a read that is too long to be copied, or the end.
    next: Option<Option<S::Item>>,
    /// Whether the last read was empty.
    was_empty: bool,
    pacer: JobPacer,
    timer: Timer,
}

impl<S, B, E> GatheredReads<S>
where
    S: Stream<Item = Result<B, E>> + Unpin,
    B: AsRef<[u8]>,
{
    pub(super) fn new(source: YieldingSource<S>) -> Self {
        Self {
            source,
            gathered: Vec::new(),
            next: None,
            was_empty: false,
            pacer: JobPacer::default(),
            timer: Timer::default(),
        }
    }

    /// Keeps the rest of a read, to be decoded with the reads that follow it; returns false if it is long enough already.
    pub(super) fn gather(&mut self, reading: &Reading<B>) -> bool {
        let rest = reading.rest();
        let gathers = !reading.is_gathered() && !rest.is_empty() && rest.len() < GATHER_BYTES;
        if gathers {
            self.gathered.extend_from_slice(rest);
        }
        gathers
    }

    /// Notes that a large event, or a part of it, was decoded.
    pub(super) fn record_job(&mut self) {
        self.pacer.record_job();
    }

    /// The next read, or several at once.
    pub(super) async fn next(&mut self) -> Option<Result<Reading<B>, E>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Reading<B>, E>>> {
        if !self.gathered.is_empty() {
            ready!(self.poll_gather(cx));
            let gathered = Reading::gathered(mem::take(&mut self.gathered));
            return Poll::Ready(Some(Ok(gathered)));
        }
        let next = match self.next.take() {
            Some(next) => next,
            None => ready!(self.poll_source(cx)),
        };
        Poll::Ready(next.map(|read| read.map(Reading::new)))
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.source).poll_next(cx)
    }

    /// Adds what the source has; ready once the gathered bytes are to be decoded.
    fn poll_gather(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.next.is_none() && self.gathered.len() < GATHER_BYTES {
            match self.poll_source(cx) {
                Poll::Ready(Some(Ok(read))) if read.as_ref().len() < GATHER_BYTES => {
                    self.was_empty = read.as_ref().is_empty();
                    self.gathered.extend_from_slice(read.as_ref());
                }
                Poll::Ready(next) => self.next = Some(next),
                Poll::Pending if !self.source.has_yielded() => return self.poll_pause(cx),
                // No time passes between empty reads if the runtime's clock is paused, so they must not delay a complete
                // event.
                Poll::Pending if self.was_empty || self.pacer.next_job().is_none() => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// The source is pending. The gathered bytes wait only if a job has just ended.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.pacer.next_job() {
            Some(until) => self.timer.poll_if_available(cx, until),
            None => Poll::Ready(()),
        }
    }
}
