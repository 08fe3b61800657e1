//! What the lock of a log in memory protects: its streams, its claims, and when they expire.

mod claims;
mod prune;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime},
};

use claims::Claims;
use prune::Pruner;
use tokio::time::Instant;

use crate::{
    Claim, ClaimKey, End, Journal, LogError, LogStatus, Meta, StreamEnd, StreamId, journal::Wakers,
};

/// How long the meta data of a stream outlives its events: the time in which it is reported as expired.
const EXPIRED_FOR: Duration = Duration::from_secs(24 * 3600);

/// How long a stream is kept that nobody seals.
const UNSEALED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The meta data of at most this many expired streams is kept. It takes about 40 MiB, and with short streams a day has
/// more of them than memory has room for.
const MAX_EXPIRED: usize = 100_000;

/// The memory of an expired stream beside its texts, in bytes: its places in a table and a queue, and its meta data.
const EXPIRED_COST: usize = 320;

/// The memory of a stream beside its records and its texts, in bytes.
const STREAM_COST: usize = 1024;

/// Takes the first entry of a queue, if it is due.
fn pop_due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<(Instant, T)> {
    queue.front().filter(|(due, _)| *due <= now)?;
    queue.pop_front()
}

pub(super) struct State {
    streams: HashMap<StreamId, Stream>,
    kept: usize,
    /// Sealed streams in the order of their seals, which is that of their expiry. One that was erased may still be among them.
    ended: VecDeque<(Instant, StreamId)>,
    ended_pruner: Pruner,
    /// Streams in the order of their opening.
    opened: VecDeque<(Instant, StreamId)>,
    opened_pruner: Pruner,
    expired: VecDeque<(Instant, StreamId)>,
    /// The memory of the expired streams, and its bound, in bytes.
    expired_bytes: usize,
    max_expired_bytes: usize,
    claims: Claims,
    /// How many writers were given.
    writers: u64,
    /// The wakers of readers whose streams have ended, which are woken once the lock of this state is released.
    wakers: Vec<Wakers>,
}

struct Stream {
    meta: Arc<Meta>,
    /// The memory that it takes beside its records, in bytes.
    cost: usize,
    phase: Phase,
}

enum Phase {
    Running {
        journal: Journal,
        lease_until: Instant,
        /// The number of the writer that was given last.
        writer: u64,
    },
    /// In a box: an expired stream has the same place, and there are many more of them.
    Ended(Box<Ended>),
    Expired,
}

/// A stream that was opened.
pub(super) struct Opened {
    /// The number of its writer.
    pub(super) writer: u64,
    /// The memory that it takes.
    pub(super) cost: usize,
}

struct Ended {
    journal: Journal,
    end: StreamEnd,
    expires: SystemTime,
    /// The same moment by the clock that is waited for.
    due: Instant,
}

impl Stream {
    fn journal(&self) -> Option<&Journal> {
        match &self.phase {
            Phase::Running { journal, .. } => Some(journal),
            Phase::Ended(ended) => Some(&ended.journal),
            Phase::Expired => None,
        }
    }

    /// Whether it has ended, and expires at this time.
    fn expires_at(&self, due: Instant) -> bool {
        matches!(&self.phase, Phase::Ended(ended) if ended.due == due)
    }
}

impl State {
    /// A log without streams, which remembers expired ones in so much memory.
    pub(super) fn new(max_expired_bytes: usize) -> Self {
        Self {
            streams: HashMap::new(),
            kept: 0,
            ended: VecDeque::new(),
            ended_pruner: Pruner::default(),
            opened: VecDeque::new(),
            opened_pruner: Pruner::default(),
            expired: VecDeque::new(),
            expired_bytes: 0,
            max_expired_bytes,
            claims: Claims::default(),
            writers: 0,
            wakers: Vec::new(),
        }
    }

    /// Forgets everything, and returns it, but the count of writers: one that was given before must not have the number of another.
    pub(super) fn clear(&mut self) -> Self {
        let empty = Self {
            writers: self.writers,
            ..Self::new(self.max_expired_bytes)
        };
        std::mem::replace(self, empty)
    }

    /// Takes the wakers of readers whose streams have ended since the last call.
    #[must_use]
    pub(super) fn take_wakers(&mut self) -> Vec<Wakers> {
        std::mem::take(&mut self.wakers)
    }

    pub(super) fn streams(&self) -> usize {
        self.kept
    }

    /// The lengths of the queues that streams and claims leave before they are due.
    #[cfg(test)]
    pub(super) fn queued(&self) -> (usize, usize) {
        (self.opened.len(), self.claims.pending())
    }

