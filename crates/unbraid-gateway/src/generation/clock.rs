//! The deadlines of a generation, on one timer that is set only while nothing is ready.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Instant;

use super::Tick;
use crate::{
    config::Options,
    limits::{IDLE_END, MIN_READ_REPORT},
    timer::Timer,
};

/// The deadlines.
pub(super) struct Clock {
    idle_timeout: Duration,
    renew_every: Duration,
    linger: Duration,
    orphan_after: Option<Duration>,
    last_renewal: Instant,
    /// Since when no reader is connected here.
    orphaned_since: Option<Instant>,
    /// When another gateway last reported a reader, or could not report one because the log failed.
    read_elsewhere: Option<Instant>,
    /// Whether the log failed when that was last looked at.
    log_failed: bool,
    /// Since when events wait to be appended.
    lingers_since: Option<Instant>,
    timer: Timer,
}

/// What the generation waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// Since when the body is silent whose choices end by silence first; `None` if there is none.
    pub(super) finished_since: Option<Instant>,
    /// Since when the body is silent that times out first; `None` if none is read.
    pub(super) silent_since: Option<Instant>,
    pub(super) has_readers: bool,
    /// Whether events wait to be appended.
    pub(super) has_events: bool,
    /// Whether the log that other gateways share fails, so that they cannot report their readers.
    pub(super) log_fails: bool,
}

impl Clock {
    pub(super) fn new(options: &Options, orphan_after: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            idle_timeout: options.idle_timeout,
            renew_every: (options.lease / 3).max(Duration::from_millis(1)),
            linger: options.linger,
            orphan_after,
            last_renewal: now,
            orphaned_since: None,
            read_elsewhere: None,
            log_failed: false,
            lingers_since: None,
            timer: Timer::default(),
        }
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Whether events wait for more before they are appended.
    pub(super) fn lingers(&self) -> bool {
        !self.linger.is_zero()
    }

    /// The last reader has left. It may have come since the previous poll, so that no poll has seen it.
    pub(super) fn reader_left(&mut self, at: Instant) {
        self.orphaned_since = self.orphaned_since.max(Some(at));
    }

    /// Another gateway has a reader.
    pub(super) fn read_elsewhere(&mut self) {
        self.read_elsewhere = Some(Instant::now());
    }

    /// When the generation has had no reader for too long, here and elsewhere.
    fn orphaned_at(&self) -> Option<Instant> {
        let here = self.orphaned_since?.checked_add(self.orphan_after?)?;
        // The next report may be one period late.
        let elsewhere = self.orphan_after?.max(3 * MIN_READ_REPORT);
        let elsewhere = self.read_elsewhere.and_then(|at| at.checked_add(elsewhere));
        Some(elsewhere.map_or(here, |elsewhere| here.max(elsewhere)))
    }

    /// Waits for the next deadline.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, conditions: Conditions) -> Poll<Tick> {
        loop {
            let now = Instant::now();
            let (until, tick) = self.next(conditions, now);
            ready!(self.timer.poll_until(cx, until, now));
            if Instant::now() >= until {
                self.pass(tick);
                return Poll::Ready(tick);
            }
        }
    }

    fn next(&mut self, conditions: Conditions, now: Instant) -> (Instant, Tick) {
        let Conditions {
            finished_since,
            silent_since,
            has_readers,
            has_events,
            log_fails,
        } = conditions;
        // After that they have the same time as ever to report them.
        if std::mem::replace(&mut self.log_failed, log_fails) || log_fails {
            self.read_elsewhere = Some(now);
        }
        self.orphaned_since = match self.orphaned_since {
            _ if has_readers => None,
            None => Some(now),
            since => since,
        };
        self.lingers_since = match self.lingers_since {
            _ if !has_events => None,
            None => Some(now),
            since => since,
        };
        let after = |from: Instant, after: Duration| from.checked_add(after);
        let deadlines = [
            after(self.last_renewal, self.renew_every).map(|at| (at, Tick::Renew)),
            finished_since
                .and_then(|since| after(since, IDLE_END))
                .map(|at| (at, Tick::Idle)),
            silent_since
                .and_then(|since| after(since, self.idle_timeout))
                .map(|at| (at, Tick::TimedOut)),
            self.orphaned_at().map(|at| (at, Tick::Orphaned)),
            self.lingers_since
                .and_then(|since| after(since, self.linger))
                .map(|at| (at, Tick::Linger)),
        ];
        let next = deadlines.into_iter().flatten().min_by_key(|(at, _)| *at);
        next.unwrap_or((now + self.renew_every, Tick::Renew))
    }

    fn pass(&mut self, tick: Tick) {
        match tick {
            Tick::Renew => self.last_renewal = Instant::now(),
            Tick::Linger => self.lingers_since = None,
            Tick::Idle | Tick::TimedOut | Tick::Orphaned => {}
        }
    }
}
