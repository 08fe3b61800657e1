//! `MemoryLog`: the log of one process.

mod options;
mod state;
mod writer;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicIsize, Ordering},
    },
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
pub use options::MemoryOptions;
use state::State;
use writer::MemoryWriter;

use crate::{
    Claim, ClaimKey, Command, Journal, LogError, LogStatus, LogStore, LogWriter, Meta, Record, Seq,
    StreamId, commands::CommandQueue, journal::Wakers, protocol::FAR,
};

/// The log of one process: streams are kept in its memory, and are gone with it.
///
/// Above its bound on memory it evicts the streams that ended first; a running stream is never evicted, and nothing that
/// is appended to it is refused. `Clone` gives another handle of the same log.
///
/// It has no task of its own: what has expired is freed by the next call.
///
/// Dropping the last [`LogWriter`](crate::LogWriter) that was given for a stream which is not sealed ends its lease: the next
/// [`seal_lost`](crate::LogStore::seal_lost) declares it lost, without waiting for the lease's duration.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_log::{LogStatus, LogStore, MemoryLog, MemoryOptions, Meta, StreamId};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let log = MemoryLog::new(MemoryOptions::default().with_ttl(Duration::from_secs(60)));
/// let id = StreamId::random()?;
/// assert_eq!(log.status(&id).await?, LogStatus::Unknown);
/// let writer = log.open(&id, &Meta::new("/v1/completions", 1)).await?;
/// assert!(matches!(log.status(&id).await?, LogStatus::Running { .. }));
/// assert!(log.journal(&id).is_some());
/// assert_eq!(log.streams(), 1);
/// assert!(log.bytes() > 0);
/// # Ok::<(), unbraid_log::LogError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryLog {
    inner: Arc<Inner>,
}

struct Inner {
    options: MemoryOptions,
    state: Mutex<State>,
    /// The memory of all kept streams. It is counted outside of the lock, because every delta changes it. A stream may be freed
    /// before its last delta is counted, so for a moment the count may be below zero.
    bytes: AtomicIsize,
    commands: CommandQueue,
}

