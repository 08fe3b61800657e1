//! The place of a running generation in the table.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use tokio::sync::mpsc;
use unbraid_log::{End, StreamId};

use super::{Command, Live, StreamPermit};

/// A running generation's place in the table. Dropping it is its end.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) live: Arc<Live>,
    pub(crate) end: End,
    permit: StreamPermit,
    /// Whether the log says that each choice has a request of its own.
    is_fan_out_in_log: bool,
    /// The endpoint, until the metrics have the start of the generation.
    uncounted: Option<&'static str>,
}

impl Registration {
    /// Notes whether each choice has a request of its own. The metrics count the generation at the first call, because a counter
    /// cannot be corrected.
    pub(crate) fn set_fan_out(&mut self, is_fan_out: bool) {
        if is_fan_out {
            self.live.fanned_out.store(true, Ordering::Relaxed);
        }
        if let Some(endpoint) = self.uncounted.take() {
            let metrics = &self.permit.streams.0.metrics;
            metrics.stream_started(endpoint, is_fan_out);
        }
    }

    /// Whether the metrics have the start of the generation.
    pub(crate) fn is_counted(&self) -> bool {
        self.uncounted.is_none()
    }
}

impl StreamPermit {
    /// Enters a generation into the table, and whether its log says that it is a fan-out.
    pub(crate) fn register(
        self,
        id: StreamId,
        endpoint: &'static str,
        fan_out: bool,
    ) -> (Registration, mpsc::UnboundedReceiver<Command>) {
        let (commands, received) = mpsc::unbounded_channel();
        let live = Arc::new(Live {
            id: id.clone(),
            commands,
            readers: AtomicUsize::new(0),
            received: AtomicU64::new(0),
            base: self.streams.0.base,
            fanned_out: AtomicBool::new(fan_out),
        });
        self.streams.table().live.insert(id, Arc::clone(&live));
        self.streams.0.metrics.stream_opened();
        self.streams
            .0
            .unsealed
            .send_modify(|unsealed| *unsealed += 1);
        let registration = Registration {
            live,
            end: End::ProducerLost,
            permit: self,
            is_fan_out_in_log: fan_out,
            uncounted: Some(endpoint),
        };
        (registration, received)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // If it has ended before anything else was known.
        self.set_fan_out(self.is_fan_out_in_log);
        let streams = &self.permit.streams;
        let mut table = streams.table();
        table.live.remove(&self.live.id);
        if self.live.fanned_out.load(Ordering::Relaxed) && !self.is_fan_out_in_log {
            table.fanned_out.insert(&self.live.id, ());
        }
        drop(table);
        streams.0.metrics.stream_ended(self.end.as_str());
        streams.0.unsealed.send_modify(|unsealed| *unsealed -= 1);
    }
}
