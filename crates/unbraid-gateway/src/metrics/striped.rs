//! Counts that every delta changes. Each thread has its own stripe: threads that wrote to one cache line would take it from each
//! other for each delta. The numbers of the stripes are those of the process and are not given back, so threads that came and went
//! may let two others share one, which costs time and no count.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};

/// More threads than that share stripes.
const STRIPES: usize = 16;

/// A value for each thread.
#[derive(Debug)]
pub(super) struct Striped<T>([Stripe<T>; STRIPES]);

/// Processors fetch two lines of 64 bytes at once.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<T>(T);

thread_local! {
    static STRIPE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Relaxed) % STRIPES
    };
}

impl<T> Striped<T> {
    pub(super) fn new(value: impl Fn() -> T) -> Self {
        Self(std::array::from_fn(|_| Stripe(value())))
    }

    /// The value of this thread.
    pub(super) fn own(&self) -> &T {
        // On some platforms, a thread that is ending has no number any more.
        let stripe = STRIPE.try_with(|stripe| *stripe).unwrap_or_default();
        let [first, ..] = &self.0;
        &self.0.get(stripe).unwrap_or(first).0
    }

    /// The values of all threads.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|stripe| &stripe.0)
    }
}

/// A counter without a lock and without a shared line.
#[derive(Debug, Clone)]
pub(super) struct StripedCounter(Arc<Striped<AtomicU64>>);

impl StripedCounter {
    pub(super) fn inc(&self) {
        self.0.own().fetch_add(1, Relaxed);
    }
}

impl Default for StripedCounter {
    fn default() -> Self {
        Self(Arc::new(Striped::new(AtomicU64::default)))
    }
}

impl EncodeMetric for StripedCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let count: u64 = self.0.all().map(|count| count.load(Relaxed)).sum();
        encoder.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for StripedCounter {
    const TYPE: MetricType = MetricType::Counter;
}

#[cfg(test)]
mod tests {
    use std::thread;

    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn more_threads_than_stripes_lose_no_count() {
        let counter = StripedCounter::default();
        let threads = (0..2 * STRIPES).map(|_| {
            let counter = counter.clone();
            thread::spawn(move || (0..1000).for_each(|_| counter.inc()))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        let mut registry = Registry::default();
        registry.register("x", "X", counter);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let expected = format!("# HELP x X.\n# TYPE x counter\nx_total {}\n# EOF\n", 32_000);
        assert_eq!(text, expected);
    }
}
