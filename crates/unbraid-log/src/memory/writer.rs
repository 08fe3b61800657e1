//! The writer of one stream of a log in memory.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};

use super::Inner;
use crate::{
    Appended, Journal, LogError, LogStatus, LogWriter, Meta, Record, Seq, StreamEnd, StreamId,
};

pub(super) struct MemoryWriter {
    log: Arc<Inner>,
    id: StreamId,
    meta: Arc<Meta>,
    journal: Journal,
    /// Its number, by which the log knows the last writer of a stream.
    number: u64,
    /// The last event that it has appended.
    appended: Seq,
}

impl MemoryWriter {
    pub(super) fn new(
        log: Arc<Inner>,
        id: StreamId,
        meta: Arc<Meta>,
        journal: Journal,
        number: u64,
    ) -> Self {
        Self {
            log,
            id,
            meta,
            journal,
            number,
            appended: Seq::START,
        }
    }

    fn append_now(&mut self, record: &Record) -> Result<Appended, LogError> {
        let (appended, added) = match self.journal.append_counted(record) {
            Err(error) if error.is_temporary() => {
                self.open_again()?;
                self.journal.append_counted(record)?
            }
            result => result?,
        };
        if added > 0 {
            let total = self.log.add_bytes(added);
            if total > self.log.options.max_bytes {
                // A running stream is never refused, even if nothing can be evicted.
                let _has_room = self.log.evict();
            }
        }
        self.appended = self.appended.max(record.last());
        Ok(appended)
    }

    /// Opens the stream again after the log was cleared, so that its events can be appended again.
    fn open_again(&mut self) -> Result<(), LogError> {
        let journal = Journal::new();
        let lease = self.log.options.lease;
        let opened = self.log.state().open(&self.id, &self.meta, &journal, lease);
        let opened = opened?;
        self.log.add_bytes(opened.cost);
        (self.journal, self.number) = (journal, opened.writer);
        Ok(())
    }

    fn renew_now(&mut self, lease: Duration) -> Result<(), LogError> {
        let renewed = self.log.state().renew(&self.id, lease);
        match renewed {
            Err(LogError::Unknown) => self.open_again(),
            result => result,
        }
    }

    /// A seal must not make a loss final.
    fn check_tail(&self) -> Result<(), LogError> {
        let tail = match self.log.state().status(&self.id) {
            LogStatus::Running { tail, .. } => tail,
            LogStatus::Unknown => Seq::START,
            LogStatus::Ended { .. } | LogStatus::Expired { .. } => return Ok(()),
        };
        if tail < self.appended {
            let first = self.appended;
            return Err(LogError::Gap { tail, first });
        }
        Ok(())
    }

    fn seal_now(&mut self, end: &StreamEnd) -> Result<(), LogError> {
        self.log.sweep();
        let ttl = self.log.options.ttl;
        self.check_tail()?;
        let sealed = self.log.change(|state| state.seal(&self.id, end, ttl));
        let added = match sealed {
            Err(LogError::Unknown) => {
                self.open_again()?;
                self.log.change(|state| state.seal(&self.id, end, ttl))
            }
            result => result,
        };
        self.log.add_bytes(added?);
        Ok(())
    }
}

impl LogWriter for MemoryWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        ready(self.append_now(record)).boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        let lease = self.log.options.lease;
        ready(self.renew_now(lease)).boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        ready(self.seal_now(end)).boxed()
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        // Nobody else renews it, so a reader need not wait until the lease has passed.
        self.log.state().end_lease(&self.id, self.number);
    }
}
