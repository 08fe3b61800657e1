//! How fast tokens come.

use std::time::Duration;

/// Counts deltas, which most servers send one a token, from the first to the last or to now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    tokens: u32,
    first: Option<Duration>,
    end: Option<Duration>,
}

/// A time too short to tell a rate: a recording is read in no time.
const SHORTEST: Duration = Duration::from_millis(100);

impl Rate {
    /// A delta has come.
    pub(super) fn count(&mut self, at: Duration) {
        self.tokens = self.tokens.saturating_add(1);
        self.first.get_or_insert(at);
    }

    /// No more will come.
    pub(super) fn stop(&mut self, at: Duration) {
        self.end.get_or_insert(at);
    }

    /// Tokens a second, once that can be told.
    pub(super) fn per_second(&self, now: Duration) -> Option<f64> {
        let time = self.end.unwrap_or(now).checked_sub(self.first?)?;
        let more = self.tokens.checked_sub(1).filter(|&more| more > 0)?; // the first one came at the start of that time
        (time >= SHORTEST).then(|| f64::from(more) / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Rate};

    #[test]
    fn the_rate_is_that_from_the_first_delta_on() {
        let at = Duration::from_millis;
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(at(900)), None);
        rate.count(at(1000));
        assert_eq!(rate.per_second(at(1500)), None, "one token has no rate");
        rate.count(at(1050));
        assert_eq!(rate.per_second(at(1050)), None, "nor has so short a time");
        for k in 2..=10 {
            rate.count(at(1000 + k * 50));
        }
        assert_eq!(rate.per_second(at(1500)), Some(20.0));
        assert_eq!(rate.per_second(at(2000)), Some(10.0));
        rate.stop(at(1500));
        assert_eq!(rate.per_second(at(9000)), Some(20.0));
    }
}
