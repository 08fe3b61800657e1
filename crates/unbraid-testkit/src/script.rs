//! A source that plays a script: bytes, pauses, and the ways in which a source goes wrong.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::time::{Sleep, sleep};

/// One step of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One read.
    Bytes(Vec<u8>),
    /// Nothing for a while; needs a runtime with timers.
    Pause(Duration),
    /// Nothing, once: the executor gets its turn.
    Yield,
    /// Nothing, ever.
    Stall,
    /// The connection breaks.
    Fail,
    /// The source panics when it is polled.
    Panic,
    /// The source gives a read that panics when its bytes are looked at, as a decoder with a bug would.
    PanicInRead,
}

/// What every panic of a script says, so that a test can tell it from a real one.
pub const ON_PURPOSE: &str = "on purpose";

/// One read of a script.
#[derive(Debug)]
pub struct Read(Option<Vec<u8>>);

impl AsRef<[u8]> for Read {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Some(bytes) => bytes,
            None => panic!("{ON_PURPOSE}"),
        }
    }
}

/// Plays a script; behind its last step the stream ends.
#[derive(Debug)]
pub struct Script {
    steps: std::vec::IntoIter<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    stalled: bool,
    closed: Arc<AtomicBool>,
}

impl Script {
    /// A source of these steps.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Step> = steps.into_iter().collect();
        Self {
            steps: steps.into_iter(),
            pause: None,
            stalled: false,
            closed: Arc::default(),
        }
    }

    /// A source of these reads, without any fault.
    pub fn of<B: AsRef<[u8]>>(reads: impl IntoIterator<Item = B>) -> Self {
        Self::new(reads.into_iter().map(bytes))
    }

    /// Whether the source has been dropped: what a server sees as a closed connection.
    pub fn probe(&self) -> Probe {
        Probe(Arc::clone(&self.closed))
    }
}

/// Tells whether a [`Script`] was dropped.
#[derive(Debug, Clone)]
pub struct Probe(Arc<AtomicBool>);

impl Probe {
    /// Whether the source is gone.
    pub fn closed(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

impl Stream for Script {
    type Item = Result<Read, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.stalled {
            return Poll::Pending;
        }
        if let Some(pause) = &mut self.pause {
            if pause.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        match self.steps.next() {
            None => Poll::Ready(None),
            Some(Step::Bytes(bytes)) => Poll::Ready(Some(Ok(Read(Some(bytes))))),
            Some(Step::PanicInRead) => Poll::Ready(Some(Ok(Read(None)))),
            Some(Step::Fail) => {
                let error = io::Error::new(io::ErrorKind::ConnectionReset, "the peer went away");
                Poll::Ready(Some(Err(error)))
            }
            Some(Step::Panic) => panic!("{ON_PURPOSE}"),
            Some(Step::Stall) => {
                self.stalled = true;
                Poll::Pending
            }
            Some(Step::Yield) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Step::Pause(length)) => {
                self.pause = Some(Box::pin(sleep(length)));
                self.poll_next(cx)
            }
        }
    }
}

/// A read of these bytes.
pub fn bytes(bytes: impl AsRef<[u8]>) -> Step {
    Step::Bytes(bytes.as_ref().to_vec())
}

/// A chunk with one choice's text.
pub fn content(choice: u32, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{choice},\"delta\":{{\"content\":{text}}}}}]}}\n\n"
    )
}

/// A chunk with one choice's finish reason.
pub fn finish(choice: u32, reason: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{choice},\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n"
    )
}

/// The end mark.
pub const DONE: &str = "data: [DONE]\n\n";
