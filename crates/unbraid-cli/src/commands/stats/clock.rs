//! When the bytes of a stream arrived.

use std::time::Duration;

use tokio::time::Instant;

/// The source of times.
#[derive(Debug)]
pub(super) enum Clock {
    /// A recording without times.
    None,
    /// The stream is measured while it is read.
    Live { start: Instant },
    /// A recording with the times of its reads.
    Recorded {
        /// The end of each read, in bytes, and its time.
        reads: Vec<(u64, Duration)>,
        /// The first read that is not behind the last byte that was asked for.
        next: usize,
    },
}

impl Clock {
    pub(super) fn live() -> Self {
        Self::Live {
            start: Instant::now(),
        }
    }

    pub(super) fn recorded(reads: Vec<(u64, Duration)>) -> Self {
        match reads.is_empty() {
            true => Self::None,
            false => Self::Recorded { reads, next: 0 },
        }
    }

    /// When the bytes up to this offset had arrived. Offsets never decrease.
    pub(super) fn time(&mut self, offset: u64) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Live { start } => Some(start.elapsed()),
            Self::Recorded { reads, next } => {
                while reads.get(*next).is_some_and(|(end, _)| *end < offset) {
                    *next += 1;
                }
                // Bytes behind the last read were added to the recording later, and have no time.
                reads.get(*next).map(|(_, time)| *time)
            }
        }
    }

    /// The name of the source, for the JSON.
    pub(super) fn name(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Live { .. } => Some("live"),
            Self::Recorded { .. } => Some("recorded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Clock;

    #[test]
    fn a_byte_has_the_time_of_its_read() {
        let time = Duration::from_millis;
        let mut clock = Clock::recorded(vec![(4, time(10)), (4, time(11)), (9, time(20))]);
        assert_eq!(clock.time(1), Some(time(10)));
        assert_eq!(clock.time(4), Some(time(10)));
        assert_eq!(clock.time(5), Some(time(20)));
        assert_eq!(clock.time(9), Some(time(20)));
        assert_eq!(clock.time(10), None);
        assert_eq!(Clock::recorded(Vec::new()).name(), None);
    }
}
