//! Reads the source: a poll takes whatever is ready, up to a bound.

use std::task::{Context, Poll};

use super::{READ_BYTES, Reader, Wakeup, end::SourceStatus};
use crate::source::{SourceError, SourceItem};

/// What an item counts at least towards [`READ_BYTES`]: a source that is always ready with nothing must not hold the thread.
pub(super) const ITEM_COST: usize = 64;

impl Reader {
    /// Reads whatever is ready, up to a bound, and waits only if nothing is.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        self.pipeline.prefetch();
        self.outbox().prefetch();
        // Commands come first: a source that is always ready must not keep a cancel waiting.
        if let Poll::Ready(commands) = self.control.poll(cx, &mut self.registered) {
            return Poll::Ready(Wakeup::Commands(commands));
        }
        if let Some(wakeup) = self.poll_buffer() {
            return Poll::Ready(wakeup);
        }
        let mut cost = 0;
        while cost < READ_BYTES
            && self.buffer.accepts_read()
            && self.pipeline.router().closed().is_none()
        {
            match self.poll_source(cx, &mut cost) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(end) => {
                    let end = end.and_then(Result::err);
                    let end = end.map_or(Wakeup::End, Wakeup::Error);
                    // What was read before the end is decoded and delivered first, so that an error does not overtake the text
                    // before it.
                    if self.buffer.is_empty() {
                        self.source_status = SourceStatus::Ended;
                        return Poll::Ready(end);
                    }
                    self.source_status = SourceStatus::Ending(end);
                    break;
                }
                Poll::Pending => return self.poll_pending(cx, cost > 0),
            }
        }
        Poll::Ready(Wakeup::Read { more: true })
    }

    /// Polls the source once, and decodes the item that it has. `cost` counts what was read.
    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
        cost: &mut usize,
    ) -> Poll<Option<Result<(), SourceError>>> {
        let Self {
            source,
            pipeline,
            buffer,
            clock,
            empty_reads,
            ..
        } = self;
        source.poll(cx, &mut |item| {
            *cost += ITEM_COST;
            match item {
                SourceItem::Bytes([]) => *empty_reads += 1,
                SourceItem::Bytes(bytes) => {
                    *empty_reads = 0;
                    *cost += bytes.len();
                    clock.touch();
                    buffer.read(bytes, pipeline);
                }
                SourceItem::Update(update) => {
                    *empty_reads = 0;
                    clock.touch();
                    pipeline.feed_update(update);
                }
                SourceItem::ChoiceEnd(choice, end) => {
                    *empty_reads = 0;
                    clock.touch();
                    pipeline.end_choice(choice, end);
                }
            }
        })
    }

    /// The source is pending. What was read is delivered, and then there is only time to wait for.
    fn poll_pending(&mut self, cx: &mut Context<'_>, has_read: bool) -> Poll<Wakeup> {
        if self.buffer.has_large_event() {
            return self.poll_gathered(cx);
        }
        if has_read {
            self.repoll.saw_item();
            // The source has registered this task's waker, so that it need not be polled again before waiting.
            if self.repoll.should_repoll() || !self.deliver_now() {
                return Poll::Ready(Wakeup::Read { more: false });
            }
        } else {
            self.repoll.saw_pending();
        }
        self.poll_clock(cx)
    }

    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        if self.pipeline.router().is_after_done() {
            return self.poll_after_done(cx);
        }
        let idle_ends = self.idle_ends_a_choice();
        self.clock.poll(cx, idle_ends).map(Wakeup::Tick)
    }
}
