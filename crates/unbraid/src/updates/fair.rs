//! Lets other tasks run while a source is always ready.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::Stream;

/// Reads that are taken before the task yields.
const READS: u8 = 128;

/// A source that is pending once in a while. Decoding goes on until a read brings an update, and a source that is always
/// ready with none would hold its thread for ever.
pub(super) struct Fair<S> {
    source: S,
    taken: u8,
    /// Whether it was pending only for the sake of other tasks.
    yielded: bool,
}

impl<S> Fair<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            taken: 0,
            yielded: false,
        }
    }

    /// Whether the source itself may have more: it was last pending so that other tasks have their turn.
    pub(super) fn has_yielded(&self) -> bool {
        self.yielded
    }
}

impl<S: Stream + Unpin> Stream for Fair<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.yielded = self.taken >= READS;
        if self.yielded {
            self.taken = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.source).poll_next(cx);
        self.taken = if polled.is_ready() { self.taken + 1 } else { 0 };
        polled
    }
}
