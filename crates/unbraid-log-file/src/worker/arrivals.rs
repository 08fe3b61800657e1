//! The records of running streams, in the order of their commits, until they move to the records of their stream.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use unbraid_log::{Event, Record, RecordBuilder, Seq};

use crate::{
    FileLogError,
    shared::Running,
    tables::{Tables, arrivals},
};

/// Above this many bytes, the oldest records move: it bounds what is read at the next start.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A commit moves the records of at most this many streams, so that no append waits long for those of others.
const MAX_MOVED: usize = 32;

/// The length of a row in `events`: with its key, it fits into four pages of the file. redb stores a row in a power of two of
/// pages.
const ROW_BYTES: usize = 16_000;

#[derive(Default)]
pub(super) struct Arrivals {
    /// The key of the next row.
    next: u64,
    /// The rows of the table: their keys and lengths.
    rows: VecDeque<(u64, usize)>,
    bytes: usize,
    /// What `events` contains of the streams that run, in bytes.
    moved_bytes: u64,
    /// The row that is being formed.
    row: Vec<u8>,
    /// Streams with records that did not move, by the row of their first one. Some of them have ended since.
    unsaved: VecDeque<(u64, Arc<Running>)>,
    /// What `events` contains of the streams that run.
    saved: HashMap<u64, Saved>,
}

/// What `events` contains of a stream.
#[derive(Default)]
struct Saved {
    tail: Seq,
    bytes: u64,
    /// The row that contains its first record that did not move.
    first_row: Option<u64>,
}

impl Arrivals {
    /// A table that contains these rows, without streams.
    pub(super) fn new(rows: VecDeque<(u64, usize)>) -> Self {
        Self {
            next: rows.back().map_or(0, |(key, _)| key + 1),
            bytes: rows.iter().map(|(_, bytes)| bytes).sum(),
            rows,
            ..Self::default()
        }
    }

    /// Adds a new stream.
    pub(super) fn add(&mut self, number: u64) {
        self.saved.insert(number, Saved::default());
    }

    /// Adds a stream whose records have moved up to a number, and the row of the first one that has not.
    pub(super) fn add_existing(
        &mut self,
        stream: &Arc<Running>,
        tail: Seq,
        bytes: u64,
        first_row: Option<u64>,
    ) {
        let saved = Saved {
            tail,
            bytes,
            first_row,
        };
        self.moved_bytes += bytes;
        self.saved.insert(stream.number(), saved);
        if let Some(row) = first_row {
            let position = self.unsaved.partition_point(|(other, _)| *other <= row);
            self.unsaved.insert(position, (row, Arc::clone(stream)));
        }
    }

