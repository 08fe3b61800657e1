//! What the handles of a log and its thread share.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redb::Database;
use unbraid_log::{Journal, LogError, LogStatus, Meta, StreamId};

use crate::{
    FileLogError, FileOptions,
    clock::{Clock, now},
    space::{Space, space},
    tables::Row,
};

pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) options: FileOptions,
    /// The open file. Only opening and closing it write this, so a reader never waits for a transaction.
    pub(crate) database: RwLock<Option<Database>>,
    /// Why there is none.
    fault: Mutex<FileLogError>,
    streams: Mutex<HashMap<StreamId, Arc<Running>>>,
    /// Set when the file is first opened.
    clock: OnceLock<Clock>,
    /// The bytes of the ended streams, and those of the others.
    pub(crate) bytes: AtomicU64,
    pub(crate) running_bytes: AtomicU64,
}

/// A stream that a producer of this process writes.
pub(crate) struct Running {
    pub(crate) id: StreamId,
    pub(crate) meta: Arc<Meta>,
    /// Its number in the file, which changes if the file is replaced.
    number: AtomicU64,
    /// What is committed.
    journal: Mutex<Journal>,
    lease_until: Mutex<Instant>,
    pub(crate) opened: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    pub(crate) fn new(id: StreamId, meta: Meta, number: u64, lease: Duration) -> Self {
        let opened = now();
        Self {
            id,
            meta: Arc::new(meta),
            number: AtomicU64::new(number),
            journal: Mutex::default(),
            lease_until: Mutex::new(opened + lease),
            opened,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    pub(crate) fn journal(&self) -> Journal {
        lock(&self.journal).clone()
    }

    pub(crate) fn set_number(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// Continues with another file, which contains other events or none.
    pub(crate) fn replace(&self, number: u64, journal: Journal) {
        self.set_number(number);
        let replaced = std::mem::replace(&mut *lock(&self.journal), journal);
        replaced.fail(LogError::unavailable("the file was replaced"));
    }

    pub(crate) fn is_alive(&self) -> bool {
        *lock(&self.lease_until) > now()
    }

    /// Extends the lease, unless the stream has ended.
    pub(crate) fn renew(&self, lease: Duration) -> Result<(), LogError> {
        match self.journal().end() {
            None => {
                *lock(&self.lease_until) = now() + lease;
                Ok(())
            }
            Some(Ok(_)) => Err(LogError::Sealed),
            Some(Err(error)) => Err(error),
        }
    }

    pub(crate) fn status(&self) -> LogStatus {
        LogStatus::Running {
            meta: Arc::clone(&self.meta),
            tail: self.journal().tail(),
        }
    }
}

impl Shared {
    pub(crate) fn new(path: PathBuf, options: FileOptions) -> Self {
        Self {
            path,
            options,
            database: RwLock::new(None),
            fault: Mutex::new(closed()),
            streams: Mutex::default(),
            clock: OnceLock::new(),
            bytes: AtomicU64::new(0),
            running_bytes: AtomicU64::new(0),
        }
    }

    /// Sets the clock after the file's last time, once. Returns whether this was the first time.
    pub(crate) fn start_clock(&self, last: u64) -> bool {
        self.clock.set(Clock::after(last)).is_ok()
    }

    pub(crate) fn clock(&self) -> Clock {
        *self.clock.get_or_init(|| Clock::after(0))
    }

    pub(crate) fn fault(&self) -> FileLogError {
        lock(&self.fault).clone()
    }

    pub(crate) fn set_fault(&self, fault: FileLogError) {
        *lock(&self.fault) = fault;
    }

    /// Calls a function with the open file.
    pub(crate) fn with_database<T>(
        &self,
        call: impl FnOnce(&Database) -> Result<T, FileLogError>,
    ) -> Result<T, FileLogError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        match &*database {
            Some(database) => call(database),
            None => Err(self.fault()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        // `try_read` fails while the file is opened or closed.
        self.database
            .try_read()
            .is_ok_and(|database| database.is_some())
    }

    pub(crate) fn running(&self, id: &StreamId) -> Option<Arc<Running>> {
        lock(&self.streams).get(id).cloned()
    }

    pub(crate) fn all_running(&self) -> Vec<Arc<Running>> {
        lock(&self.streams).values().cloned().collect()
    }

    pub(crate) fn add(&self, stream: &Arc<Running>) {
        lock(&self.streams).insert(stream.id.clone(), Arc::clone(stream));
    }

    pub(crate) fn remove(&self, id: &StreamId) -> Option<Arc<Running>> {
        lock(&self.streams).remove(id)
    }

    pub(crate) fn running_count(&self) -> usize {
        lock(&self.streams).len()
    }

    /// What may be written.
    pub(crate) fn space(&self) -> Space {
        let ended = self.bytes.load(Ordering::Relaxed);
        let running = self.running_bytes.load(Ordering::Relaxed);
        space(&self.path, ended.saturating_add(running))
    }

    /// The status of a stream as the file contains it.
    pub(crate) fn status_of(&self, row: Option<Row>) -> Result<LogStatus, LogError> {
        crate::read::status_of(row, &self.clock())
    }
}

/// The state of a file that is not open.
pub(crate) fn closed() -> FileLogError {
    FileLogError::Io {
        reason: "the log is closed".to_owned(),
    }
}
