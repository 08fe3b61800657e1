//! Frees what has expired, and what is too much.

use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable};
use unbraid_log::{ClaimKey, StreamId};

use super::{Book, Worker, apply::release_pending};
use crate::{
    FileLogError, clock,
    job::Effect,
    tables::{EXPIRY, HEAD_BYTES, HEAD_CLOCK, HEAD_NUMBER, RowState, Tables},
};

/// How long a stream is kept that nobody seals.
const UNSEALED_FOR: Duration = Duration::from_secs(24 * 3600);

/// A claim whose stream is never opened is not kept longer than this.
const MAX_PENDING: Duration = Duration::from_secs(24 * 3600);

/// A transaction frees at most this many streams, so that no append waits long for it.
const MAX_FREED: usize = 64;

impl Book {
    pub(super) fn add_pending(&mut self, key: &ClaimKey, id: &StreamId, pending: Duration) {
        let until = clock::now() + pending.min(MAX_PENDING);
        let name = key.name().to_owned();
        self.pending_claims.push_back((until, name, id.clone()));
    }
}

impl Worker {
    /// Whether there is something to free although nothing was requested.
    pub(super) fn is_sweep_due(&self, database: &Database) -> Result<bool, FileLogError> {
        let pending = self.book.pending_claims.front();
        if pending.is_some_and(|(until, ..)| *until <= clock::now())
            || self.book.bytes > self.shared.options.max_bytes
            || self.unsealed().is_some()
        {
            return Ok(true);
        }
        let expiry = database.begin_read()?.open_table(EXPIRY)?;
        let first = expiry.first()?.map(|(key, _)| key.value().0);
        Ok(first.is_some_and(|at| at <= self.shared.clock().now()))
    }

    /// A stream that was opened long ago and never sealed, and whose producer does not live.
    fn unsealed(&self) -> Option<StreamId> {
        let running = self.shared.all_running();
        let mut lost = running
            .iter()
            .filter(|stream| stream.opened.elapsed() > UNSEALED_FOR && !stream.is_alive());
        Some(lost.next()?.id.clone())
    }

    pub(super) fn sweep(
        &mut self,
        tables: &mut Tables<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), FileLogError> {
        let now = self.shared.clock().now();
        let due: Vec<StreamId> = ids(tables, ..=(now, u64::MAX), MAX_FREED)?;
        for id in due {
            match tables.row(id.as_str())?.map(|row| (row.state, row.number)) {
                Some((RowState::Expired { forgotten }, number)) => {
                    tables.streams.remove(id.as_str())?;
                    tables.expiry.remove((forgotten, number))?;
                }
                Some(_) => effects.push(self.erase(tables, &id, Effect::None)?),
                None => {}
            }
        }
        self.evict(tables)?;
        if let Some(id) = self.unsealed() {
            effects.push(self.erase(tables, &id, Effect::None)?);
        }
        self.release_pending(tables)
    }

    /// Frees the streams that ended first, while there are too many bytes. Their readers get the error that it expired.
    fn evict(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        if self.book.bytes <= self.shared.options.max_bytes {
            return Ok(());
        }
        for id in ids(tables, .., MAX_FREED)? {
            if self.book.bytes <= self.shared.options.max_bytes {
                break;
            }
            self.erase(tables, &id, Effect::None)?;
        }
        Ok(())
    }

    fn release_pending(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        let now = clock::now();
        while let Some((until, name, id)) = self.book.pending_claims.pop_front() {
            if until > now {
                self.book.pending_claims.push_front((until, name, id));
                break;
            }
            release_pending(tables, &name, &id)?;
        }
        Ok(())
    }

    /// Writes the numbers that have changed.
    pub(super) fn write_head(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        let head = (self.book.last_number, self.book.bytes);
        if self.book.written_head != Some(head) {
            tables.set_number(HEAD_NUMBER, head.0)?;
            tables.set_number(HEAD_BYTES, head.1)?;
            tables.set_number(HEAD_CLOCK, self.shared.clock().now())?;
            self.book.written_head = Some(head);
        }
        Ok(())
    }
}

/// The ids of the first streams that expire within a range of times.
fn ids(
    tables: &Tables<'_>,
    times: impl std::ops::RangeBounds<(u64, u64)>,
    max: usize,
) -> Result<Vec<StreamId>, FileLogError> {
    let mut ids = Vec::new();
    for row in tables.expiry.range(times)?.take(max) {
        let (_, id) = row?;
        ids.push(id.value().parse()?);
    }
    Ok(ids)
}
