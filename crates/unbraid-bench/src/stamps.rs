//! The times when each delta was written and received.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{contender::Record, table::rounded};

/// Times by the number of a delta, which is also its text. The writer and the consumers share the table.
#[derive(Debug, Clone)]
pub(crate) struct Timestamps(Arc<Table>);

#[derive(Debug)]
struct Table {
    origin: Instant,
    deltas: Vec<DeltaTimes>,
}

/// Nanoseconds since the origin, or zero for an event that has not happened.
#[derive(Debug, Default)]
struct DeltaTimes {
    written: AtomicU64,
    received: AtomicU64,
}

impl Timestamps {
    pub(crate) fn new(deltas: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(deltas, DeltaTimes::default);
        Self(Arc::new(Table {
            origin: now(),
            deltas: all,
        }))
    }

    /// Records that the delta with this number is about to be written.
    pub(crate) fn written(&self, number: usize) {
        if let Some(delta) = self.0.deltas.get(number) {
            delta.written.store(self.elapsed(), SeqCst);
        }
    }

    /// Records that a consumer has received the delta with this number.
    pub(crate) fn received(&self, number: usize) {
        let elapsed = self.elapsed();
        if let Some(delta) = self.0.deltas.get(number) {
            delta.received.store(elapsed, SeqCst);
        }
    }

    /// The latency of each delta after the first `warm_up`, or an error if one never arrived.
    pub(crate) fn times(&self, warm_up: usize) -> io::Result<Vec<Duration>> {
        let time = |delta: &DeltaTimes| {
            let (written, received) = (delta.written.load(SeqCst), delta.received.load(SeqCst));
            received
                .checked_sub(written)
                .filter(|_| written > 0)
                .map(Duration::from_nanos)
                .ok_or_else(|| io::Error::other("a delta has not arrived"))
        };
        self.0.deltas.iter().skip(warm_up).map(time).collect()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.0.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Record for Timestamps {
    fn record(&self, text: &str, _kept: &mut String) {
        if let Ok(number) = text.parse() {
            self.received(number);
        }
    }
}

/// Percentiles of latencies, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    count: usize,
}

impl Percentiles {
    pub(crate) fn from_times(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let us = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
        let percentile = |percent: usize| us(times.get(times.len() * percent / 100));
        Self {
            p50: percentile(50),
            p99: percentile(99),
            max: us(times.last()),
            count: times.len(),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "p50_us": rounded(self.p50),
            "p99_us": rounded(self.p99),
            "max_us": rounded(self.max),
            "updates": self.count,
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures wall-clock time and never runs with paused time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_that_never_arrived_is_an_error() {
        let timestamps = Timestamps::new(3);
        (0..3).for_each(|number| timestamps.written(number));
        timestamps.record("1", &mut String::new());
        timestamps.record("2", &mut String::new());
        assert_eq!(timestamps.times(1).unwrap().len(), 2);
        assert!(timestamps.times(0).is_err());
    }

    #[test]
    fn percentiles_cover_all_times() {
        let percentiles =
            Percentiles::from_times((0..100).rev().map(Duration::from_micros).collect());
        assert_eq!(
            (percentiles.p50, percentiles.p99, percentiles.max),
            (50.0, 99.0, 99.0)
        );
    }
}
