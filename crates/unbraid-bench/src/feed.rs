//! The source that every contender reads. It simulates a network.
//!
//! It returns `Pending` between two reads. With one event for each read, it returns the next read only when the consumers
//! have received every item of the previous one.

use std::{
    convert::Infallible,
    future::poll_fn,
    hint::black_box,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt, task::AtomicWaker};

use crate::{body::Body, random::Random};

/// How a body is split into reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Event,
    Read16k,
    Random,
}

impl Delivery {
    pub(crate) const ALL: [Self; 3] = [Self::Event, Self::Read16k, Self::Random];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Read16k => "16k",
            Self::Random => "random",
        }
    }

    /// The reads of a body, and the number of items in each if the source waits for the consumers.
    pub(crate) fn cut(self, body: &Body) -> Reads {
        let mut reads = Vec::new();
        let (mut start, mut random) = (0, Random::new(3));
        match self {
            Self::Event => {
                for (end, items) in &body.events {
                    reads.push((body.bytes.slice(start..*end), *items));
                    start = *end;
                }
            }
            Self::Read16k | Self::Random => {
                while start < body.bytes.len() {
                    let length = match self {
                        Self::Random => 1 + random.below(200),
                        Self::Event | Self::Read16k => 16 * 1024,
                    };
                    let end = body.bytes.len().min(start + length);
                    reads.push((body.bytes.slice(start..end), 0));
                    start = end;
                }
            }
        }
        Reads(reads.into())
    }
}

/// A body in reads.
#[derive(Debug, Clone)]
pub(crate) struct Reads(Arc<[(Bytes, usize)]>);

impl Reads {
    /// The reads of a body. The source does not wait for the consumers.
    pub(crate) fn new(reads: Vec<Bytes>) -> Self {
        Self(reads.into_iter().map(|read| (read, 0)).collect())
    }

    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(read, _)| &**read)
    }

    /// A source of the reads, and the tally of its consumers.
    pub(crate) fn feed(&self, keep: bool) -> (Feed, Tally) {
        let gate = Arc::new(Gate::default());
        let waits = self.0.iter().any(|(_, items)| *items > 0);
        let feed = Feed {
            reads: self.clone(),
            next: 0,
            fed: 0,
            was_pending: false,
            gate: Arc::clone(&gate),
        };
        let gate = waits.then_some(gate);
        (feed, Tally { gate, keep })
    }
}

/// A stream of reads.
#[derive(Debug)]
pub(crate) struct Feed {
    reads: Reads,
    next: usize,
    fed: usize,
    was_pending: bool,
    gate: Arc<Gate>,
}

/// Counts the items that consumers have received.
#[derive(Debug, Default)]
struct Gate {
    consumed: AtomicUsize,
    wanted: AtomicUsize,
    waker: AtomicWaker,
}

/// Records the items that consumers receive.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    gate: Option<Arc<Gate>>,
    keep: bool,
}

impl Tally {
    /// Records a text. It is kept if answers are compared, and only observed if times are measured.
    pub(crate) fn record(&self, text: &str, kept: &mut String) {
        if self.keep {
            kept.push_str(text);
        }
        self.observe(text);
    }

    /// Whether answers are compared.
    pub(crate) fn keeps(&self) -> bool {
        self.keep
    }

    /// Records that a consumer has read a text.
    pub(crate) fn observe(&self, text: &str) {
        black_box(text);
        self.item();
    }

    fn item(&self) {
        if let Some(gate) = &self.gate {
            let consumed = gate.consumed.fetch_add(1, SeqCst) + 1;
            if consumed == gate.wanted.load(SeqCst) {
                gate.waker.wake();
            }
        }
    }

    /// Records all items of the last read as received.
    pub(crate) fn consume_all(&self, feed: &Feed) {
        while self.gate.is_some() && feed.gate.consumed.load(SeqCst) < feed.fed {
            self.item();
        }
    }
}

impl Feed {
    /// The next read, for a contender with a single task, which does its work in `idle` while the source is pending. It
    /// polls the source as often as the contenders that work in other tasks.
    pub(crate) async fn read(&mut self, mut idle: impl FnMut(&Self)) -> Option<Bytes> {
        let read = poll_fn(|cx| {
            let read = self.poll_next_unpin(cx);
            if read.is_pending() {
                idle(self);
            }
            read
        });
        read.await?.ok()
    }

    fn poll_gate(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.gate.consumed.load(SeqCst) < self.fed {
            self.gate.waker.register(cx.waker());
            self.gate.wanted.store(self.fed, SeqCst);
            self.was_pending = true;
            if self.gate.consumed.load(SeqCst) < self.fed {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl Stream for Feed {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.poll_gate(cx).is_pending() {
            return Poll::Pending;
        }
        if !std::mem::replace(&mut self.was_pending, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.was_pending = false;
        let Some((read, items)) = self.reads.0.get(self.next).cloned() else {
            return Poll::Ready(None);
        };
        self.next += 1;
        self.fed += items;
        Poll::Ready(Some(Ok(read)))
    }
}
