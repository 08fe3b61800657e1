//! Lets other tasks run while a source is always ready.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::Stream;

/// The number of reads after which the task yields.
const READS: u8 = 128;

/// A source that is pending once in a while. Decoding goes on until a read brings an update, so a source that is always
/// ready with none would otherwise hold its thread forever.
pub(super) struct YieldingSource<S> {
    source: S,
    reads: u8,
    /// Whether it was last pending only to let other tasks run.
    yielded: bool,
}

impl<S> YieldingSource<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            reads: 0,
            yielded: false,
        }
    }

    /// Whether it was last pending only to let other tasks run, so that the source itself may have more.
    pub(super) fn has_yielded(&self) -> bool {
        self.yielded
    }
}

impl<S: Stream + Unpin> Stream for YieldingSource<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.yielded = self.reads >= READS;
        if self.yielded {
            self.reads = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.source).poll_next(cx);
        self.reads = if polled.is_ready() { self.reads + 1 } else { 0 };
        polled
    }
}