    /// The bytes of the running streams, and of rows that are removed later.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64 + self.moved_bytes
    }

    /// Adds a record to the row of this transaction.
    pub(super) fn push(&mut self, stream: &Arc<Running>, record: &Record) {
        let number = stream.number();
        arrivals::push(number, record, &mut self.row);
        let saved = self.saved.entry(number).or_default();
        if saved.first_row.is_none() {
            saved.first_row = Some(self.next);
            self.unsaved.push_back((self.next, Arc::clone(stream)));
        }
    }

    /// Writes the row of this transaction.
    pub(super) fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        if self.row.is_empty() {
            return Ok(());
        }
        tables.arrivals.insert(self.next, &*self.row)?;
        self.rows.push_back((self.next, self.row.len()));
        self.bytes += self.row.len();
        self.next += 1;
        self.row.clear();
        // The buffer of a burst is not kept.
        self.row.shrink_to(1024 * 1024);
        Ok(())
    }

    /// Moves the records of a stream that ends. Returns the bytes of all its records.
    pub(super) fn end(
        &mut self,
        tables: &mut Tables<'_>,
        stream: &Running,
    ) -> Result<u64, FileLogError> {
        self.save(tables, stream)?;
        Ok(self.forget(stream.number()))
    }

    /// Forgets a stream. Returns the bytes that `events` contains of it.
    pub(super) fn forget(&mut self, number: u64) -> u64 {
        let bytes = self.saved.remove(&number).unwrap_or_default().bytes;
        self.moved_bytes -= bytes;
        bytes
    }

    /// Moves the oldest records while there are too many.
    pub(super) fn move_oldest(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        let mut moved = 0;
        while self.bytes > MAX_BYTES
            && moved < MAX_MOVED
            && let Some((_, stream)) = self.unsaved.pop_front()
        {
            if self.saved.contains_key(&stream.number()) {
                self.save(tables, &stream)?;
                moved += 1;
            }
            self.remove_unneeded(tables)?;
        }
        Ok(())
    }

    /// Removes the rows whose records have all moved, or are erased.
    pub(super) fn remove_unneeded(&mut self, tables: &mut Tables<'_>) -> Result<(), FileLogError> {
        let oldest = self.oldest_unsaved();
        while let Some((key, bytes)) = self.rows.front().copied().filter(|(key, _)| *key < oldest) {
            tables.arrivals.remove(key)?;
            self.bytes -= bytes;
            self.rows.pop_front();
        }
        Ok(())
    }

    /// The row of the oldest record that has to stay.
    fn oldest_unsaved(&mut self) -> u64 {
        while let Some((row, stream)) = self.unsaved.front() {
            let saved = self.saved.get(&stream.number());
            if saved.is_some_and(|saved| saved.first_row == Some(*row)) {
                return *row;
            }
            self.unsaved.pop_front();
        }
        self.next
    }

    /// Moves what was committed of a stream. A record of this transaction is not in its journal, and stays.
    fn save(&mut self, tables: &mut Tables<'_>, stream: &Running) -> Result<(), FileLogError> {
        let number = stream.number();
        let saved = self.saved.entry(number).or_default();
        let journal = stream.journal();
        let rows = cut(&journal.records(saved.tail), saved.tail);
        let bytes = tables.save(number, &rows)?;
        saved.bytes += bytes;
        self.moved_bytes += bytes;
        saved.tail = rows.last().map_or(saved.tail, Record::last);
        saved.first_row = None;
        Ok(())
    }
}

/// The events after a number, in records of the length of a row.
pub(super) fn cut(records: &[Record], after: Seq) -> Vec<Record> {
    // The kind, the choices and the lengths of an event.
    const OVERHEAD: usize = 32;
    let mut rows = Vec::new();
    let mut builder = RecordBuilder::new(after.next());
    let length = |event: &Event<'_>| event.payload().map_or(0, <[u8]>::len) + OVERHEAD;
    for (seq, event) in records.iter().flat_map(Record::events) {
        if seq <= after {
            continue;
        }
        if builder.bytes() + length(&event) > ROW_BYTES {
            rows.extend(builder.take());
        }
        builder.push(&event);
    }
    rows.extend(std::iter::from_fn(|| builder.take()));
    rows
}

#[cfg(test)]
mod tests {
    use unbraid_log::Journal;

    use super::*;

    #[test]
    fn rows_contain_every_event_once_and_fit_into_their_pages() {
        let journal = Journal::new();
        let mut builder = RecordBuilder::new(Seq(1));
        for length in [10, 15_990, 5, 700_000, 16_000, 1, 1]
            .into_iter()
            .cycle()
            .take(60)
        {
            builder.push(&Event::chunk(&[1.into()], &vec![b'x'; length]));
        }
        while let Some(record) = builder.take() {
            journal.append(&record).unwrap();
        }
        for after in [0, 1, 5, 30, journal.tail().0] {
            let rows = cut(&journal.records(Seq(after)), Seq(after));
            let copy = journal.reader(Seq(after)).journal().records(Seq(after));
            let events = |records: &[Record]| {
                let events = records.iter().flat_map(Record::events);
                let events = events.filter(|(seq, _)| seq.0 > after);
                events
                    .map(|(seq, event)| (seq.0, event.payload().map(<[u8]>::len)))
                    .collect::<Vec<_>>()
            };
            assert_eq!(events(&rows), events(&copy), "after {after}");
            for row in &rows {
                let is_one_event = row.first() == row.last();
                assert!(is_one_event || row.encoded().len() < 16_200, "{row:?}");
            }
        }
    }
}
