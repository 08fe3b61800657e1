//! Ends readers that hang, and measures the others.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::chaos::{
    LogKind, Options,
    gateways::Gateways,
    history::{GatewayId, History},
    streams::Received,
};

/// Watches the readers of a round.
#[derive(Debug)]
pub(super) struct Monitor<'a> {
    history: &'a History,
    gateways: &'a Gateways,
    limit: Duration,
    /// Whether the lease is judged by each gateway for itself, from the moment at which it has a reader of the stream.
    is_judged_by_gateway: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// The longest time from the moment at which a stream could not be produced any more and everything worked to the end of
    /// one of its readers.
    pub(super) slowest: Duration,
    pub(super) exited: Vec<(GatewayId, i32)>,
}

/// What a reader may take beyond the lease.
const BEYOND_LEASE: Duration = Duration::from_secs(2);

/// The time of the client itself: it waits before it connects again.
const MARGIN: Duration = Duration::from_millis(500);

/// How often readers are checked.
const INTERVAL: Duration = Duration::from_millis(50);

/// No round takes as long, whatever its faults.
const LONGEST_ROUND: Duration = Duration::from_secs(180);

impl<'a> Monitor<'a> {
    pub(super) fn new(options: &Options, history: &'a History, gateways: &'a Gateways) -> Self {
        Self {
            history,
            gateways,
            limit: options.lease + BEYOND_LEASE + MARGIN,
            // The keys of Redis expire by themselves.
            is_judged_by_gateway: options.log != LogKind::Redis,
        }
    }

    /// Returns when each reader has ended, or was ended.
    pub(super) async fn watch(&self, readers: &[(Arc<Received>, JoinHandle<()>)]) -> Watched {
        let mut watched = Watched::default();
        let mut waiting: HashMap<usize, (GatewayId, Instant)> = HashMap::new();
        let start = Instant::now();
        loop {
            let mut open = 0;
            for (index, (received, task)) in readers.iter().enumerate() {
                if received.is_done() {
                    if let Some((_, since)) = waiting.remove(&index) {
                        let since = self.counted_from(received, since);
                        watched.slowest = watched.slowest.max(since.elapsed());
                    }
                    continue;
                }
                if task.is_finished() {
                    // A client that panics received nothing that can be judged.
                    received.hang(start.elapsed());
                    continue;
                }
                open += 1;
                if start.elapsed() > LONGEST_ROUND {
                    task.abort();
                    received.hang(start.elapsed());
                    continue;
                }
                if !self.may_end(received) {
                    waiting.remove(&index);
                    continue;
                }
                let gateway = self.gateways.id(received.gateway.load(Ordering::Relaxed));
                let entry = waiting
                    .entry(index)
                    .or_insert_with(|| (gateway, Instant::now()));
                if self.is_judged_by_gateway && entry.0 != gateway {
                    *entry = (gateway, Instant::now());
                }
                let since = self.counted_from(received, entry.1);
                if since.elapsed() > self.limit {
                    task.abort();
                    received.hang(since.elapsed());
                }
            }
            watched.exited.extend(self.gateways.exited());
            if open == 0 {
                return watched;
            }
            sleep(INTERVAL).await;
        }
    }

    /// From when on the time counts for a reader that waits since this time: not before the last fault of the log, or of the
    /// gateway that it uses now.
    fn counted_from(&self, received: &Received, since: Instant) -> Instant {
        let sign = self
            .history
            .last_sign_of_life(received.stream.answer.number);
        let slot = received.gateway.load(Ordering::Relaxed);
        let quiet = self.history.quiet_since(slot);
        sign.into_iter().chain(quiet).fold(since, Instant::max)
    }

    /// Whether nothing more can be produced for a reader, and nothing but its gateway delays its end.
    fn may_end(&self, received: &Received) -> bool {
        let slot = received.gateway.load(Ordering::Relaxed);
        let is_reading = received.update(|state| state.is_reading);
        is_reading
            && self.history.is_over(received.stream.answer.number)
            && self.history.is_quiet(slot)
    }
}
