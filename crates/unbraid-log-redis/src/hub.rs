//! The hub: it follows logs for all readers of a gateway, on as few connections as possible.
//!
//! A connection that blocks in `XREAD` can do nothing else, so it is not the [`Link`]. One reads up to 128 logs, and a key
//! of its own to which [`Hub::wake`] writes when a log is added. All ids are explicit: `$` would skip what is appended
//! between two calls.

mod shard;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::broadcast::{self, Receiver, Sender},
    task::AbortHandle,
    time::Instant,
};
use unbraid_log::{LogError, StreamId};

use crate::{
    entry::{Entry, EntryId},
    inner::{DAY, MetaTtl, millis},
    keys::Keys,
    link::Link,
    script::{ADD, Request},
};

/// How many logs a connection follows.
const MAX_LOGS: usize = 128;

/// How many entries a reader may be behind before it has to read them itself.
const QUEUED: usize = 32;

/// What followers receive.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    Entry(Entry),
    /// The log cannot be followed any more.
    Failed(LogError),
}

/// A log that is followed.
struct Followed {
    shard: u64,
    /// The last entry that the followers were sent.
    position: EntryId,
    followers: Sender<Item>,
    /// Since when the log and its meta data do not exist.
    missing_since: Option<Instant>,
}

#[derive(Default)]
struct State {
    logs: HashMap<StreamId, Followed>,
    shards: HashMap<u64, Shard>,
    last_shard: u64,
}

struct Shard {
    /// How many logs it follows.
    logs: usize,
    /// Whether its next request will contain the logs that were added.
    is_woken: bool,
    is_started: bool,
    task: Option<AbortHandle>,
}

/// A follower that was added.
pub(crate) struct Joined {
    pub(crate) receiver: Receiver<Item>,
    /// The last entry that the hub has sent to earlier followers.
    pub(crate) position: EntryId,
    /// The connection that has to learn of the log.
    pub(crate) to_wake: Option<u64>,
}

/// Dropping it ends its tasks.
pub(crate) struct Hub {
    state: Arc<Mutex<State>>,
    /// After this time a log that is missing is not repaired any more: its producer renews the lease more often.
    lease: Duration,
    meta_ttl: MetaTtl,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every change is complete before anything that could panic.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn new(lease: Duration, meta_ttl: MetaTtl) -> Self {
        Self {
            state: Arc::default(),
            lease,
            meta_ttl,
        }
    }

    /// Follows a log from this entry on, or from a later one if it is followed already.
    pub(crate) fn join(
        &self,
        id: &StreamId,
        position: EntryId,
        link: &Link,
        keys: &Keys,
    ) -> Joined {
        let mut state = lock(&self.state);
        if let Some(followed) = state.logs.get(id) {
            return Joined {
                receiver: followed.followers.subscribe(),
                position: followed.position,
                to_wake: None,
            };
        }
        let shard = state.free_shard();
        let (followers, receiver) = broadcast::channel(QUEUED);
        let followed = Followed {
            shard,
            position,
            followers,
            missing_since: None,
        };
        state.logs.insert(id.clone(), followed);
        let (mut is_new, mut to_wake) = (false, None);
        if let Some(found) = state.shards.get_mut(&shard) {
            found.logs += 1;
            is_new = !std::mem::replace(&mut found.is_started, true);
            if !found.is_woken {
                found.is_woken = true;
                to_wake = Some(shard);
            }
        }
        drop(state);
        if is_new {
            self.start(shard, link, keys);
        }
        Joined {
            receiver,
            position,
            to_wake,
        }
    }

    /// Starts the task of a shard, without the lock: a runtime that shuts down drops the task at once, which takes the lock.
    fn start(&self, shard: u64, link: &Link, keys: &Keys) {
        let address = Arc::clone(link.address());
        let task = shard::Task::new(shard, address, keys.clone(), self);
        let task = tokio::spawn(task.run()).abort_handle();
        if let Some(found) = lock(&self.state).shards.get_mut(&shard) {
            found.task = Some(task);
        }
    }

