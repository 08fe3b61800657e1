//! The idempotency keys that are in use.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Claim, ClaimKey, StreamId};

/// How long a claim is kept whose stream is never opened. A request waits ten minutes at most for its response head.
const PENDING_FOR: Duration = Duration::from_secs(15 * 60);

#[derive(Default)]
pub(super) struct Claims {
    held: HashMap<String, Held>,
    /// The claims whose stream had not been opened, in the order in which they expire.
    pending: VecDeque<(Instant, String)>,
}

struct Held {
    id: StreamId,
    fingerprint: [u8; 32],
    /// When it expires, if its stream is not opened before.
    pending_until: Option<Instant>,
}

impl Claims {
    pub(super) fn claim(&mut self, key: &ClaimKey, id: &StreamId) -> Claim {
        if let Some(held) = self.held.get(key.name()).filter(|held| held.id != *id) {
            return Claim::Held {
                id: held.id.clone(),
                fingerprint: held.fingerprint,
            };
        }
        if !self.held.contains_key(key.name()) {
            let until = Instant::now() + PENDING_FOR;
            self.insert(key, id, Some(until));
            self.pending.push_back((until, key.name().to_owned()));
        }
        Claim::Acquired
    }

    fn insert(&mut self, key: &ClaimKey, id: &StreamId, pending_until: Option<Instant>) {
        let held = Held {
            id: id.clone(),
            fingerprint: key.fingerprint,
            pending_until,
        };
        self.held.insert(key.name().to_owned(), held);
    }

    /// Keeps the claim of a stream that is opened, until it is released.
    pub(super) fn keep(&mut self, key: &ClaimKey, id: &StreamId) {
        let is_free_or_own = self.held.get(key.name()).is_none_or(|held| held.id == *id);
        if is_free_or_own {
            self.insert(key, id, None);
        }
    }

    pub(super) fn release(&mut self, name: &str, id: &StreamId) {
        if self.held.get(name).is_some_and(|held| held.id == *id) {
            self.held.remove(name);
        }
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        while self.pending.front().is_some_and(|(until, _)| *until <= now)
            && let Some((until, name)) = self.pending.pop_front()
        {
            // The name may have been released, and claimed again since.
            let is_pending = |held: &Held| held.pending_until == Some(until);
            if self.held.get(&name).is_some_and(is_pending) {
                self.held.remove(&name);
            }
        }
    }
}
