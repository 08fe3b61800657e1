//! The idempotency keys that are in use.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use super::prune::Pruner;
use crate::{Claim, ClaimKey, StreamId};

/// A claim whose stream is never opened is not kept longer than this.
const MAX_PENDING: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
pub(super) struct Claims {
    held: HashMap<String, Held>,
    /// The claims whose stream had not been opened, in the order in which they expire.
    pending: VecDeque<(Instant, String)>,
    pruner: Pruner,
}

struct Held {
    id: StreamId,
    fingerprint: [u8; 32],
    /// When it expires, if its stream is not opened before.
    pending_until: Option<Instant>,
}

impl Claims {
    /// Claims a key for a stream that is opened later, within the time `pending`, which is the same for all claims. Its holder
    /// begins this time anew with each call.
    pub(super) fn claim(
        &mut self,
        key: &ClaimKey,
        id: &StreamId,
        pending: Duration,
        is_expired: impl FnOnce(&StreamId) -> bool,
    ) -> Claim {
        match self.held.get(key.name()) {
            Some(held) if held.id == *id && held.pending_until.is_none() => {}
            Some(held) if held.id != *id && !is_expired(&held.id) => {
                return Claim::Held {
                    id: held.id.clone(),
                    fingerprint: held.fingerprint,
                };
            }
            Some(_) | None => {
                let until = Instant::now() + pending.min(MAX_PENDING);
                self.insert(key, id, Some(until));
                self.push_pending(until, key.name());
            }
        }
        Claim::Acquired
    }

    /// An earlier entry of the same claim has no effect any more, because it has another time.
    fn push_pending(&mut self, until: Instant, name: &str) {
        let held = &self.held;
        self.pruner.prune(&mut self.pending, |(until, name)| {
            let held = held.get(name);
            held.is_some_and(|held| held.pending_until == Some(*until))
        });
        self.pending.push_back((until, name.to_owned()));
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

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
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
