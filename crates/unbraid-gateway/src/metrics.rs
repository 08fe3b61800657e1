//! The numbers of `/metrics`, in the OpenMetrics format. No label contains an id, a key or a model's name.

mod family;
mod histogram;
mod labels;
mod striped;

use std::{fmt, sync::Arc, time::Duration};

use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

use unbraid_log::{Appended, LogError};

use self::family::Families;
pub(crate) use self::labels::{AppendResult, DisconnectReason, UpstreamState, ViewKind};

/// All metrics of one gateway. There is no global registry, so that a process can run several gateways.
#[derive(Clone)]
pub(crate) struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    families: Families,
    streams_running: Gauge,
    log_bytes: Gauge,
    log_degraded: Gauge,
    log_repairs: Counter,
}

impl Metrics {
    /// The metrics of a gateway with this kind of log.
    pub(crate) fn new(backend: &'static str) -> Self {
        let mut registry = Registry::with_prefix("unbraid");
        let families = Families::register(&mut registry, backend);
        let gauge = |registry: &mut Registry, name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let streams_running = gauge(&mut registry, "streams_running", "Running generations");
        let log_degraded = gauge(
            &mut registry,
            "log_degraded",
            "Running generations that are kept in memory because the log fails",
        );
        let log_bytes = gauge(
            &mut registry,
            "log_bytes",
            "Bytes of the streams that are in memory",
        );
        let log_repairs = Counter::default();
        registry.register(
            "log_repairs",
            "Records that were appended again because the log had lost them",
            log_repairs.clone(),
        );
        Self(Arc::new(Inner {
            registry,
            families,
            streams_running,
            log_bytes,
            log_degraded,
            log_repairs,
        }))
    }

    /// The text of all metrics.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _infallible: fmt::Result = encode(&mut text, &self.0.registry);
        text
    }

    pub(crate) fn stream_opened(&self) {
        self.0.streams_running.inc();
    }

    /// Counts a generation once it is known whether it has a request for each choice.
    pub(crate) fn stream_started(&self, endpoint: &'static str, fan_out: bool) {
        self.0.families.started(endpoint, fan_out);
    }

    pub(crate) fn stream_ended(&self, end: &'static str) {
        self.0.families.ended(end);
        self.0.streams_running.dec();
    }

    pub(crate) fn choice_cancelled(&self, upstream: UpstreamState) {
        self.0.families.cancelled(upstream);
    }

    pub(crate) fn reader_connected(&self, view: ViewKind, resumed: bool) {
        self.0.families.reader_connected(view, resumed);
    }

    pub(crate) fn reader_left(&self, view: ViewKind, reason: Option<DisconnectReason>) {
        self.0.families.reader_left(view, reason);
    }

    pub(crate) fn upstream_request(&self, status: u16) {
        self.0.families.upstream_request(status);
    }

    pub(crate) fn first_byte(&self, after: Duration) {
        self.0.families.first_byte.observe(after);
    }

    pub(crate) fn delivered(&self, after: Duration) {
        self.0.families.delivery.observe(after);
    }

    pub(crate) fn appended(&self, result: AppendResult, after: Duration) {
        self.0.families.appended(result, after);
    }

    /// The task that writes a shared log has a result.
    pub(crate) fn append_ended(&self, result: Result<Appended, &LogError>, after: Duration) {
        self.appended(AppendResult::of(result), after);
    }

    pub(crate) fn stream_degraded(&self, is_degraded: bool) {
        if is_degraded {
            self.0.log_degraded.inc();
        } else {
            self.0.log_degraded.dec();
        }
    }

    pub(crate) fn records_repaired(&self, records: u64) {
        self.0.log_repairs.inc_by(records);
    }

    pub(crate) fn set_log_bytes(&self, bytes: u64) {
        self.0
            .log_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