/// The memory of expired streams. It is beside the bound, because a stream that is kept is worth more than the difference
/// between 410 and 404.
fn max_expired_bytes(options: &MemoryOptions) -> usize {
    const LEAST: usize = 64 * 1024;
    (options.max_bytes / 8).max(LEAST)
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new(mut options: MemoryOptions) -> Self {
        options.ttl = options.ttl.min(FAR);
        options.lease = options.lease.min(FAR);
        let inner = Inner {
            state: Mutex::new(State::new(max_expired_bytes(&options))),
            options,
            bytes: AtomicIsize::new(0),
            commands: CommandQueue::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The journal of a stream that is kept. Readers in this process use it in place of [`read`](LogStore::read), which
    /// copies nothing either, but boxes a stream.
    #[must_use]
    pub fn journal(&self, id: &StreamId) -> Option<Journal> {
        self.inner.state().journal(id)
    }

    /// The memory that the kept streams take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    /// The number of streams that are kept, running or ended.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.inner.state().streams()
    }

    /// Frees what has expired. Every call that opens, seals or claims does this, too.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{MemoryLog, MemoryOptions};
    ///
    /// MemoryLog::new(MemoryOptions::default()).sweep();
    /// ```
    pub fn sweep(&self) {
        self.inner.sweep();
    }

    /// Frees what has expired and, above the bound on memory, the streams that ended first. Returns whether a stream can be
    /// opened now.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{MemoryLog, MemoryOptions};
    ///
    /// assert!(MemoryLog::new(MemoryOptions::default()).make_room());
    /// ```
    #[must_use]
    pub fn make_room(&self) -> bool {
        self.inner.sweep();
        self.inner.evict()
    }

    /// Forgets everything, as an engine without persistence does when it restarts.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{MemoryLog, MemoryOptions};
    ///
    /// let log = MemoryLog::new(MemoryOptions::default());
    /// log.clear();
    /// assert_eq!((log.streams(), log.bytes()), (0, 0));
    /// ```
    pub fn clear(&self) {
        self.inner.clear("the log was cleared");
    }
}

/// The last handle and writer is gone, so nobody can end the streams that still run. Their readers do not wait.
impl Drop for Inner {
    fn drop(&mut self) {
        self.clear("the log was dropped");
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the readers of streams that have ended by that after the lock is released: wakers are
    /// foreign code, which may use this log.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state();
        let result = change(&mut state);
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Wakers::wake);
        result
    }

    /// Forgets all streams, and fails those that run.
    fn clear(&self, why: &'static str) {
        let cleared = self.state().clear();
        for (journal, cost) in cleared.into_kept() {
            journal.fail(LogError::unavailable(why));
            // Nothing is appended to it any more, so these are all of its bytes. Other streams may have been opened meanwhile.
            self.free_bytes(cost + journal.bytes());
        }
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Counts memory, and returns how much there is now.
    fn add_bytes(&self, added: usize) -> usize {
        let added = added.cast_signed();
        let before = self.bytes.fetch_add(added, Ordering::Relaxed);
        usize::try_from(before + added).unwrap_or(0)
    }

    fn free_bytes(&self, freed: usize) {
        self.bytes.fetch_sub(freed.cast_signed(), Ordering::Relaxed);
    }

    fn sweep(&self) {
        let freed = self.change(State::sweep);
        self.free_bytes(freed);
    }

    /// Frees the streams that ended first, until the log has room. Returns whether it has.
    fn evict(&self) -> bool {
        let max = self.options.max_bytes;
        let excess = self.bytes().saturating_sub(max);
        if excess > 0 {
            let freed = self.change(|state| state.evict(excess));
            self.free_bytes(freed);
        }
        self.bytes() <= max
    }

    fn open(self: &Arc<Self>, id: &StreamId, meta: &Meta) -> Result<MemoryWriter, LogError> {
        self.sweep();
        if !self.evict() {
            return Err(LogError::Full);
        }
        let meta = Arc::new(meta.clone());
        let journal = Journal::new();
        let opened = self.state().open(id, &meta, &journal, self.options.lease)?;
        self.add_bytes(opened.cost);
        let (log, id) = (Arc::clone(self), id.clone());
        Ok(MemoryWriter::new(log, id, meta, journal, opened.writer))
    }

    fn reopen(self: &Arc<Self>, id: &StreamId, meta: &Meta) -> Result<MemoryWriter, LogError> {
        let reopened = self.state().reopen(id, self.options.lease);
        if let Some((journal, number)) = reopened {
            let (log, id) = (Arc::clone(self), id.clone());
            let meta = Arc::new(meta.clone());
            return Ok(MemoryWriter::new(log, id, meta, journal, number));
        }
        self.open(id, meta)
    }

    fn erase(&self, id: &StreamId) {
        let freed = self.change(|state| state.erase(id));
        self.free_bytes(freed.unwrap_or(0));
    }

    fn send_command(&self, id: &StreamId, command: Command) -> Result<(), LogError> {
        match self.state().status(id) {
            LogStatus::Unknown => return Err(LogError::Unknown),
            LogStatus::Ended { .. } | LogStatus::Expired { .. } => return Ok(()),
            LogStatus::Running { .. } => {}
        }
        self.commands.send(id, command)
    }
}

impl LogStore for MemoryLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        let opened = self.inner.open(id, meta);
        ready(opened.map(|writer| Box::new(writer) as Box<dyn LogWriter>)).boxed()
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        let opened = self.inner.reopen(id, meta);
        ready(opened.map(|writer| Box::new(writer) as Box<dyn LogWriter>)).boxed()
    }

    fn backend(&self) -> &'static str {
        "memory"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        let error = match self.journal(id) {
            Some(journal) => return journal.reader(after).boxed(),
            None => match self.inner.state().status(id) {
                LogStatus::Expired { .. } => LogError::Expired,
                _ => LogError::Unknown,
            },
        };
        stream::iter([Err(error)]).boxed()
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.sweep();
        ready(Ok(self.inner.state().status(id))).boxed()
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.sweep();
        let status = self.inner.change(|state| {
            state.seal_lost(id, self.inner.options.ttl);
            state.status(id)
        });
        ready(Ok(status)).boxed()
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        self.inner.erase(id);
        ready(Ok(())).boxed()
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        self.sweep();
        ready(Ok(self.inner.state().claim(
            key,
            id,
            self.inner.options.claim_pending,
        )))
        .boxed()
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.inner.state().release(key.name(), id);
        ready(Ok(())).boxed()
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        ready(self.inner.send_command(id, command)).boxed()
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.inner.commands.stream()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.inner.commands.stream_of(id)
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog")
            .field("options", &self.inner.options)
            .field("streams", &self.streams())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
