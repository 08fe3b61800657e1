//! The pauses between attempts while a log is not available.

use std::time::Duration;

/// The first and the longest pause. A broker that restarts is back within seconds, and a thousand producers must not ask
/// it more than a few hundred times a second meanwhile.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// When the next attempt is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    pause: Duration,
    retry_at: Option<Duration>,
}

impl Backoff {
    pub(super) fn failed(&mut self, now: Duration) {
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, MAX_PAUSE);
        self.retry_at = Some(now + self.pause);
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The time of the next attempt, if it is not yet reached.
    pub(super) fn until(&self, now: Duration) -> Option<Duration> {
        self.retry_at.filter(|at| *at > now)
    }
}
