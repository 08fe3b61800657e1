//! A source that plays a script of bytes, pauses and faults.

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
    /// Pending for this long; needs a runtime with timers.
    Pause(Duration),
    /// Pending once, so that other tasks run.
    Yield,
    /// Pending forever.
    Stall,
    /// The connection fails.
    Fail,
    /// The source panics when it is polled.
    Panic,
    /// The source returns a read that panics when its bytes are accessed, as a decoder with a bug would.
    PanicInRead,
}

/// The message of every panic of a script, which distinguishes it from a real one.
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

/// Plays a script. The stream ends after its last step.
#[derive(Debug)]
pub struct Script {
    steps: std::vec::IntoIter<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    stalled: bool,
    closed: Arc<AtomicBool>,
}

impl Script {
    /// Creates a source that plays these steps.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Step> = steps.into_iter().collect();
        Self {
            steps: steps.into_iter(),
            pause: None,
            stalled: false,
            closed: Arc::default(),
        }
    }

    /// Creates a source of these reads, without faults.
    pub fn of<B: AsRef<[u8]>>(reads: impl IntoIterator<Item = B>) -> Self {
        Self::new(reads.into_iter().map(bytes))
    }

    /// Returns a probe that shows when the source is dropped, which a server sees as a closed connection.
    pub fn probe(&self) -> Probe {
        Probe(Arc::clone(&self.closed))
    }
}

/// Shows whether a [`Script`] was dropped.
#[derive(Debug, Clone)]
pub struct Probe(Arc<AtomicBool>);

impl Probe {
    /// Whether the source has been dropped.
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
                let error = io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "the peer closed the connection",
                );
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

/// A chunk with text of one choice.
pub fn content(choice: u32, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{choice},\"delta\":{{\"content\":{text}}}}}]}}\n\n"
    )
}

/// A chunk with the finish reason of one choice.
pub fn finish(choice: u32, reason: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{choice},\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n"
    )
}

/// The end mark.
pub const DONE: &str = "data: [DONE]\n\n";
