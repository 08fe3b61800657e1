//! The timers of a body that the caller reads: for a silence within it, and for the end of the whole call.
//!
//! The reader of a completion has such timers, too. A body that is recorded or forwarded may have no such reader.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep, sleep_until};
use unbraid::{TimedOut, Timeout};

/// The timers. They are made with the body, inside of the runtime: the body may be polled outside of it.
#[derive(Default)]
pub(crate) struct Timers {
    silence: Option<Silence>,
    total: Option<(Pin<Box<Sleep>>, TimedOut)>,
    /// Whether a byte has arrived. Before it, another timeout applies.
    has_begun: bool,
}

struct Silence {
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether the timer runs: since the caller waits.
    is_running: bool,
}

impl Timers {
    pub(crate) fn new(idle: Option<Duration>, total: Option<(Instant, TimedOut)>) -> Self {
        Self {
            silence: idle.map(|idle| Silence {
                idle,
                timer: Box::pin(sleep(idle)),
                is_running: false,
            }),
            total: total.map(|(at, timed_out)| (Box::pin(sleep_until(at)), timed_out)),
            has_begun: false,
        }
    }

    /// Bytes have arrived.
    pub(super) fn restart(&mut self) {
        self.has_begun = true;
        if let Some(silence) = &mut self.silence {
            silence.is_running = false;
        }
    }

    /// Whether the whole call took too long. This holds even if bytes arrive.
    pub(super) fn poll_total(&mut self, cx: &mut Context<'_>) -> Poll<TimedOut> {
        let Some((timer, timed_out)) = &mut self.total else {
            return Poll::Pending;
        };
        timer.as_mut().poll(cx).map(|()| *timed_out)
    }

    /// Whether the server has been silent for too long. The silence begins when the caller waits, so that the time between its
    /// reads does not count.
    pub(super) fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<TimedOut> {
        let Some(silence) = self.silence.as_mut().filter(|_| self.has_begun) else {
            return Poll::Pending;
        };
        if !std::mem::replace(&mut silence.is_running, true) {
            // One that cannot be represented never ends.
            let Some(ends_at) = Instant::now().checked_add(silence.idle) else {
                return Poll::Pending;
            };
            silence.timer.as_mut().reset(ends_at);
        }
        let elapsed = silence.timer.as_mut().poll(cx);
        elapsed.map(|()| TimedOut::new(Timeout::Idle, silence.idle))
    }
}
