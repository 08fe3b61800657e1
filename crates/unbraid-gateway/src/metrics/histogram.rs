//! A histogram of durations without a lock: it is observed for each append and each write, by all threads.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::striped::Striped;

#[derive(Debug, Clone)]
pub(super) struct DurationHistogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The greatest duration that each bucket counts, in nanoseconds.
    bounds: Box<[u64]>,
    observed: Striped<Observed>,
}

/// What one thread has observed. The sum is in the same line as the counts of the first seven buckets, which are the usual ones.
#[derive(Debug, Default)]
#[repr(C)]
struct Observed {
    sum_nanos: AtomicU64,
    counts: [AtomicU64; MAX_BUCKETS],
}

const MAX_BUCKETS: usize = 24;

impl DurationHistogram {
    /// A histogram with `len` buckets, each of which reaches `factor` times as far as the one before, and one for the rest.
    pub(super) fn new(first: Duration, factor: u32, len: usize) -> Self {
        debug_assert!(len < MAX_BUCKETS, "buckets without a count");
        let next = |bound: &Duration| Some(bound.saturating_mul(factor));
        let bounds = std::iter::successors(Some(first), next).take(len);
        let bounds = bounds.map(nanos).chain([u64::MAX]);
        Self(Arc::new(Inner {
            bounds: bounds.collect(),
            observed: Striped::new(Observed::default),
        }))
    }

    pub(super) fn observe(&self, duration: Duration) {
        let nanos = nanos(duration);
        let observed = self.0.observed.own();
        let mut buckets = self.0.bounds.iter().zip(&observed.counts);
        if let Some((_, count)) = buckets.find(|(bound, _)| nanos <= **bound) {
            count.fetch_add(1, Relaxed);
        }
        observed.sum_nanos.fetch_add(nanos, Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn seconds(nanos: u64) -> f64 {
    match nanos {
        u64::MAX => f64::INFINITY,
        nanos => nanos as f64 / 1e9,
    }
}

impl EncodeMetric for DurationHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let threads = || self.0.observed.all();
        let count_of = |at: usize| {
            let counts = threads().filter_map(|observed| observed.counts.get(at));
            counts.map(|count| count.load(Relaxed)).sum::<u64>()
        };
        let bounds = self.0.bounds.iter().enumerate();
        let buckets: Vec<(f64, u64)> = bounds
            .map(|(at, bound)| (seconds(*bound), count_of(at)))
            .collect();
        // Not a counter of its own: it must equal the sum of these buckets, whatever is observed meanwhile.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let nanos = threads().map(|observed| observed.sum_nanos.load(Relaxed));
        // As an addition to an atomic, it wraps.
        let nanos = nanos.fold(0, u64::wrapping_add);
        let sum = nanos as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn a_sum_that_is_too_large_wraps() {
        let histogram = DurationHistogram::new(Duration::from_millis(10), 2, 3);
        histogram.observe(Duration::MAX);
        std::thread::scope(|scope| {
            scope.spawn(|| histogram.observe(Duration::MAX));
        });
        let mut registry = Registry::default();
        registry.register("x_seconds", "X", histogram);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("x_seconds_count 2\n"), "{text}");
    }

    #[test]
    fn a_duration_counts_in_every_bucket_that_reaches_it() {
        let histogram = DurationHistogram::new(Duration::from_millis(10), 2, 3);
        let observe = |millis: &[u64]| {
            for millis in millis {
                histogram.observe(Duration::from_millis(*millis));
            }
        };
        observe(&[1, 10, 11]);
        // Each thread has counts of its own.
        std::thread::scope(|scope| {
            scope.spawn(|| observe(&[40, 41, 5000]));
        });
        let mut registry = Registry::default();
        registry.register("x_seconds", "X", histogram);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let expected = "\
            # HELP x_seconds X.\n\
            # TYPE x_seconds histogram\n\
            x_seconds_sum 5.103\n\
            x_seconds_count 6\n\
            x_seconds_bucket{le=\"0.01\"} 2\n\
            x_seconds_bucket{le=\"0.02\"} 3\n\
            x_seconds_bucket{le=\"0.04\"} 4\n\
            x_seconds_bucket{le=\"+Inf\"} 6\n\
            # EOF\n";
        assert_eq!(text, expected);
    }
}
