//! Whether a producer is still there: its lease record changes.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use unbraid_log::StreamId;

/// When this gateway has last seen the lease of a stream change, by its own monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    watched: Mutex<HashMap<StreamId, Watch>>,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    sequence: u64,
    /// The connection on which it was seen. While the server was away, no producer could renew.
    epoch: u64,
    since: Instant,
    seen: Instant,
}

/// Above this number, watches are removed that were not used for a while.
const MANY: usize = 4096;
const UNUSED: Duration = Duration::from_secs(600);

impl Leases {
    /// Notes the number of the lease record, and returns for how long it has not changed.
    pub(crate) fn observe(&self, id: &StreamId, sequence: u64, epoch: u64) -> Duration {
        let now = Instant::now();
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() > MANY {
            watched.retain(|_, watch| now - watch.seen < UNUSED);
        }
        let fresh = Watch {
            sequence,
            epoch,
            since: now,
            seen: now,
        };
        let watch = watched.entry(id.clone()).or_insert(fresh);
        if (watch.sequence, watch.epoch) != (sequence, epoch) {
            *watch = fresh;
        }
        watch.seen = now;
        now - watch.since
    }

    /// Notes that the producer has just renewed its lease: a record with another number is as old as this call.
    pub(crate) fn forget(&self, id: &StreamId) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_ages_only_while_it_could_be_renewed() {
        let (leases, id) = (Leases::default(), StreamId::random().unwrap());
        let second = Duration::from_secs(1);
        assert_eq!(leases.observe(&id, 7, 1), Duration::ZERO);
        tokio::time::advance(second).await;
        assert_eq!(leases.observe(&id, 7, 1), second);
        assert_eq!(leases.observe(&id, 8, 1), Duration::ZERO, "renewed");
        tokio::time::advance(second).await;
        assert_eq!(leases.observe(&id, 8, 2), Duration::ZERO, "reconnected");
        tokio::time::advance(second).await;
        assert_eq!(leases.observe(&id, 8, 2), second);
        leases.forget(&id);
        assert_eq!(leases.observe(&id, 8, 2), Duration::ZERO);
    }
}