    /// The entries of every table and queue, by its name.
    #[cfg(test)]
    pub(super) fn entries(&self) -> [(&'static str, usize); 7] {
        [
            ("streams", self.streams.len()),
            ("ended", self.ended.len()),
            ("opened", self.opened.len()),
            ("expired", self.expired.len()),
            ("expired bytes", self.expired_bytes),
            ("claims", self.claims.held()),
            ("pending claims", self.claims.pending()),
        ]
    }

    /// The journals of the kept streams, each with the memory that its stream takes beside it.
    pub(super) fn into_kept(self) -> impl Iterator<Item = (Journal, usize)> {
        let streams = self.streams.into_values();
        streams.filter_map(|stream| Some((stream.journal()?.clone(), stream.cost)))
    }

    pub(super) fn journal(&self, id: &StreamId) -> Option<Journal> {
        self.streams.get(id)?.journal().cloned()
    }

    /// Adds a stream.
    pub(super) fn open(
        &mut self,
        id: &StreamId,
        meta: &Arc<Meta>,
        journal: &Journal,
        lease: Duration,
    ) -> Result<Opened, LogError> {
        if self.streams.contains_key(id) {
            return Err(LogError::Exists);
        }
        let now = Instant::now();
        if let Some(claim) = &meta.claim {
            self.claims.keep(claim, id);
        }
        // The client chooses some of the texts, the upstream others: neither may have a size that does not count.
        let cost = STREAM_COST + meta.encode().len();
        self.writers += 1;
        let writer = self.writers;
        let stream = Stream {
            meta: Arc::clone(meta),
            cost,
            phase: Phase::Running {
                journal: journal.clone(),
                lease_until: now + lease,
                writer,
            },
        };
        self.streams.insert(id.clone(), stream);
        self.kept += 1;
        let streams = &self.streams;
        self.opened_pruner.prune(&mut self.opened, |(_, id)| {
            let stream = streams.get(id);
            stream.is_some_and(|stream| matches!(stream.phase, Phase::Running { .. }))
        });
        self.opened.push_back((now + UNSEALED_FOR, id.clone()));
        let cost = cost + journal.bytes();
        Ok(Opened { writer, cost })
    }

    /// Gives another writer for a stream that runs: its journal, and the number of the writer.
    pub(super) fn reopen(&mut self, id: &StreamId, lease: Duration) -> Option<(Journal, u64)> {
        let stream = self.streams.get_mut(id)?;
        let Phase::Running {
            journal,
            lease_until,
            writer,
        } = &mut stream.phase
        else {
            return None;
        };
        *lease_until = Instant::now() + lease;
        self.writers += 1;
        *writer = self.writers;
        Some((journal.clone(), *writer))
    }

    /// Ends the lease of a stream whose writer is gone, unless another one has replaced it.
    pub(super) fn end_lease(&mut self, id: &StreamId, dropped: u64) {
        let phase = self.streams.get_mut(id).map(|stream| &mut stream.phase);
        if let Some(Phase::Running {
            lease_until,
            writer,
            ..
        }) = phase
            && *writer == dropped
        {
            *lease_until = Instant::now();
        }
    }

    pub(super) fn status(&self, id: &StreamId) -> LogStatus {
        let Some(stream) = self.streams.get(id) else {
            return LogStatus::Unknown;
        };
        let meta = Arc::clone(&stream.meta);
        match &stream.phase {
            Phase::Running { journal, .. } => LogStatus::Running {
                meta,
                tail: journal.tail(),
            },
            Phase::Ended(ended) => LogStatus::Ended {
                meta,
                tail: ended.journal.tail(),
                end: ended.end.clone(),
                expires: ended.expires,
            },
            Phase::Expired => LogStatus::Expired { meta },
        }
    }

    /// Extends a lease.
    pub(super) fn renew(&mut self, id: &StreamId, lease: Duration) -> Result<(), LogError> {
        match self.streams.get_mut(id).map(|stream| &mut stream.phase) {
            Some(Phase::Running { lease_until, .. }) => {
                *lease_until = Instant::now() + lease;
                Ok(())
            }
            Some(Phase::Ended(_)) => Err(LogError::Sealed),
            Some(Phase::Expired) => Err(LogError::Expired),
            None => Err(LogError::Unknown),
        }
    }

    pub(super) fn seal_lost(&mut self, id: &StreamId, ttl: Duration) {
        let stream = self.streams.get(id);
        let is_lost = stream.is_some_and(|stream| match stream.phase {
            Phase::Running { lease_until, .. } => lease_until <= Instant::now(),
            Phase::Ended(_) | Phase::Expired => false,
        });
        if is_lost {
            // It is known to run, so the seal succeeds; and this end has no text.
            let _sealed = self.seal(id, &StreamEnd::new(End::ProducerLost), ttl);
        }
    }

    /// Seals a stream, unless it is sealed. Returns the memory that its end takes.
    pub(super) fn seal(
        &mut self,
        id: &StreamId,
        end: &StreamEnd,
        ttl: Duration,
    ) -> Result<usize, LogError> {
        let stream = self.streams.get_mut(id).ok_or(LogError::Unknown)?;
        let journal = match &stream.phase {
            Phase::Running { journal, .. } => journal.clone(),
            Phase::Ended(_) => return Ok(0),
            Phase::Expired => return Err(LogError::Expired),
        };
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        // The stream has one copy, and its journal another.
        let added = 2 * (text(&end.error) + text(&end.usage));
        let due = Instant::now() + ttl;
        stream.cost += added;
        stream.phase = Phase::Ended(Box::new(Ended {
            journal: journal.clone(),
            end: end.clone(),
            expires: SystemTime::now() + ttl,
            due,
        }));
        let streams = &self.streams;
        self.ended_pruner.prune(&mut self.ended, |(due, id)| {
            streams
                .get(id)
                .is_some_and(|stream| stream.expires_at(*due))
        });
        self.ended.push_back((due, id.clone()));
        let (_is_first, wakers) = journal.close_silently(Ok(end.clone()));
        self.wakers.push(wakers);
        Ok(added)
    }

    /// Expires a stream at once. Returns the memory that it took.
    pub(super) fn erase(&mut self, id: &StreamId) -> Option<usize> {
        let stream = self.streams.get_mut(id)?;
        let journal = stream.journal()?.clone();
        stream.phase = Phase::Expired;
        // Before its bytes are counted, so that no append follows whose bytes would never be freed. A sealed journal keeps
        // its end.
        let (_is_first, wakers) = journal.close_silently(Err(LogError::Expired));
        self.wakers.push(wakers);
        let freed = stream.cost + journal.bytes();
        if let Some(claim) = &stream.meta.claim {
            self.claims.release(claim.name(), id);
        }
        self.kept -= 1;
        stream.cost = EXPIRED_COST + stream.meta.encode().len();
        self.expired_bytes += stream.cost;
        self.expired
            .push_back((Instant::now() + EXPIRED_FOR, id.clone()));
        while self.expired.len() > MAX_EXPIRED || self.expired_bytes > self.max_expired_bytes {
            let Some((_, oldest)) = self.expired.pop_front() else {
                break;
            };
            self.forget(&oldest);
        }
        Some(freed)
    }

    /// Forgets an expired stream.
    fn forget(&mut self, id: &StreamId) {
        if let Some(stream) = self.streams.remove(id) {
            self.expired_bytes -= stream.cost;
        }
    }

    /// Frees ended streams, oldest first, until `excess` bytes are free or none is left. Returns how many were freed.
    ///
    /// Their readers keep what they read.
    pub(super) fn evict(&mut self, excess: usize) -> usize {
        let mut freed = 0;
        while freed < excess
            && let Some((due, id)) = self.ended.pop_front()
        {
            freed += self.expire_ended(due, &id);
        }
        freed
    }

    /// Expires a stream that has ended, unless it was erased before. Its id may be that of another stream by now.
    fn expire_ended(&mut self, due: Instant, id: &StreamId) -> usize {
        let stream = self.streams.get(id);
        let is_kept = stream.is_some_and(|stream| stream.expires_at(due));
        let freed = is_kept.then(|| self.erase(id)).flatten();
        freed.unwrap_or(0)
    }

    /// Frees what has expired. Returns the memory that was freed.
    pub(super) fn sweep(&mut self) -> usize {
        let now = Instant::now();
        let mut freed = 0;
        while let Some((due, id)) = pop_due(&mut self.ended, now) {
            freed += self.expire_ended(due, &id);
        }
        while let Some((_, id)) = pop_due(&mut self.opened, now) {
            freed += self.expire_unsealed(&id, now);
        }
        while let Some((_, id)) = pop_due(&mut self.expired, now) {
            self.forget(&id);
        }
        self.claims.sweep(now);
        freed
    }

    /// Expires a stream that was opened long ago and never sealed, unless its producer lives.
    fn expire_unsealed(&mut self, id: &StreamId, now: Instant) -> usize {
        match self.streams.get(id).map(|stream| &stream.phase) {
            Some(Phase::Running { lease_until, .. }) if *lease_until > now => {
                self.opened.push_back((now + UNSEALED_FOR, id.clone()));
                0
            }
            Some(Phase::Running { .. }) => self.erase(id).unwrap_or(0),
            Some(Phase::Ended(_) | Phase::Expired) | None => 0,
        }
    }

    pub(super) fn claim(&mut self, key: &ClaimKey, id: &StreamId, pending: Duration) -> Claim {
        let streams = &self.streams;
        let is_expired = |id: &StreamId| {
            let stream = streams.get(id);
            stream.is_some_and(|stream| matches!(stream.phase, Phase::Expired))
        };
        self.claims.claim(key, id, pending, is_expired)
    }

    pub(super) fn release(&mut self, name: &str, id: &StreamId) {
        self.claims.release(name, id);
    }
}
