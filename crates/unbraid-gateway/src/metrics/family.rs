//! The families of metrics that have labels.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use unbraid_log::LogError;

/// How a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the values of the label")]
pub(crate) enum ViewKind {
    post,
    combined,
    choice,
}

/// Why a reader left before the end of its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the values of the label")]
pub(crate) enum DisconnectReason {
    client,
    slow,
    age,
    drain,
}

/// What a cancel means for the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the values of the label")]
pub(crate) enum UpstreamState {
    closed,
    continues,
}

/// The result of an append to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the values of the label")]
pub(crate) enum AppendResult {
    new,
    duplicate,
    error,
}

impl AppendResult {
    pub(crate) fn of(result: Result<unbraid_log::Appended, &LogError>) -> Self {
        match result {
            Ok(unbraid_log::Appended::New) => Self::new,
            Ok(unbraid_log::Appended::Duplicate) => Self::duplicate,
            Err(_) => Self::error,
        }
    }
}

macro_rules! labels {
    ($($name:ident { $($field:ident: $type:ty),* })*) => { $(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        struct $name { $($field: $type),* }
    )* };
}

labels! {
    Started { endpoint: &'static str, fan_out: &'static str }
    Ended { end: &'static str }
    Cancelled { upstream: UpstreamState }
    Readers { view: ViewKind }
    Disconnected { reason: DisconnectReason }
    Status { status: u16 }
    Appended { backend: &'static str, result: AppendResult }
}

#[derive(Debug)]
pub(super) struct Families {
    backend: &'static str,
    started: Family<Started, Counter>,
    ended: Family<Ended, Counter>,
    cancelled: Family<Cancelled, Counter>,
    readers: Family<Readers, Gauge>,
    resumes: Family<Readers, Counter>,
    disconnects: Family<Disconnected, Counter>,
    upstream_requests: Family<Status, Counter>,
    appends: Family<Appended, Counter>,
    pub(super) first_byte: Histogram,
    pub(super) delivery: Histogram,
    append: Histogram,
}

impl Families {
    pub(super) fn register(registry: &mut Registry, backend: &'static str) -> Self {
        let families = Self {
            backend,
            started: Family::default(),
            ended: Family::default(),
            cancelled: Family::default(),
            readers: Family::default(),
            resumes: Family::default(),
            disconnects: Family::default(),
            upstream_requests: Family::default(),
            appends: Family::default(),
            // 10 ms to 164 s: a model may think for minutes before it answers.
            first_byte: Histogram::new(exponential_buckets(0.01, 2.0, 15)),
            // 10 us to 5 s.
            delivery: Histogram::new(exponential_buckets(0.000_01, 2.0, 20)),
            append: Histogram::new(exponential_buckets(0.000_001, 4.0, 12)),
        };
        let f = &families;
        registry.register(
            "streams_started",
            "Generations that started",
            f.started.clone(),
        );
        registry.register("streams_ended", "Generations that ended", f.ended.clone());
        registry.register(
            "choices_cancelled",
            "Choices that were cancelled",
            f.cancelled.clone(),
        );
        registry.register("readers", "Connected readers", f.readers.clone());
        registry.register(
            "resumes",
            "Readers that continued after a cursor",
            f.resumes.clone(),
        );
        registry.register(
            "reader_disconnects",
            "Readers that left before the end of their view",
            f.disconnects.clone(),
        );
        registry.register(
            "upstream_requests",
            "Requests to the upstream",
            f.upstream_requests.clone(),
        );
        registry.register("log_appends", "Appends to the log", f.appends.clone());
        registry.register(
            "upstream_first_byte_seconds",
            "From a request to the head of the upstream's response",
            f.first_byte.clone(),
        );
        registry.register(
            "delivery_seconds",
            "From a read of the upstream to the write to a reader",
            f.delivery.clone(),
        );
        registry.register(
            "log_append_seconds",
            "The duration of an append",
            f.append.clone(),
        );
        families.start_at_zero();
        families
    }

    /// A counter that appears with its first event hides that event from `rate` and `increase`.
    fn start_at_zero(&self) {
        for view in [ViewKind::post, ViewKind::combined, ViewKind::choice] {
            drop(self.readers.get_or_create(&Readers { view }));
            drop(self.resumes.get_or_create(&Readers { view }));
        }
        for upstream in [UpstreamState::closed, UpstreamState::continues] {
            drop(self.cancelled.get_or_create(&Cancelled { upstream }));
        }
        for reason in [
            DisconnectReason::client,
            DisconnectReason::slow,
            DisconnectReason::age,
            DisconnectReason::drain,
        ] {
            drop(self.disconnects.get_or_create(&Disconnected { reason }));
        }
    }

    pub(super) fn started(&self, endpoint: &'static str, fan_out: bool) {
        let fan_out = if fan_out { "true" } else { "false" };
        self.started
            .get_or_create(&Started { endpoint, fan_out })
            .inc();
    }

    pub(super) fn ended(&self, end: &'static str) {
        self.ended.get_or_create(&Ended { end }).inc();
    }

    pub(super) fn cancelled(&self, upstream: UpstreamState) {
        self.cancelled.get_or_create(&Cancelled { upstream }).inc();
    }

    pub(super) fn reader_connected(&self, view: ViewKind, resumed: bool) {
        self.readers.get_or_create(&Readers { view }).inc();
        if resumed {
            self.resumes.get_or_create(&Readers { view }).inc();
        }
    }

    pub(super) fn reader_left(&self, view: ViewKind, reason: Option<DisconnectReason>) {
        self.readers.get_or_create(&Readers { view }).dec();
        if let Some(reason) = reason {
            self.disconnects
                .get_or_create(&Disconnected { reason })
                .inc();
        }
    }

    pub(super) fn upstream_request(&self, status: u16) {
        self.upstream_requests
            .get_or_create(&Status { status })
            .inc();
    }

    pub(super) fn appended(&self, result: AppendResult, after: Duration) {
        let backend = self.backend;
        self.appends
            .get_or_create(&Appended { backend, result })
            .inc();
        self.append.observe(after.as_secs_f64());
    }
}
