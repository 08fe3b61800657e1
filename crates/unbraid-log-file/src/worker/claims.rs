//! The idempotency keys that are in use.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use redb::ReadableTable;
use unbraid_log::{Claim, ClaimKey, LogStatus, StreamId};

use super::{Worker, apply::no_space};
use crate::{
    FileLogError,
    clock::now,
    job::{Effect, Job, Reply},
    space::Space,
    tables::Tables,
};

/// A claim whose stream is never opened is not kept longer than this.
const MAX_PENDING: Duration = Duration::from_secs(24 * 3600);

/// When claims end whose stream was not opened yet.
#[derive(Default)]
pub(super) struct PendingClaims {
    /// Who holds them, and until when, by their names.
    held: HashMap<String, (Instant, StreamId)>,
    /// Their names, in the order in which they end.
    ends: BTreeSet<(Instant, String)>,
}

impl PendingClaims {
    /// Holds a claim until this time, in place of an earlier one.
    fn hold(&mut self, name: &str, id: &StreamId, until: Instant) {
        let held = (until, id.clone());
        if let Some((earlier, _)) = self.held.insert(name.to_owned(), held) {
            self.ends.remove(&(earlier, name.to_owned()));
        }
        self.ends.insert((until, name.to_owned()));
    }

    /// Whether this stream's request holds a claim.
    fn is_held(&self, name: &str, id: &StreamId) -> bool {
        let held = self.held.get(name);
        held.is_some_and(|(until, holder)| holder == id && *until > now())
    }

    /// Its holder has released it.
    pub(super) fn remove(&mut self, name: &str, id: &StreamId) {
        if self.held.get(name).is_some_and(|(_, holder)| holder == id)
            && let Some((until, _)) = self.held.remove(name)
        {
            self.ends.remove(&(until, name.to_owned()));
        }
    }

    /// Whether one of them has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ends.first().is_some_and(|(until, _)| *until <= now())
    }

    /// The name and the holder of a claim that has ended.
    fn pop_ended(&mut self) -> Option<(String, StreamId)> {
        if !self.has_ended() {
            return None;
        }
        let (_, name) = self.ends.pop_first()?;
        let (_, id) = self.held.remove(&name)?;
        Some((name, id))
    }
}

impl Worker {
    /// Renews the claims in a group, and returns the other requests. A claim is renewed every second while its request waits, and
    /// that changes nothing in the file, so no transaction is written for it.
    pub(super) fn renew_claims(&mut self, group: Vec<Job>, effects: &mut Vec<Effect>) -> Vec<Job> {
        let mut others = Vec::with_capacity(group.len());
        for job in group {
            match job {
                Job::Claim { key, id, reply }
                    if self.book.pending_claims.is_held(key.name(), &id) =>
                {
                    self.hold(&key, &id);
                    effects.push(Effect::answer(reply, Ok(Claim::Acquired)));
                }
                other => others.push(other),
            }
        }
        others
    }

    pub(super) fn claim(
        &mut self,
        tables: &mut Tables<'_>,
        key: &ClaimKey,
        id: &StreamId,
        free: Space,
        reply: Reply<Claim>,
    ) -> Result<Effect, FileLogError> {
        let claimed = match held(tables, key.name())? {
            Some(held) if held.id == *id => {
                // In memory, so that it succeeds on a full disk.
                if !held.is_kept {
                    self.hold(key, id);
                }
                Ok(Claim::Acquired)
            }
            Some(held) if !self.has_expired(tables, &held.id)? => Ok(Claim::Held {
                id: held.id,
                fingerprint: held.fingerprint,
            }),
            Some(_) | None if free < Space::Low => Err(no_space()),
            Some(_) | None => {
                set_claim(tables, key, id, false)?;
                self.hold(key, id);
                Ok(Claim::Acquired)
            }
        };
        Ok(Effect::answer(reply, claimed))
    }

    /// Holds a claim until its stream is opened, or its holder has not repeated it for too long.
    fn hold(&mut self, key: &ClaimKey, id: &StreamId) {
        let pending = self.shared.options.claim_pending.min(MAX_PENDING);
        self.book
            .pending_claims
            .hold(key.name(), id, now() + pending);
    }

    fn has_expired(&self, tables: &Tables<'_>, id: &StreamId) -> Result<bool, FileLogError> {
        let status = self.shared.status_of(tables.row(id.as_str())?);
        Ok(matches!(status, Ok(LogStatus::Expired { .. })))
    }

    /// Frees the claims whose stream was not opened in time.
    pub(super) fn release_pending(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        while let Some((name, id)) = self.book.pending_claims.pop_ended() {
            if held(tables, &name)?.is_some_and(|held| !held.is_kept) {
                release(tables, &name, &id)?;
            }
        }
        Ok(())
    }
}

/// A claim as the file contains it.
struct Held {
    id: StreamId,
    fingerprint: [u8; 32],
    /// Whether its stream was opened.
    is_kept: bool,
}

fn held(tables: &Tables<'_>, name: &str) -> Result<Option<Held>, FileLogError> {
    let Some(row) = tables.claims.get(name)? else {
        return Ok(None);
    };
    let (id, fingerprint, is_kept) = row.value();
    let fingerprint = fingerprint.try_into().map_err(|_| FileLogError::Damaged {
        reason: "the fingerprint of a claim".to_owned(),
    })?;
    Ok(Some(Held {
        id: id.parse()?,
        fingerprint,
        is_kept,
    }))
}

fn set_claim(
    tables: &mut Tables<'_>,
    key: &ClaimKey,
    id: &StreamId,
    is_kept: bool,
) -> Result<(), FileLogError> {
    let row = (id.as_str(), &key.fingerprint[..], is_kept);
    tables.claims.insert(key.name(), row)?;
    Ok(())
}

/// Keeps the claim of a stream that is opened, until it is released.
pub(super) fn keep(
    tables: &mut Tables<'_>,
    key: &ClaimKey,
    id: &StreamId,
) -> Result<(), FileLogError> {
    match held(tables, key.name())? {
        Some(held) if held.id != *id => Ok(()),
        Some(_) | None => set_claim(tables, key, id, true),
    }
}

pub(super) fn release(
    tables: &mut Tables<'_>,
    name: &str,
    id: &StreamId,
) -> Result<(), FileLogError> {
    if held(tables, name)?.is_some_and(|held| held.id == *id) {
        tables.claims.remove(name)?;
    }
    Ok(())
}
