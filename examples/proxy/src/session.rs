//! The requests whose choices are read or can still be read, and which of their choices have a connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::timeout,
};
use unbraid::Completions;

/// The most requests at a time. Each keeps its answer in memory.
const MAX_SESSIONS: usize = 64;

/// All open requests, by their ids.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    table: Arc<Mutex<Table>>,
    free: Arc<Semaphore>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            table: Arc::default(),
            free: Arc::new(Semaphore::new(MAX_SESSIONS)),
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    last_id: u64,
    open: HashMap<u64, Session>,
}

#[derive(Debug)]
struct Session {
    completions: Completions,
    /// The number of connections of each choice. A freed choice has no receiver anymore.
    viewers: Vec<watch::Sender<usize>>,
    _slot: OwnedSemaphorePermit,
}

/// One connection that reads a choice. Dropping it starts the grace period if it was the last one.
#[derive(Debug)]
pub(crate) struct Viewer(watch::Sender<usize>);

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Sessions {
    /// Takes a place for a request before it is sent: an answer that nobody reads costs as much as any other.
    pub(crate) fn reserve(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Keeps a request until each of its `n` choices had no connection for the grace period. Returns its id.
    pub(crate) fn open(
        &self,
        completions: Completions,
        n: u32,
        grace: Duration,
        slot: OwnedSemaphorePermit,
    ) -> u64 {
        let mut table = self.table();
        table.last_id += 1;
        let id = table.last_id;
        let (viewers, counts) = (0..n).map(|_| watch::channel(0)).unzip();
        let session = Session {
            completions: completions.clone(),
            viewers,
            _slot: slot,
        };
        table.open.insert(id, session);
        tokio::spawn(self.clone().free_unread(id, completions, counts, grace));
        id
    }

    /// Adds a connection to a choice, unless that was freed.
    pub(crate) fn watch(&self, id: u64, index: u32) -> Option<(Completions, Viewer)> {
        let table = self.table();
        let session = table.open.get(&id)?;
        let count = session.viewers.get(index as usize)?;
        let is_freed = count.is_closed();
        count.send_modify(|count| *count += 1);
        let viewer = Viewer(count.clone());
        (!is_freed).then(|| (session.completions.clone(), viewer))
    }

    pub(crate) fn len(&self) -> usize {
        self.table().open.len()
    }

    /// Frees each choice that nobody reads, and closes the request when the last one is freed.
    async fn free_unread(
        self,
        id: u64,
        completions: Completions,
        counts: Vec<watch::Receiver<usize>>,
        grace: Duration,
    ) {
        let mut tasks = JoinSet::new();
        let (open, mut none_is_open) = mpsc::channel::<()>(1);
        for (index, count) in (0..).zip(counts) {
            let (completions, open) = (completions.clone(), open.clone());
            tasks.spawn(async move {
                wait_until_unread(count, grace).await;
                drop(open);
                // It may not have begun yet. Then it is freed as soon as it does.
                if let Some(choice) = completions.choice(index).await {
                    choice.discard();
                }
            });
        }
        drop(open);
        let _none = none_is_open.recv().await; // nothing is sent: it returns when all senders are dropped
        self.table().open.remove(&id);
        // With the tasks the last handles are dropped, which closes the connection to the provider.
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn wait_until_unread(mut count: watch::Receiver<usize>, grace: Duration) {
    loop {
        let unread = count.wait_for(|count| *count == 0).await.is_err();
        let read_again = timeout(grace, count.wait_for(|count| *count > 0)).await;
        if unread || read_again.is_err() {
            return;
        }
    }
}
