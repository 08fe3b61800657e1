//! The rate at which tokens arrive.

use std::time::Duration;

/// Counts deltas from the first one on. Most servers send one delta for each token.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    tokens: u32,
    first: Option<Duration>,
    end: Option<Duration>,
}

/// The shortest time that has a rate. A recording arrives almost at once, and its rate would be meaningless.
const MIN_TIME: Duration = Duration::from_millis(100);

impl Rate {
    /// Counts a delta.
    pub(super) fn count(&mut self, now: Duration) {
        self.tokens = self.tokens.saturating_add(1);
        self.first.get_or_insert(now);
    }

    /// When the first delta arrived.
    pub(super) fn first(&self) -> Option<Duration> {
        self.first
    }

    /// Stops the clock: no more deltas will arrive.
    pub(super) fn stop(&mut self, now: Duration) {
        self.end.get_or_insert(now);
    }

    /// The tokens per second, if there are enough of them.
    pub(super) fn per_second(&self, now: Duration) -> Option<f64> {
        let time = self.end.unwrap_or(now).checked_sub(self.first?)?;
        // The first token starts the clock, so only those after it belong to the time.
        let tokens = self.tokens.checked_sub(1).filter(|&tokens| tokens > 0)?;
        (time >= MIN_TIME).then(|| f64::from(tokens) / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Rate};

    #[test]
    fn the_rate_counts_from_the_first_delta() {
        let millis = Duration::from_millis;
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(millis(900)), None);
        rate.count(millis(1000));
        assert_eq!(rate.per_second(millis(1500)), None, "one token has no rate");
        rate.count(millis(1050));
        assert_eq!(
            rate.per_second(millis(1050)),
            None,
            "a short time has no rate"
        );
        for k in 2..=10 {
            rate.count(millis(1000 + k * 50));
        }
        assert_eq!(rate.per_second(millis(1500)), Some(20.0));
        assert_eq!(rate.per_second(millis(2000)), Some(10.0));
        rate.stop(millis(1500));
        assert_eq!(rate.per_second(millis(9000)), Some(20.0));
    }
}