    /// The request that ends the wait of a connection.
    pub(crate) fn wake(&self, keys: &Keys, shard: u64) -> Request {
        Request::script(&ADD, &[&keys.wake(shard)])
            .arg(1)
            .arg(millis(DAY))
            .arg(("w", 1))
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Without the lock, which each task takes when it is dropped.
        let shards = std::mem::take(&mut lock(&self.state).shards);
        for task in shards.into_values().filter_map(|shard| shard.task) {
            task.abort();
        }
    }
}

impl State {
    /// The number of a shard that has room.
    fn free_shard(&mut self) -> u64 {
        let mut shards = self.shards.iter();
        if let Some((number, _)) = shards.find(|(_, shard)| shard.logs < MAX_LOGS) {
            return *number;
        }
        self.last_shard += 1;
        let shard = Shard {
            logs: 0,
            is_woken: true, // its task reads the state when it has connected
            is_started: false,
            task: None,
        };
        self.shards.insert(self.last_shard, shard);
        self.last_shard
    }

    /// The logs of a shard with their positions, without those that nobody follows any more.
    fn snapshot(&mut self, number: u64) -> Vec<(StreamId, EntryId)> {
        self.logs
            .retain(|_, log| log.shard != number || log.followers.receiver_count() > 0);
        let logs = self.logs.iter().filter(|(_, log)| log.shard == number);
        let logs: Vec<_> = logs.map(|(id, log)| (id.clone(), log.position)).collect();
        if let Some(shard) = self.shards.get_mut(&number) {
            shard.logs = logs.len();
            shard.is_woken = false;
        }
        logs
    }

    /// Removes a shard that follows nothing. Returns whether it does.
    fn retire(&mut self, number: u64) -> bool {
        let is_idle = self.snapshot(number).is_empty();
        if is_idle {
            self.shards.remove(&number);
        }
        is_idle
    }

    /// Sends an entry to the followers of its log.
    fn deliver(&mut self, id: &StreamId, entry: Entry, is_last: bool) {
        if let Some(log) = self.logs.get_mut(id) {
            log.position = entry.id;
            // Fails if nobody follows the log any more, which the next snapshot notices.
            let _sent = log.followers.send(Item::Entry(entry));
        }
        if is_last {
            self.logs.remove(id);
        }
    }

    fn fail(&mut self, id: &StreamId, error: LogError) {
        if let Some(log) = self.logs.remove(id) {
            let _sent = log.followers.send(Item::Failed(error));
        }
    }

    /// Ends the followers of a shard whose task has ended.
    fn remove(&mut self, shard: u64, error: &LogError) {
        self.shards.remove(&shard);
        self.fail_all(shard, error);
    }

    fn fail_all(&mut self, shard: u64, error: &LogError) {
        let failed = self.logs.extract_if(|_, log| log.shard == shard);
        for (_, log) in failed {
            let _sent = log.followers.send(Item::Failed(error.clone()));
        }
    }

    /// Compares a log with what was read of it: a server that was emptied or has failed over may have another one.
    fn compare(&mut self, id: &StreamId, tail: Tail, lease: Duration) {
        let Some(log) = self.logs.get_mut(id) else {
            return;
        };
        match tail {
            Tail::Entry(last) => {
                log.missing_since = None;
                if last < log.position {
                    // Events may follow that the followers do not have. They ignore those that they have.
                    log.position = EntryId::HEADER;
                }
            }
            Tail::Expired => self.fail(id, LogError::Expired),
            Tail::Lost | Tail::Missing => {
                let now = Instant::now();
                let since = *log.missing_since.get_or_insert(now);
                log.position = EntryId::HEADER;
                // Of a stream whose producer is dead, the meta data show after two leases that it is over.
                let is_lost = matches!(tail, Tail::Lost);
                let patience = if is_lost { 3 * lease } else { lease };
                if now - since > patience {
                    self.fail(id, LogError::Unknown);
                }
            }
        }
    }
}

/// Where a log ends.
enum Tail {
    Entry(EntryId),
    /// The log does not exist, and its meta data show that the stream is over.
    Expired,
    /// The log does not exist, and its meta data show that it is written again, or expires soon.
    Lost,
    /// Neither the log nor its meta data exist.
    Missing,
}
