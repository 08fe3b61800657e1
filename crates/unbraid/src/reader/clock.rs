//! Deadlines: the caller's three timeouts, the idle time that ends a finished choice, and the bound of a drain.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};
use unbraid_core::{TimedOut, Timeout};

/// The idle time that ends a choice whose finish reason has arrived: far above the gap between two chunks of one burst, and
/// far below what a person notices.
const IDLE: Duration = Duration::from_millis(250);

/// How long the rest of a stream that is over may take.
const DRAIN: Duration = Duration::from_millis(100);

/// How long the reader leaves a source alone that is always ready with nothing.
const PAUSE: Duration = Duration::from_millis(1);

/// The timeouts of a stream; all are off by default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Whether idle time ends a choice and a drain is bounded in time.
    pub(crate) implicit: bool,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
    /// The length that is stated if `total` is the rest of a timeout that began earlier.
    pub(crate) whole_total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            implicit: true,
            first_byte: None,
            idle: None,
            total: None,
            whole_total: None,
        }
    }
}

impl Timeouts {
    pub(crate) fn any(self) -> bool {
        self.first_byte.is_some() || self.idle.is_some() || self.total.is_some()
    }
}

/// A deadline that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    Idle,
    TimedOut(TimedOut),
}

/// One timer for all deadlines; it is set only while the source is pending.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Clock {
    /// Whether bytes have arrived since the clock was last polled. The time is read then, and not for each read.
    touched: bool,
    /// Whether there is any timeout. Each poll asks for it.
    has_timeouts: bool,
    timeouts: Timeouts,
    started: Instant,
    last_byte: Option<Instant>,
    drain_until: Option<Instant>,
    timer: Timer,
}

#[derive(Debug, Default)]
pub(crate) enum Timer {
    #[default]
    Unset,
    Set(Pin<Box<Sleep>>),
    /// The runtime has no time driver.
    Unavailable,
}

impl Clock {
    pub(crate) fn new(timeouts: Timeouts, started: Instant) -> Self {
        Self {
            touched: false,
            has_timeouts: timeouts.any(),
            timeouts,
            started,
            last_byte: None,
            drain_until: None,
            timer: Timer::Unset,
        }
    }

    /// Notes that bytes have arrived; those of a comment count (S4).
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    /// The deadline that has passed, if any, without a timer. `idle_ends` is whether idle time ends a choice.
    pub(crate) fn expired(&mut self, idle_ends: bool) -> Option<Tick> {
        if !idle_ends && !self.has_timeouts {
            return None; // as in `poll`
        }
        let now = Instant::now();
        if std::mem::take(&mut self.touched) {
            self.last_byte = Some(now);
        }
        let (deadline, tick) = self.next_deadline(idle_ends)?;
        (deadline <= now).then_some(tick)
    }

    /// Waits for a moment, or not at all if there is no time driver.
    pub(crate) async fn pause(&mut self) {
        if !self.timeouts.implicit && !self.timeouts.any() {
            return;
        }
        let until = Instant::now() + PAUSE;
        poll_fn(|cx| self.timer.poll_if_available(cx, until)).await;
    }

    /// Waits until a time in the near future, or not at all if there is no time driver.
    pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        if !self.timeouts.implicit && !self.timeouts.any() {
            return Poll::Ready(());
        }
        self.timer.poll_if_available(cx, until)
    }

    /// Waits for the next deadline. `idle_ends` is whether idle time ends a choice.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, idle_ends: bool) -> Poll<Tick> {
        if !idle_ends && !self.has_timeouts {
            return Poll::Pending; // most streams have no deadline, and need not read the time
        }
        if std::mem::take(&mut self.touched) {
            self.last_byte = Some(Instant::now());
        }
        let Some((deadline, tick)) = self.next_deadline(idle_ends) else {
            return Poll::Pending;
        };
        self.timer.poll(cx, deadline).map(|()| tick)
    }

    fn next_deadline(&self, idle_ends: bool) -> Option<(Instant, Tick)> {
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
        let total = total.map(|(deadline, tick)| match self.timeouts.whole_total {
            Some(whole) => {
                let timed_out = TimedOut::new(Timeout::Total, whole);
                (deadline, Tick::TimedOut(timed_out))
            }
            None => (deadline, tick),
        });
        let idle = (idle_ends && self.timeouts.implicit)
            .then(|| (self.last_byte.unwrap_or(self.started) + IDLE, Tick::Idle));
        [idle, silence, total]
            .into_iter()
            .flatten()
            .min_by_key(|(deadline, _)| *deadline)
    }

    /// Starts the time of a drain, unless it has started.
    pub(crate) fn start_drain(&mut self) {
        if self.drain_until.is_none() {
            self.drain_until = Instant::now().checked_add(DRAIN);
        }
    }

    /// Whether the drain has taken long enough, for a source that is never pending.
    pub(crate) fn is_drained(&self) -> bool {
        self.drain_until
            .is_some_and(|until| Instant::now() >= until)
    }

    /// Ready when the drain has taken long enough; at once if there is no time driver.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.drain_until {
            Some(until) if self.timeouts.implicit && !matches!(self.timer, Timer::Unavailable) => {
                self.timer.poll_if_available(cx, until)
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Timer {
    /// Waits until a time; forever if there is no time driver.
    fn poll(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        if matches!(self, Self::Unset) {
            *self = new_sleep(until).map_or(Self::Unavailable, |sleep| Self::Set(Box::pin(sleep)));
        }
        let Self::Set(sleep) = self else {
            return Poll::Pending;
        };
        // A reset may take a lock of the runtime, and between two polls the deadline has rarely moved.
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx)
    }

    /// Waits until a time; not at all if there is no time driver.
    pub(crate) fn poll_if_available(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        match self.poll(cx, until) {
            Poll::Pending if matches!(self, Self::Unavailable) => Poll::Ready(()),
            polled => polled,
        }
    }
}

/// Tokio offers no query for a runtime's time driver: without one, creating a timer panics.
fn new_sleep(until: Instant) -> Option<Sleep> {
    catch_unwind(AssertUnwindSafe(|| sleep_until(until))).ok()
}

/// Whether timers work in the runtime of this thread.
pub(crate) fn has_time_driver() -> bool {
    new_sleep(Instant::now()).is_some()
}
