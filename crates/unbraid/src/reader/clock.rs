//! Deadlines: the caller's three timeouts, the silence that ends a finished choice, and the bound of a drain.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};
use unbraid_core::{TimedOut, Timeout};

/// Silence that ends a choice whose finish reason has come: far above the gap between two chunks of one burst, far
/// below what a person notices.
const QUIET: Duration = Duration::from_millis(250);

/// How long the rest of a stream that is over may take.
const DRAIN: Duration = Duration::from_millis(100);

/// How long the reader leaves a source alone that is always ready with nothing.
const PAUSE: Duration = Duration::from_millis(1);

/// The timeouts of a stream; all are off unless asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Whether silence ends a choice and a drain has a bound in time.
    pub(crate) implicit: bool,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            implicit: true,
            first_byte: None,
            idle: None,
            total: None,
        }
    }
}

impl Timeouts {
    pub(crate) fn any(self) -> bool {
        self.first_byte.is_some() || self.idle.is_some() || self.total.is_some()
    }
}

/// What has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    Quiet,
    TimedOut(TimedOut),
}

/// One timer for all deadlines; it is set only while the source has nothing.
#[derive(Debug)]
pub(crate) struct Clock {
    timeouts: Timeouts,
    started: Instant,
    last_byte: Option<Instant>,
    /// Bytes have come since the clock was last asked; it need not look at the time before.
    touched: bool,
    drain_until: Option<Instant>,
    timer: Timer,
}

#[derive(Debug, Default)]
pub(crate) enum Timer {
    #[default]
    Unset,
    Set(Pin<Box<Sleep>>),
    /// The runtime has no time driver.
    None,
}

impl Clock {
    pub(crate) fn new(timeouts: Timeouts, started: Instant) -> Self {
        Self {
            timeouts,
            started,
            last_byte: None,
            touched: false,
            drain_until: None,
            timer: Timer::Unset,
        }
    }

    /// A byte has come, be it of a comment (S4).
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    /// The deadline that has passed already, without a timer; `quiet` says whether silence ends anything.
    pub(crate) fn passed(&mut self, quiet: bool) -> Option<Tick> {
        if !quiet && !self.timeouts.any() {
            return None; // as in `poll`
        }
        let now = Instant::now();
        if std::mem::take(&mut self.touched) {
            self.last_byte = Some(now);
        }
        let (at, tick) = self.next(quiet)?;
        (at <= now).then_some(tick)
    }

    /// Waits for a moment; not at all where there is no time driver.
    pub(crate) async fn pause(&mut self) {
        if !self.timeouts.implicit && !self.timeouts.any() {
            return;
        }
        let until = Instant::now() + PAUSE;
        poll_fn(|cx| self.timer.poll_if_any(cx, until)).await;
    }

    /// Waits until a moment that is near; not at all where there is no time driver.
    pub(crate) fn poll_moment(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        if !self.timeouts.implicit && !self.timeouts.any() {
            return Poll::Ready(());
        }
        self.timer.poll_if_any(cx, until)
    }

    /// Waits for the next deadline; `quiet` says whether silence ends anything.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, quiet: bool) -> Poll<Tick> {
        if !quiet && !self.timeouts.any() {
            return Poll::Pending; // most streams have no deadline, and need no look at the time
        }
        if std::mem::take(&mut self.touched) {
            self.last_byte = Some(Instant::now());
        }
        let Some((at, tick)) = self.next(quiet) else {
            return Poll::Pending;
        };
        self.timer.poll(cx, at).map(|()| tick)
    }

    /// The nearest deadline.
    fn next(&self, quiet: bool) -> Option<(Instant, Tick)> {
        let timed_out = |timeout, from: Instant, after: Option<Duration>| {
            let after = after?;
            Some((
                from.checked_add(after)?,
                Tick::TimedOut(TimedOut::new(timeout, after)),
            ))
        };
        let silence = match self.last_byte {
            None => timed_out(Timeout::FirstByte, self.started, self.timeouts.first_byte),
            Some(last) => timed_out(Timeout::Idle, last, self.timeouts.idle),
        };
        let total = timed_out(Timeout::Total, self.started, self.timeouts.total);
        let quiet = (quiet && self.timeouts.implicit)
            .then(|| (self.last_byte.unwrap_or(self.started) + QUIET, Tick::Quiet));
        [quiet, silence, total]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    /// Starts the time of a drain, unless it has begun.
    pub(crate) fn start_drain(&mut self) {
        if self.drain_until.is_none() {
            self.drain_until = Instant::now().checked_add(DRAIN);
        }
    }

    /// Whether the drain has taken long enough, for a source that is never without anything.
    pub(crate) fn is_drained(&self) -> bool {
        self.drain_until
            .is_some_and(|until| Instant::now() >= until)
    }

    /// Ready when the drain has taken long enough; at once where there is no time driver.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.drain_until {
            Some(until) if self.timeouts.implicit && !matches!(self.timer, Timer::None) => {
                self.timer.poll_if_any(cx, until)
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Timer {
    /// Waits until then; for ever where there is no time driver.
    fn poll(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        if matches!(self, Self::Unset) {
            *self = new_sleep(at).map_or(Self::None, |sleep| Self::Set(Box::pin(sleep)));
        }
        let Self::Set(sleep) = self else {
            return Poll::Pending;
        };
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }

    /// Waits until then; not at all where there is no time driver.
    pub(crate) fn poll_if_any(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        match self.poll(cx, at) {
            Poll::Pending if matches!(self, Self::None) => Poll::Ready(()),
            polled => polled,
        }
    }
}

/// Tokio has no way to ask whether a runtime has a time driver: without one, making a timer panics.
fn new_sleep(at: Instant) -> Option<Sleep> {
    catch_unwind(AssertUnwindSafe(|| sleep_until(at))).ok()
}

/// Whether timers work in the runtime of this thread.
pub(crate) fn has_time_driver() -> bool {
    new_sleep(Instant::now()).is_some()
}
