//! The source that every contender reads: a network in miniature.
//!
//! It is `Pending` between any two reads. One event a read it gives the next only when consumers have had every item of
//! the last.

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

/// How a body is cut into reads.
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

    /// The body's reads, and how many items stand in each if consumers are waited for.
    pub(crate) fn cut(self, body: &Body) -> Reads {
        let mut reads = Vec::new();
        let (mut at, mut random) = (0, Random::new(3));
        match self {
            Self::Event => {
                for (end, items) in &body.events {
                    reads.push((body.bytes.slice(at..*end), *items));
                    at = *end;
                }
            }
            Self::Read16k | Self::Random => {
                while at < body.bytes.len() {
                    let length = match self {
                        Self::Random => 1 + random.below(200),
                        Self::Event | Self::Read16k => 16 * 1024,
                    };
                    let end = body.bytes.len().min(at + length);
                    reads.push((body.bytes.slice(at..end), 0));
                    at = end;
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
    /// A whole body in reads that nobody waits for.
    pub(crate) fn new(reads: Vec<Bytes>) -> Self {
        Self(reads.into_iter().map(|read| (read, 0)).collect())
    }

    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(read, _)| &**read)
    }

    /// A source of the reads, and what its consumers tell their items to.
    pub(crate) fn feed(&self, keep: bool) -> (Feed, Tally) {
        let gate = Arc::new(Gate::default());
        let waits = self.0.iter().any(|(_, items)| *items > 0);
        let feed = Feed {
            reads: self.clone(),
            at: 0,
            fed: 0,
            rested: false,
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
    at: usize,
    fed: usize,
    rested: bool,
    gate: Arc<Gate>,
}

/// Counts what consumers have had.
#[derive(Debug, Default)]
struct Gate {
    consumed: AtomicUsize,
    wanted: AtomicUsize,
    waker: AtomicWaker,
}

/// Where a consumer tells that it has an item in its hand.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    gate: Option<Arc<Gate>>,
    keep: bool,
}

impl Tally {
    /// A consumer has a piece of text: it is kept where answers are compared, and only looked at where time is taken.
    pub(crate) fn take(&self, piece: &str, kept: &mut String) {
        if self.keep {
            kept.push_str(piece);
        }
        self.look(piece);
    }

    /// Whether answers are compared.
    pub(crate) fn keeps(&self) -> bool {
        self.keep
    }

    /// A consumer has looked at a piece of text.
    pub(crate) fn look(&self, piece: &str) {
        black_box(piece);
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

    /// Tells that all items of the last read were had.
    pub(crate) fn all(&self, feed: &Feed) {
        while self.gate.is_some() && feed.gate.consumed.load(SeqCst) < feed.fed {
            self.item();
        }
    }
}

impl Feed {
    /// The next read, for a contender of one task that does its work at `idle`, when there is nothing to read: it asks
    /// the source as often, and waits at it in the same way, as those do whose work is other tasks'.
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
            self.rested = true;
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
        if !std::mem::replace(&mut self.rested, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.rested = false;
        let Some((read, items)) = self.reads.0.get(self.at).cloned() else {
            return Poll::Ready(None);
        };
        self.at += 1;
        self.fed += items;
        Poll::Ready(Some(Ok(read)))
    }
}
