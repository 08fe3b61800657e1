//! Whether a producer is still there: its lease record changes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use unbraid_log::StreamId;

use crate::contact::BRIEF;

/// When this gateway has last seen the lease of a stream change, by its own monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    watched: Mutex<HashMap<StreamId, Watch>>,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    sequence: u64,
    /// The connection on which it was seen, and the server. While the server was away, no producer could renew.
    epoch: u64,
    server: u64,
    since: Instant,
    /// The number of the record before a renewal that was heard, and when it was heard. The stored record has the same number,
    /// so it is known to be this renewal, and no later one.
    heard: Option<(u64, Instant)>,
    seen: Instant,
}

/// The lease record of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) sequence: u64,
    /// The number of the record that it has replaced.
    pub(crate) previous: Option<u64>,
    /// The connection on which it was read, and the server.
    pub(crate) epoch: u64,
    pub(crate) server: u64,
    /// How long the lease lasts.
    pub(crate) duration: Duration,
}

/// Above this number, watches are removed that were not used for a while.
const MANY: usize = 4096;
const UNUSED: Duration = Duration::from_secs(600);

impl Leases {
    /// Notes the lease record, and returns for how long it has not changed.
    pub(crate) fn observe(&self, id: &StreamId, observed: Observed) -> Duration {
        let now = Instant::now();
        let mut watched = self.watched();
        if watched.len() > MANY {
            watched.retain(|_, watch| now - watch.seen < UNUSED);
        }
        let Observed {
            sequence,
            previous,
            epoch,
            server,
            duration,
        } = observed;
        let fresh = Watch {
            sequence,
            epoch,
            server,
            since: now,
            heard: None,
            seen: now,
        };
        let watch = watched.entry(id.clone()).or_insert(fresh);
        // Also at most half of the lease.
        let is_brief = watch.server == server && now - watch.seen <= BRIEF.min(duration / 2);
        let had_contact = watch.epoch == epoch || is_brief;
        if watch.sequence != sequence || !had_contact {
            let heard = watch.heard.filter(|_| had_contact);
            *watch = fresh;
            if let Some((after, time)) = heard
                && previous == Some(after)
            {
                watch.since = time;
            }
        }
        (watch.epoch, watch.seen) = (epoch, now);
        now - watch.since
    }

    /// Notes a renewal that replaces the record with this number.
    pub(crate) fn hear(&self, id: &StreamId, previous: u64) {
        if let Some(watch) = self.watched().get_mut(id) {
            let now = Instant::now();
            (watch.heard, watch.seen) = (Some((previous, now)), now);
        }
    }

    /// Forgets a stream that has ended.
    pub(crate) fn forget(&self, id: &StreamId) {
        self.watched().remove(id);
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<StreamId, Watch>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn record(sequence: u64, previous: Option<u64>, epoch: u64) -> Observed {
        Observed {
            sequence,
            previous,
            epoch,
            server: epoch / 10,
            duration: 5 * SECOND,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ages_only_while_it_could_be_renewed() {
        let (leases, id) = (Leases::default(), StreamId::random().unwrap());
        assert_eq!(leases.observe(&id, record(7, None, 1)), Duration::ZERO);
        tokio::time::advance(SECOND).await;
        assert_eq!(leases.observe(&id, record(7, None, 1)), SECOND);
        let renewed = leases.observe(&id, record(8, Some(7), 1));
        assert_eq!(renewed, Duration::ZERO);
        tokio::time::advance(2 * SECOND).await;
        let reconnected = leases.observe(&id, record(8, Some(7), 2));
        assert_eq!(reconnected, Duration::ZERO);
        tokio::time::advance(SECOND).await;
        assert_eq!(leases.observe(&id, record(8, Some(7), 2)), SECOND);
        leases.forget(&id);
        assert_eq!(leases.observe(&id, record(8, Some(7), 2)), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_replaced_at_once_does_not_renew_a_lease() {
        let (leases, id) = (Leases::default(), StreamId::random().unwrap());
        assert_eq!(leases.observe(&id, record(7, None, 11)), Duration::ZERO);
        for age in 1..=4 {
            tokio::time::advance(SECOND).await;
            let observed = record(7, None, 11 + u64::from(age));
            assert_eq!(leases.observe(&id, observed), age * SECOND);
        }
        // A server that was started again had no producers for an unknown part of the time.
        tokio::time::advance(SECOND).await;
        let restarted = leases.observe(&id, record(7, None, 20));
        assert_eq!(restarted, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_was_heard_dates_its_record_and_no_other() {
        let (leases, id) = (Leases::default(), StreamId::random().unwrap());
        leases.hear(&id, 1);
        assert_eq!(leases.observe(&id, record(7, None, 1)), Duration::ZERO);
        leases.hear(&id, 7);
        tokio::time::advance(SECOND).await;
        assert_eq!(leases.observe(&id, record(9, Some(7), 1)), SECOND);
        leases.hear(&id, 9);
        tokio::time::advance(SECOND).await;
        // The renewal of 11 was not heard.
        let later = leases.observe(&id, record(12, Some(11), 1));
        assert_eq!(later, Duration::ZERO);
        leases.hear(&id, 12);
        tokio::time::advance(2 * SECOND).await;
        let reconnected = leases.observe(&id, record(13, Some(12), 2));
        assert_eq!(reconnected, Duration::ZERO);
    }
}
