//! `JournalReader`: a cursor over a journal.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{Stream, future::poll_fn, task::AtomicWaker};

use super::Journal;
use crate::{LogError, Record, Seq};

/// Reads a journal from a cursor, and follows it. It keeps the journal alive.
///
/// The first record may begin before the cursor. If the cursor is between the parts of one event, the reader begins
/// with its first part, so that the event can be assembled.
///
/// As a `Stream` it yields one record at a time, and ends after the seal; the error of a failed journal is its last item.
///
/// # Examples
///
/// ```
/// use unbraid_log::{Event, Journal, RecordBuilder, Seq};
///
/// # futures::executor::block_on(async {
/// let journal = Journal::new();
/// let mut builder = RecordBuilder::new(Seq(1));
/// for _ in 0..3 {
///     builder.push(&Event::chunk(&[0.into()], b"{}"));
/// }
/// journal.append(&builder.take().unwrap())?;
///
/// let mut reader = journal.reader(Seq(1));
/// assert_eq!(reader.next_seq(), Seq(2));
/// let records = reader.next(65_536).await?;
/// assert_eq!(records.last().unwrap().last(), Seq(3));
/// assert_eq!(reader.next_seq(), Seq(4));
/// assert!(reader.read(65_536)?.is_empty(), "nothing new");
/// # Ok::<(), unbraid_log::LogError>(())
/// # }).unwrap();
/// ```
pub struct JournalReader {
    journal: Journal,
    next: Seq,
    waker: Arc<AtomicWaker>,
    has_failed: bool,
}

impl JournalReader {
    pub(super) fn new(journal: Journal, after: Seq) -> Self {
        let waker = Arc::new(AtomicWaker::new());
        let mut state = journal.state();
        state.add_reader(Arc::clone(&waker));
        let next = state.start_after(after);
        drop(state);
        Self {
            journal,
            next,
            waker,
            has_failed: false,
        }
    }

    /// The number of the next event that it yields.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// The journal.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{Journal, Seq};
    ///
    /// assert_eq!(Journal::new().reader(Seq::START).journal().tail(), Seq::START);
    /// ```
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Reads the next records without waiting, up to about `max` bytes; none if there is nothing new.
    ///
    /// # Errors
    ///
    /// The error of [`Journal::fail`], after all events.
    pub fn read(&mut self, max: usize) -> Result<Vec<Record>, LogError> {
        let mut records = Vec::new();
        let state = self.journal.state();
        state.read(self.next, max, &mut records);
        if let (true, Some(Err(error))) = (records.is_empty(), state.end()) {
            return Err(error.clone());
        }
        drop(state);
        if let Some(last) = records.last() {
            self.next = last.last().next();
        }
        Ok(records)
    }

    /// Reads the next records, up to about `max` bytes, as soon as there are any. None at the end of the stream.
    ///
    /// # Errors
    ///
    /// The error of [`Journal::fail`], after all events.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self, max: usize) -> Result<Vec<Record>, LogError> {
        poll_fn(|cx| self.poll_next_records(cx, max)).await
    }

    /// Polls for the next records. Ready without records means that the stream has ended.
    ///
    /// # Errors
    ///
    /// The error of [`Journal::fail`], after all events.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    /// use unbraid_log::{End, Journal, Seq, StreamEnd};
    ///
    /// let journal = Journal::new();
    /// let mut reader = journal.reader(Seq::START);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(reader.poll_next_records(&mut cx, 65_536).is_pending());
    /// journal.seal(StreamEnd::new(End::Finished));
    /// assert_eq!(reader.poll_next_records(&mut cx, 65_536), Poll::Ready(Ok(vec![])));
    /// ```
    pub fn poll_next_records(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Vec<Record>, LogError>> {
        if let Poll::Ready(ready) = self.try_read(max) {
            return Poll::Ready(ready);
        }
        self.waker.register(cx.waker());
        // Something may have been appended before the waker was registered.
        self.try_read(max)
    }

    fn try_read(&mut self, max: usize) -> Poll<Result<Vec<Record>, LogError>> {
        let records = self.read(max)?;
        if records.is_empty() && self.journal.end().is_none() {
            return Poll::Pending;
        }
        if records.is_empty() && self.journal.tail() >= self.next {
            return self.try_read(max); // appended between the two checks
        }
        Poll::Ready(Ok(records))
    }
}

impl Stream for JournalReader {
    type Item = Result<Record, LogError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_failed {
            return Poll::Ready(None);
        }
        // One byte: one record at a time, whatever its length is.
        self.poll_next_records(cx, 1).map(|records| match records {
            Ok(records) => records.into_iter().next().map(Ok),
            Err(error) => {
                self.has_failed = true;
                Some(Err(error))
            }
        })
    }
}

impl Drop for JournalReader {
    fn drop(&mut self) {
        self.journal.state().remove_reader(&self.waker);
    }
}

impl fmt::Debug for JournalReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalReader")
            .field("next", &self.next.0)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}
