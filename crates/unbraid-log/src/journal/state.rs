//! What the lock of a journal protects: its records, its end and its waiting readers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use futures::task::AtomicWaker;

use crate::{Appended, Event, LogError, Record, Seq, StreamEnd};

/// Small records are merged when they have this many bytes together, which is about fifty deltas.
const MERGED_BYTES: usize = 16 * 1024;

/// And when there are this many, so that a delta never costs more than the header of a record for long.
const MAX_SMALL: usize = 64;

/// A reader that may wait.
pub(super) struct Waiter {
    pub(super) waker: AtomicWaker,
    /// Whether the journal may have something that the reader has not read. It is written under the lock only. A reader that
    /// has read everything finds that out without the lock, so a change that is not followed by [`State::notify`] is not seen.
    pub(super) has_changed: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    /// Consecutive records from number 1.
    records: Vec<Record>,
    /// How many records at the end were not merged, and their bytes.
    small: usize,
    small_bytes: usize,
    bytes: usize,
    /// The first and last number of each event that has several parts. There are few.
    splits: Vec<(Seq, Seq)>,
    /// The first number of the event whose last part is missing.
    open_split: Option<Seq>,
    end: Option<Result<StreamEnd, LogError>>,
    readers: Vec<Arc<Waiter>>,
}

impl State {
    pub(super) fn tail(&self) -> Seq {
        self.records.last().map_or(Seq::START, Record::last)
    }

    pub(super) fn end(&self) -> Option<&Result<StreamEnd, LogError>> {
        self.end.as_ref()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn append(&mut self, record: &Record) -> Result<Appended, LogError> {
        match self.check(record)? {
            Some(new) => {
                self.push(new);
                Ok(Appended::New)
            }
            None => Ok(Appended::Duplicate),
        }
    }

    /// The part of a record that an append adds; `None` for a duplicate.
    pub(super) fn check(&self, record: &Record) -> Result<Option<Record>, LogError> {
        // What a failed journal contains is not kept any more.
        if let Some(Err(error)) = &self.end {
            return Err(error.clone());
        }
        let next = self.tail().next();
        if record.first() < next {
            return self.check_overlapping(record, next);
        }
        if self.end.is_some() {
            return Err(LogError::Sealed);
        }
        if record.first() > next {
            return Err(LogError::Gap {
                tail: self.tail(),
                first: record.first(),
            });
        }
        Ok(Some(record.clone()))
    }

    /// Compares the events that the journal contains, and leaves them out.
    fn check_overlapping(&self, record: &Record, next: Seq) -> Result<Option<Record>, LogError> {
        let known = self.events(record.first());
        let given = record.events().take_while(|(seq, _)| *seq < next);
        if !known.zip(given).all(|(known, given)| known == given) {
            return Err(LogError::Fenced {
                first: record.first(),
            });
        }
        match record.after(next.previous()) {
            Some(rest) => self.check(&rest),
            None => Ok(None),
        }
    }

    /// The events from this number on.
    fn events(&self, first: Seq) -> impl Iterator<Item = (Seq, Event<'_>)> {
        let start = self.position(first);
        let records = self.records.get(start..).unwrap_or_default();
        let events = records.iter().flat_map(Record::events);
        events.skip_while(move |(seq, _)| *seq < first)
    }

    /// The first record that contains this number or a greater one.
    fn position(&self, seq: Seq) -> usize {
        // A reader that follows the stream wants the last record. A search would touch records that have left the caches.
        let is_before = |record: &Record| record.last() < seq;
        let earlier = self.records.split_last().map(|(_, earlier)| earlier);
        match earlier {
            Some(earlier) if earlier.last().is_none_or(is_before) => {
                earlier.len() + usize::from(self.tail() < seq)
            }
            _ => self.records.partition_point(is_before),
        }
    }

    fn push(&mut self, record: Record) {
        self.note_splits(&record);
        let length = record.encoded().len();
        self.bytes += length;
        if length >= MERGED_BYTES {
            self.merge();
            self.records.push(record);
            return;
        }
        self.records.push(record);
        self.small += 1;
        self.small_bytes += length;
        if self.small_bytes >= MERGED_BYTES || self.small >= MAX_SMALL {
            self.merge();
        }
    }

    /// Remembers which numbers are parts of one event: a reader must not begin between them.
    fn note_splits(&mut self, record: &Record) {
        for (seq, event) in record.events() {
            match (event, self.open_split) {
                (Event::Part { .. }, None) => self.open_split = Some(seq),
                (Event::Part { .. }, Some(_)) | (_, None) => {}
                (_, Some(first)) => {
                    self.open_split = None;
                    self.splits.push((first, seq));
                }
            }
        }
    }

    /// The number at which a reader begins that wants the events after a cursor.
    pub(super) fn start_after(&self, after: Seq) -> Seq {
        let split = self
            .splits
            .iter()
            .find(|(first, last)| *first <= after && after < *last);
        let open = self.open_split.filter(|first| *first <= after);
        let open = open.filter(|_| after <= self.tail());
        split
            .map(|(first, _)| *first)
            .or(open)
            .unwrap_or_else(|| after.next())
    }

    fn merge(&mut self) {
        let start = self.records.len() - self.small;
        let small = self.records.get(start..).unwrap_or_default();
        if let Some(merged) = Record::merge(small) {
            self.records.truncate(start);
            self.records.push(merged);
        }
        self.small = 0;
        self.small_bytes = 0;
    }

    /// Sets the end, unless there is one.
    pub(super) fn close(&mut self, end: Result<StreamEnd, LogError>) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.merge();
        self.records.shrink_to_fit();
        self.end = Some(end);
        true
    }

