//! Whether a producer is still there: its lease record changes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
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
    /// Since when the server has stored values. While it did not, no producer could renew.
    pub(crate) present_since: Instant,
}

/// Above this number, watches are removed that were not used for a while.
const MANY: usize = 4096;
const UNUSED: Duration = Duration::from_secs(600);

impl Leases {
    /// Notes the lease record, and returns for how long it has not changed although it could.
    pub(crate) fn observe(&self, id: &StreamId, observed: Observed) -> Duration {
        let now = Instant::now();
        let mut watched = self.watched();
        if watched.len() > MANY {
            watched.retain(|_, watch| now - watch.seen < UNUSED);
        }
        let Observed {
            sequence,
            previous,
            present_since,
        } = observed;
        let fresh = Watch {
            sequence,
            since: now,
            heard: None,
            seen: now,
        };
        let watch = watched.entry(id.clone()).or_insert(fresh);
        if watch.sequence != sequence {
            let heard = watch.heard;
            *watch = fresh;
            if let Some((after, time)) = heard
                && previous == Some(after)
            {
                watch.since = time;
            }
        }
        watch.seen = now;
        now - watch.since.max(present_since).min(now)
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

    fn record(sequence: u64, previous: Option<u64>, present_since: Instant) -> Observed {
        Observed {
            sequence,
            previous,
            present_since,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ages_only_while_it_could_be_renewed() {
        let (leases, id) = (Leases::default(), StreamId::random().unwrap());
        let start = Instant::now();
        assert_eq!(leases.observe(&id, record(7, None, start)), Duration::ZERO);
        tokio::time::advance(SECOND).await;
        assert_eq!(leases.observe(&id, record(7, None, start)), SECOND);
        let renewed = leases.observe(&id, record(8, Some(7), start));
        assert_eq!(renewed, Duration::ZERO);
        tokio::time::advance(2 * SECOND).await;
        // The server was away until now.
        let back = Instant::now();
        let after = leases.observe(&id, record(8, Some(7), back));
        assert_eq!(after, Duration::ZERO);
        tokio::time::advance(SECOND).await;
        assert_eq!(leases.observe(&id, record(8, Some(7), back)), SECOND);
        leases.forget(&id);
        let fresh = leases.observe(&id, record(8, Some(7), back));
        assert_eq!(fresh, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_was_heard_dates_its_record_and_no_other() {
        let (leases, id) = (Leases::default(), StreamId::random().unwrap());
        let start = Instant::now();
        leases.hear(&id, 1);
        assert_eq!(leases.observe(&id, record(7, None, start)), Duration::ZERO);
        leases.hear(&id, 7);
        tokio::time::advance(SECOND).await;
        assert_eq!(leases.observe(&id, record(9, Some(7), start)), SECOND);
        leases.hear(&id, 9);
        tokio::time::advance(SECOND).await;
        // The renewal of 11 was not heard.
        let later = leases.observe(&id, record(12, Some(11), start));
        assert_eq!(later, Duration::ZERO);
        leases.hear(&id, 12);
        tokio::time::advance(2 * SECOND).await;
        let back = Instant::now();
        let after = leases.observe(&id, record(13, Some(12), back));
        assert_eq!(after, Duration::ZERO);
    }
}
