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

#[derive(Debug, Clone)]
pub(super) struct DurationHistogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    buckets: Box<[Bucket]>,
    sum_nanos: AtomicU64,
}

#[derive(Debug)]
struct Bucket {
    /// The greatest duration that it counts, in nanoseconds.
    bound: u64,
    count: AtomicU64,
}

impl DurationHistogram {
    /// A histogram with `len` buckets, each of which reaches `factor` times as far as the one before, and one for the rest.
    pub(super) fn new(first: Duration, factor: u32, len: usize) -> Self {
        let next = |bound: &Duration| Some(bound.saturating_mul(factor));
        let bounds = std::iter::successors(Some(first), next).take(len);
        let bounds = bounds.map(nanos).chain([u64::MAX]);
        let buckets = bounds.map(|bound| Bucket {
            bound,
            count: AtomicU64::new(0),
        });
        Self(Arc::new(Inner {
            buckets: buckets.collect(),
            sum_nanos: AtomicU64::new(0),
        }))
    }

    pub(super) fn observe(&self, duration: Duration) {
        let nanos = nanos(duration);
        let bucket = self.0.buckets.iter().find(|bucket| nanos <= bucket.bound);
        if let Some(bucket) = bucket {
            bucket.count.fetch_add(1, Relaxed);
        }
        self.0.sum_nanos.fetch_add(nanos, Relaxed);
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
        let load = |bucket: &Bucket| (seconds(bucket.bound), bucket.count.load(Relaxed));
        let buckets: Vec<(f64, u64)> = self.0.buckets.iter().map(load).collect();
        // Not a counter of its own: it must equal the sum of these buckets, whatever is observed meanwhile.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.0.sum_nanos.load(Relaxed) as f64 / 1e9;
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
    fn a_duration_counts_in_every_bucket_that_reaches_it() {
        let histogram = DurationHistogram::new(Duration::from_millis(10), 2, 3);
        for millis in [1, 10, 11, 40, 41, 5000] {
            histogram.observe(Duration::from_millis(millis));
        }
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
