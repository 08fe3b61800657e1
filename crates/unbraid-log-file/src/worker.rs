//! The thread that writes the file: everything that waits goes into one transaction.

mod apply;
mod arrivals;
mod claims;
mod recover;
mod sweep;

use std::{
    collections::HashSet,
    sync::{
        Arc, PoisonError,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use arrivals::Arrivals;
use claims::PendingClaims;
use redb::Database;
use unbraid_log::{Appended, StreamId};

use crate::{
    FileLogError,
    caught::catch,
    clock::now,
    job::{Control, Effect, Job, answer},
    shared::{Shared, closed},
    space::Space,
    tables::{ExpiryKey, Tables},
};

/// One transaction carries out at most this many requests, and about this many bytes.
const GROUP: usize = 4096;
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// How long to wait before a file that failed is opened again.
const RETRY: Duration = Duration::from_millis(200);

/// How long a disk is taken to be full after a write that found no room.
const FULL: Duration = Duration::from_secs(3);

/// How often the thread looks for what has expired.
const SWEEP: Duration = Duration::from_secs(1);

pub(crate) struct Worker {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    /// A job that has to wait for the next transaction.
    next: Option<Job>,
    /// When the file may be opened again. `None` after it was closed on purpose.
    retry_at: Option<Instant>,
    /// Until when the disk is taken to be full.
    full_until: Option<Instant>,
    swept: Instant,
    book: Book,
}

/// What the thread knows about the file. It is read from the file each time that it is opened.
#[derive(Default)]
struct Book {
    last_number: u64,
    arrivals: Arrivals,
    /// The bytes of the ended streams.
    bytes: u64,
    /// The first row of `expiry` that may be that of an ended stream.
    evict_from: ExpiryKey,
    pending_claims: PendingClaims,
    /// The last number and the bytes as the file contains them.
    written_head: Option<(u64, u64)>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, jobs: Receiver<Job>) -> Self {
        Self {
            shared,
            jobs,
            next: None,
            retry_at: None,
            full_until: None,
            swept: now(),
            book: Book::default(),
        }
    }

    /// Works until the last handle is dropped.
    pub(crate) fn run(mut self) {
        loop {
            let job = match self.next.take() {
                Some(job) => Ok(job),
                None => self.jobs.recv_timeout(SWEEP),
            };
            match job {
                Ok(Job::Control(control)) => self.control(control),
                Ok(job) => {
                    let group = self.collect(job);
                    self.write(group);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.swept.elapsed() >= SWEEP {
                self.swept = now();
                self.write(Vec::new());
            }
        }
        // A failure is found, and repaired, at the next start.
        drop(self.close());
        // Nobody can write the streams any more that still run. The next start seals them.
        for stream in self.shared.all_running() {
            stream.journal().fail(closed().to_log_error());
        }
    }

    fn control(&mut self, control: Control) {
        let (reply, result) = match control {
            Control::Open(reply) => (reply, self.open()),
            Control::Close(reply) => {
                self.retry_at = None;
                (reply, self.close())
            }
            Control::Compact(reply) => (reply, self.compact()),
            Control::Barrier(reply) => {
                let _is_awaited = reply.send(());
                return;
            }
        };
        let _is_awaited = reply.send(result);
    }

    /// The requests that are carried out in one transaction, the first of which has arrived.
    fn collect(&mut self, first: Job) -> Vec<Job> {
        let mut bytes = first.bytes();
        let mut streams: HashSet<u64> = first.stream().into_iter().collect();
        let mut opened: HashSet<StreamId> = first.opens().cloned().into_iter().collect();
        let is_exclusive = first.is_exclusive();
        let mut group = vec![first];
        while !is_exclusive && group.len() < GROUP && bytes < GROUP_BYTES {
            let Ok(job) = self.jobs.try_recv() else {
                break;
            };
            let is_new = job.stream().is_none_or(|stream| streams.insert(stream))
                && job.opens().is_none_or(|id| opened.insert(id.clone()));
            if job.is_exclusive() || !is_new {
                self.next = Some(job);
                break;
            }
            bytes += job.bytes();
            group.push(job);
        }
        group
    }

    /// Carries out a group. If that fails, the file is opened again before the next one.
    fn write(&mut self, group: Vec<Job>) {
        if !self.shared.is_open() {
            match self.retry_at {
                Some(at) if at <= now() => {
                    if self.open().is_err() {
                        return;
                    }
                }
                // Dropping the group reports the failure.
                Some(_) | None => return,
            }
        }
        let shared = Arc::clone(&self.shared);
        let written = catch(|| shared.with_database(|database| self.commit(database, group)));
        match written {
            Ok(effects) => effects.into_iter().for_each(|effect| self.publish(effect)),
            Err(fault) => self.fail(fault),
        }
    }

    fn commit(
        &mut self,
        database: &Database,
        group: Vec<Job>,
    ) -> Result<Vec<Effect>, FileLogError> {
        let free = self.free();
        let mut effects = Vec::with_capacity(group.len());
        let group = self.renew_claims(group, &mut effects);
        if group.is_empty() && !self.is_sweep_due(database)? {
            return Ok(effects);
        }
        let transaction = database.begin_write()?;
        let mut tables = Tables::open(&transaction)?;
        if free > Space::Reserved {
            // Before anything is added: what moves is what was committed.
            self.book.arrivals.move_oldest(&mut tables)?;
        }
        for job in group {
            effects.push(self.apply(&mut tables, job, free)?);
        }
        self.book.arrivals.write(&mut tables)?;
        self.sweep(&mut tables, &mut effects)?;
        self.book.arrivals.remove_unneeded(&mut tables)?;
        self.write_head(&mut tables)?;
        drop(tables);
        transaction.commit()?;
        self.full_until = None;
        self.publish_bytes();
        Ok(effects)
    }

    fn publish_bytes(&self) {
        let running = self.book.arrivals.bytes();
        self.shared.bytes.store(self.book.bytes, Ordering::Relaxed);
        self.shared.running_bytes.store(running, Ordering::Relaxed);
    }

    /// What may be written. After a write that found no room it is only what frees space, for a while: redb has to read the
    /// file again after each of them.
    fn free(&self) -> Space {
        match self.full_until {
            Some(until) if now() < until => Space::Reserved,
            Some(_) | None => self.shared.space(),
        }
    }

    fn publish(&self, effect: Effect) {
        match effect {
            Effect::Opened(stream, reply) => {
                self.shared.add(&stream);
                answer(reply, Ok(stream));
            }
            Effect::Appended(stream, record, reply) => {
                let appended = stream.journal().append(&record);
                answer(reply, appended.map(|_| Appended::New));
            }
            Effect::Ended { stream, end, then } => {
                // First, so that a reader that ends finds the end in the file.
                self.shared.remove(&stream.id);
                match end {
                    Ok(end) => stream.journal().seal(end),
                    Err(error) => stream.journal().fail(error),
                };
                self.publish(*then);
            }
            Effect::Answer(answer) => answer(),
            Effect::None => {}
        }
    }

    /// Closes the file after a failure: redb does not continue after one.
    fn fail(&mut self, fault: FileLogError) {
        if fault == FileLogError::Full {
            self.full_until = Some(now() + FULL);
        }
        // The first failure is the reason of the others.
        drop(self.close());
        self.shared.set_fault(fault);
        self.retry_at = Some(now() + RETRY);
    }

    fn close(&mut self) -> Result<(), FileLogError> {
        let mut database = self
            .shared
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let database = database.take();
        self.shared.set_fault(closed());
        match database {
            Some(database) => Ok(database.close()?),
            None => Ok(()),
        }
    }

    fn compact(&mut self) -> Result<(), FileLogError> {
        let mut database = self
            .shared
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match &mut *database {
            Some(database) => {
                database.compact()?;
                Ok(())
            }
            None => Err(self.shared.fault()),
        }
    }
}