    /// Adds the records that contain this number or greater ones, until they have `max` bytes.
    pub(super) fn read(&self, next: Seq, max: usize, records: &mut Vec<Record>) {
        let mut bytes = 0;
        let start = self.position(next);
        for record in self.records.get(start..).unwrap_or_default() {
            bytes += record.encoded().len();
            if bytes > max && !records.is_empty() {
                return;
            }
            records.push(record.clone());
        }
    }

    /// Adds the records that contain these numbers.
    pub(super) fn read_between(&self, first: Seq, last: Seq, records: &mut Vec<Record>) {
        let start = self.position(first);
        let rest = self.records.get(start..).unwrap_or_default();
        records.extend(
            rest.iter()
                .take_while(|record| record.first() <= last)
                .cloned(),
        );
    }

    pub(super) fn add_reader(&mut self, reader: Arc<Waiter>) {
        self.readers.push(reader);
    }

    pub(super) fn remove_reader(&mut self, reader: &Arc<Waiter>) {
        self.readers.retain(|other| !Arc::ptr_eq(other, reader));
    }

    pub(super) fn reader_count(&self) -> usize {
        self.readers.len()
    }

    /// Notes for the readers that something has changed. Returns the wakers of those that wait.
    pub(super) fn notify(&mut self) -> Wakers {
        let notify = |reader: &Arc<Waiter>| {
            reader.has_changed.store(true, Ordering::Relaxed);
            reader.waker.take()
        };
        let mut wakers = self.readers.iter().filter_map(notify);
        Wakers {
            first: wakers.next(),
            others: wakers.collect(),
        }
    }
}

/// The wakers of the readers that wait: mostly one, which needs no memory.
#[must_use = "a reader whose waker was taken waits until it is woken"]
pub(crate) struct Wakers {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakers {
    /// Wakes the readers, after every lock was released, because wakers are foreign code. One that panics leaves no other
    /// reader asleep; the panic hook has reported it.
    pub(crate) fn wake(self) {
        for waker in self.first.into_iter().chain(self.others) {
            let _panicked = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }
}
