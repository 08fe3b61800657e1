//! Frees what has expired, and what is too much.

use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable};
use unbraid_log::StreamId;

use super::Worker;
use crate::{
    FileLogError,
    job::Effect,
    tables::{EXPIRY, ExpiryKey, HEAD_BYTES, HEAD_CLOCK, HEAD_NUMBER, RowState, Tables},
};

/// How long a stream is kept that nobody seals.
const UNSEALED_FOR: Duration = Duration::from_secs(24 * 3600);

/// A transaction frees at most this many streams, so that no append waits long for it.
const MAX_FREED: usize = 64;

/// A transaction visits at most this many streams to find those that can be evicted. Streams that were evicted are remembered
/// for a day, and with a longer ttl their rows are before those of the streams that are kept.
const MAX_VISITED: usize = 512;

/// The key after every row.
const LAST: ExpiryKey = (u64::MAX, u64::MAX);

impl Worker {
    /// Whether there is something to free although nothing was requested.
    pub(super) fn is_sweep_due(&self, database: &Database) -> Result<bool, FileLogError> {
        let can_evict = self.has_too_many_bytes() && self.book.evict_from < LAST;
        if can_evict || self.book.pending_claims.has_ended() || self.unsealed().is_some() {
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

    fn has_too_many_bytes(&self) -> bool {
        self.book.bytes > self.shared.options.max_bytes
    }

    /// Frees the streams that ended first, while there are too many bytes. Their readers get the error that it expired.
    fn evict(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        if !self.has_too_many_bytes() {
            return Ok(());
        }
        let (ended, next) = first_ended(tables, self.book.evict_from)?;
        for (place, id) in ended {
            self.book.evict_from = place;
            if !self.has_too_many_bytes() {
                return Ok(());
            }
            self.erase(tables, &id, Effect::None)?;
        }
        self.book.evict_from = next;
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

/// The ended streams that expire first, from this row on, and the row from which on there may be more.
fn first_ended(
    tables: &Tables<'_>,
    from: ExpiryKey,
) -> Result<(Vec<(ExpiryKey, StreamId)>, ExpiryKey), FileLogError> {
    let mut ended = Vec::new();
    for (visited, row) in tables.expiry.range(from..)?.enumerate() {
        let (place, id) = row?;
        if ended.len() == MAX_FREED || visited == MAX_VISITED {
            return Ok((ended, place.value()));
        }
        let row = tables.row(id.value())?;
        if row.is_some_and(|row| matches!(row.state, RowState::Ended { .. })) {
            ended.push((place.value(), id.value().parse()?));
        }
    }
    Ok((ended, LAST))
}
