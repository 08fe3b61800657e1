//! The time that the file contains.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 that never go back, and that no change of the wall clock moves while the log is open.
///
/// Between two processes there is only the wall clock. It counts if it is later than the last time in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: u64,
    since: Instant,
}

impl Clock {
    /// A clock of a file whose last time is this.
    pub(crate) fn after(last: u64) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            base: millis(wall.unwrap_or_default()).max(last),
            since: now(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.base.saturating_add(millis(self.since.elapsed()))
    }

    /// The wall clock's time at one of this clock's times.
    pub(crate) fn wall(&self, at: u64) -> SystemTime {
        let (now, wall) = (self.now(), SystemTime::now());
        let ahead = wall.checked_add(Duration::from_millis(at.saturating_sub(now)));
        let behind = Duration::from_millis(now.saturating_sub(at));
        ahead
            .and_then(|time| time.checked_sub(behind))
            .unwrap_or(wall)
    }
}

/// The time by which leases, claims and retries are measured: that of the thread that writes, which has no runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of its own cannot follow a runtime's paused clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_continues_after_the_last_time_of_the_file() {
        let far = u64::from(u32::MAX) * 1000;
        let clock = Clock::after(far);
        assert!((far..far + 60_000).contains(&clock.now()));
        assert!(Clock::after(0).now() > 1_700_000_000_000);
        let in_a_minute = clock.wall(clock.now() + 60_000);
        let remaining = in_a_minute.duration_since(SystemTime::now()).unwrap();
        assert!((55..=60).contains(&remaining.as_secs()), "{remaining:?}");
        let a_minute_ago = clock.wall(clock.now() - 60_000);
        assert!(a_minute_ago < SystemTime::now());
    }
}
