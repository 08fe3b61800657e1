//! The families of metrics that have labels.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{
    histogram::DurationHistogram,
    labels::{AppendResult, DisconnectReason, UpstreamState, ViewKind},
    striped::StripedCounter,
};

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
    started: Family<Started, Counter>,
    ended: Family<Ended, Counter>,
    cancelled: Family<Cancelled, Counter>,
    readers: Family<Readers, Gauge>,
    resumes: Family<Readers, Counter>,
    disconnects: Family<Disconnected, Counter>,
    upstream_requests: Family<Status, Counter>,
    /// By result, in the order of `AppendResult::ALL`: a family would be locked for each append.
    appends: [StripedCounter; AppendResult::ALL.len()],
    pub(super) first_byte: DurationHistogram,
    pub(super) delivery: DurationHistogram,
    append: DurationHistogram,
}

impl Families {
    pub(super) fn register(registry: &mut Registry, backend: &'static str) -> Self {
        let appends: Family<Appended, StripedCounter> = Family::default();
        let append = |result| appends.get_or_create_owned(&Appended { backend, result });
        let micros = Duration::from_micros;
        let families = Self {
            started: Family::default(),
            ended: Family::default(),
            cancelled: Family::default(),
            readers: Family::default(),
            resumes: Family::default(),
            disconnects: Family::default(),
            upstream_requests: Family::default(),
            appends: AppendResult::ALL.map(append),
            // 10 ms to 164 s: a model may think for minutes before it answers.
            first_byte: DurationHistogram::new(micros(10_000), 2, 15),
            // 10 us to 5 s.
            delivery: DurationHistogram::new(micros(10), 2, 20),
            append: DurationHistogram::new(micros(1), 4, 12),
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
        registry.register("log_appends", "Appends to the log", appends);
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
        for view in ViewKind::ALL {
            drop(self.readers.get_or_create(&Readers { view }));
            drop(self.resumes.get_or_create(&Readers { view }));
        }
        for upstream in UpstreamState::ALL {
            drop(self.cancelled.get_or_create(&Cancelled { upstream }));
        }
        for reason in DisconnectReason::ALL {
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
        let known = AppendResult::ALL.iter().zip(&self.appends);
        if let Some((_, count)) = known.into_iter().find(|(known, _)| **known == result) {
            count.inc();
        }
        self.append.observe(after);
    }
}
