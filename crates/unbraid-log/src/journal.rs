//! `Journal`: one stream in memory, with any number of readers.

mod reader;
mod state;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use reader::{Batch, JournalReader};
use state::State;
pub(crate) use state::Wakers;

use crate::{Appended, LogError, Record, Seq, StreamEnd};

/// One stream in memory: its records, its end, and the readers that wait for more.
///
/// A log in memory consists of journals. A gateway also keeps one for each stream of another log that it reads. `Clone`
/// gives another handle of the same journal; its readers keep it alive.
///
/// Small records are merged, so that a delta costs a few bytes beside its payload. Readers share the bytes.
///
/// # Examples
///
/// ```
/// use unbraid_log::{End, Event, Journal, LogError, RecordBuilder, Seq, StreamEnd};
///
/// let journal = Journal::new();
/// let mut builder = RecordBuilder::new(Seq(1));
/// builder.push(&Event::chunk(&[0.into()], b"{}"));
/// let record = builder.take().unwrap();
/// journal.append(&record)?;
/// assert_eq!(journal.tail(), Seq(1));
/// assert!(journal.bytes() > 0);
///
/// let mut reader = journal.reader(Seq::START);
/// assert_eq!(reader.read(1024)?.records[0].last(), Seq(1));
///
/// assert!(journal.seal(StreamEnd::new(End::Finished)));
/// assert!(!journal.seal(StreamEnd::new(End::Cancelled)), "the first end is kept");
/// assert_eq!(journal.end().unwrap()?.end, End::Finished);
/// builder.push(&Event::chunk(&[0.into()], b"{}"));
/// assert_eq!(journal.append(&builder.take().unwrap()), Err(LogError::Sealed));
/// # Ok::<(), LogError>(())
/// ```
#[derive(Clone, Default)]
pub struct Journal {
    shared: Arc<Mutex<State>>,
}

impl Journal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a record, and wakes the readers. Events that the journal already contains are compared and left out.
    ///
    /// # Errors
    ///
    /// [`LogError::Sealed`], or the error of [`fail`](Self::fail); [`LogError::Fenced`] if it contains other events at these
    /// numbers; [`LogError::Gap`] if events are missing.
    pub fn append(&self, record: &Record) -> Result<Appended, LogError> {
        self.append_counted(record).map(|(appended, _)| appended)
    }

    /// The part of a record that [`append`](Self::append) would add, or `None` if the journal contains all of it. Nothing
    /// changes.
    ///
    /// An engine whose records become visible only once they are stored checks them first, and appends them afterwards.
    ///
    /// # Errors
    ///
    /// Those of [`append`](Self::append).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{Event, Journal, RecordBuilder, Seq};
    ///
    /// let journal = Journal::new();
    /// let mut builder = RecordBuilder::new(Seq(1));
    /// builder.push(&Event::chunk(&[0.into()], b"{}"));
    /// let record = builder.take().unwrap();
    /// assert_eq!(journal.check(&record)?, Some(record.clone()));
    /// journal.append(&record)?;
    /// assert_eq!(journal.check(&record)?, None);
    /// # Ok::<(), unbraid_log::LogError>(())
    /// ```
    pub fn check(&self, record: &Record) -> Result<Option<Record>, LogError> {
        self.state().check(record)
    }

    /// Appends a record, and returns by how much [`bytes`](Self::bytes) has grown.
    pub(crate) fn append_counted(&self, record: &Record) -> Result<(Appended, usize), LogError> {
        let mut state = self.state();
        let before = state.bytes();
        let appended = state.append(record)?;
        let added = state.bytes() - before;
        let wakers = state.notify();
        drop(state);
        wakers.wake();
        Ok((appended, added))
    }

    /// Sets the end. Returns false if the journal already has one, or has failed.
    pub fn seal(&self, end: StreamEnd) -> bool {
        self.close(Ok(end))
    }

    /// Ends the journal without an end of its stream: the readers get this error. Returns false if it already has an end.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{Journal, LogError, Seq};
    ///
    /// let journal = Journal::new();
    /// journal.fail(LogError::Expired);
    /// assert_eq!(journal.reader(Seq::START).read(1024), Err(LogError::Expired));
    /// ```
    pub fn fail(&self, error: LogError) -> bool {
        self.close(Err(error))
    }

    fn close(&self, end: Result<StreamEnd, LogError>) -> bool {
        let (is_first, wakers) = self.close_silently(end);
        wakers.wake();
        is_first
    }

    /// Sets the end, and leaves it to the caller, which holds a lock, to wake the readers.
    pub(crate) fn close_silently(&self, end: Result<StreamEnd, LogError>) -> (bool, Wakers) {
        let mut state = self.state();
        let is_first = state.close(end);
        (is_first, state.notify())
    }

    /// The number of the last event.
    #[must_use]
    pub fn tail(&self) -> Seq {
        self.state().tail()
    }

    /// The end, once there is one.
    #[must_use]
    pub fn end(&self) -> Option<Result<StreamEnd, LogError>> {
        self.state().end().cloned()
    }

    /// The bytes of the records that were appended. Merged, they take a little less memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state().bytes()
    }

    /// The records that contain events after a cursor. The first of them may begin before it.
    ///
    /// A producer appends them again to an engine that has lost events. Their boundaries may differ from those of the
    /// records that were appended, but their events are the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{Journal, Seq};
    ///
    /// assert!(Journal::new().records(Seq(3)).is_empty());
    /// ```
    #[must_use]
    pub fn records(&self, after: Seq) -> Vec<Record> {
        let mut records = Vec::new();
        self.state().read(after.next(), usize::MAX, &mut records);
        records
    }

    /// A reader of the events after a cursor.
    #[must_use]
    pub fn reader(&self, after: Seq) -> JournalReader {
        JournalReader::new(self.clone(), after)
    }

    /// The events from one number to another in one record; `None` unless the journal has all of them.
    pub(crate) fn slice(&self, first: Seq, last: Seq) -> Option<Record> {
        let mut records = Vec::new();
        // About as much as is needed: a reader of the same journal must not wait for a copy of all of it.
        self.state().read_between(first, last, &mut records);
        let slices: Vec<Record> = records
            .iter()
            .filter_map(|record| record.slice(first, last))
            .collect();
        let merged = match &slices[..] {
            [single] => single.clone(),
            several => Record::merge(several)?,
        };
        (merged.first() == first && merged.last() == last).then_some(merged)
    }

    /// The number at which a record ends that begins at `first` and has about `max` bytes.
    pub(crate) fn end_of_record(&self, first: Seq, max: usize) -> Option<Seq> {
        let mut records = Vec::new();
        self.state().read(first, max, &mut records);
        records.last().map(Record::last)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves a state in which every record is complete.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Journal")
            .field("tail", &state.tail().0)
            .field("bytes", &state.bytes())
            .field("is_closed", &state.end().is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
