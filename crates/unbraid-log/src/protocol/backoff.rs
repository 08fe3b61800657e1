//! The pauses between attempts while a log is not available.

use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause of a producer. A broker that restarts is back within seconds, and a thousand producers must not ask it
/// more than a few hundred times a second meanwhile.
const PRODUCER_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause of a reader. Some engines count a lease from the moment at which a reader sees it, so each pause delays
/// the end of a lost stream.
const READER_PAUSE: Duration = Duration::from_millis(500);

/// When the next attempt is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    longest: Duration,
    pause: Duration,
    retry_at: Option<Duration>,
}

impl Backoff {
    /// With a short lease a producer also has to renew in time once the log is back.
    pub(super) fn of_producer(lease: Duration) -> Self {
        Self::new(PRODUCER_PAUSE.min(lease / 3).max(FIRST_PAUSE))
    }

    pub(super) fn of_reader() -> Self {
        Self::new(READER_PAUSE)
    }

    fn new(longest: Duration) -> Self {
        Self {
            longest,
            pause: Duration::ZERO,
            retry_at: None,
        }
    }

    pub(super) fn failed(&mut self, now: Duration) {
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, self.longest);
        self.retry_at = Some(now + self.pause);
    }

    /// Makes the next attempt at this time, if it would come later.
    pub(super) fn not_after(&mut self, time: Duration) {
        self.retry_at = self.retry_at.map(|retry_at| retry_at.min(time));
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::new(self.longest);
    }

    /// The time of the next attempt, if it is not yet reached.
    pub(super) fn until(&self, now: Duration) -> Option<Duration> {
        self.retry_at.filter(|at| *at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_tries_again_before_a_lease_has_passed() {
        for (lease, longest) in [(15_000, 2_000), (3_000, 1_000), (1_200, 400), (9, 100)] {
            let mut backoff = Backoff::of_producer(Duration::from_millis(lease));
            for _ in 0..10 {
                backoff.failed(Duration::ZERO);
            }
            let until = backoff.until(Duration::ZERO).unwrap();
            assert_eq!(until, Duration::from_millis(longest), "{lease}");
        }
    }
}
