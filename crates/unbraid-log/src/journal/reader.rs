//! `JournalReader`: a cursor over a journal.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures::{Stream, future::poll_fn, task::AtomicWaker};

use super::{Journal, state::Waiter};
use crate::{LogError, Record, Seq, StreamEnd};

/// What a reader gets at once.
///
/// # Examples
///
/// ```
/// use unbraid_log::{Batch, End, Journal, Seq, StreamEnd};
///
/// let journal = Journal::new();
/// let mut reader = journal.reader(Seq::START);
/// assert_eq!(reader.read(65_536)?, Batch::default());
/// journal.seal(StreamEnd::new(End::Finished));
/// assert_eq!(reader.read(65_536)?.end, Some(StreamEnd::new(End::Finished)));
/// # Ok::<(), unbraid_log::LogError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Consecutive records; the first one of a reader may begin before its cursor.
    pub records: Vec<Record>,
    /// The end of the stream, if nothing follows the records.
    pub end: Option<StreamEnd>,
}

impl Batch {
    /// Whether there is nothing new.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(unbraid_log::Batch::default().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.end.is_none()
    }
}

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
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let journal = Journal::new();
/// let mut builder = RecordBuilder::new(Seq(1));
/// for _ in 0..3 {
///     builder.push(&Event::chunk(&[0.into()], b"{}"));
/// }
/// journal.append(&builder.take().unwrap())?;
///
/// let mut reader = journal.reader(Seq(1));
/// assert_eq!(reader.next_seq(), Seq(2));
/// let batch = reader.next_batch(65_536).await?;
/// assert_eq!(batch.records.last().unwrap().last(), Seq(3));
/// assert_eq!(reader.next_seq(), Seq(4));
/// assert!(reader.read(65_536)?.is_empty(), "nothing new");
/// # Ok::<(), unbraid_log::LogError>(())
/// # }).unwrap();
/// ```
pub struct JournalReader {
    waiter: Arc<Waiter>,
    journal: Journal,
    next: Seq,
    /// Whether the journal had no other reader when it was last read.
    is_alone: bool,
    /// As a stream: whether it has yielded its first record, and its last item.
    has_begun: bool,
    has_ended: bool,
}

impl JournalReader {
    pub(super) fn new(journal: Journal, after: Seq) -> Self {
        let waiter = Arc::new(Waiter {
            waker: AtomicWaker::new(),
            has_changed: AtomicBool::new(true),
        });
        let mut state = journal.state();
        state.add_reader(Arc::clone(&waiter));
        let next = state.start_after(after);
        drop(state);
        Self {
            journal,
            next,
            waiter,
            is_alone: false,
            has_begun: false,
            has_ended: false,
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

    /// Whether the journal had no other reader when this one last read it, so that nobody needs the same bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{Journal, Seq};
    ///
    /// let journal = Journal::new();
    /// let mut reader = journal.reader(Seq::START);
    /// reader.read(1024)?;
    /// assert!(reader.is_alone());
    /// let _other = journal.reader(Seq::START);
    /// reader.read(1024)?;
    /// assert!(!reader.is_alone());
    /// # Ok::<(), unbraid_log::LogError>(())
    /// ```
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Reads the next records without waiting, up to about `max` bytes; an empty batch if there is nothing new. One
    /// record is read whatever its length is.
    ///
    /// # Errors
    ///
    /// The error of [`Journal::fail`], after all events.
    pub fn read(&mut self, max: usize) -> Result<Batch, LogError> {
        let mut records = Vec::new();
        let state = self.journal.state();
        state.read(self.next, max, &mut records);
        let next = records.last().map_or(self.next, |last| last.last().next());
        let is_all = state.tail() < next;
        let end = match state.end() {
            Some(Err(error)) if records.is_empty() => return Err(error.clone()),
            Some(Ok(end)) if is_all => Some(end.clone()),
            Some(_) => None,
            None => {
                // Under the lock, so that nothing is appended between the read and this.
                self.waiter.has_changed.store(!is_all, Ordering::Relaxed);
                None
            }
        };
        self.is_alone = state.reader_count() == 1;
        drop(state);
        self.next = next;
        Ok(Batch { records, end })
    }

    /// Reads what is new; an empty batch, without the lock, if nothing is.
    fn read_changed(&mut self, max: usize) -> Result<Batch, LogError> {
        match self.waiter.has_changed.load(Ordering::Relaxed) {
            true => self.read(max),
            false => Ok(Batch::default()),
        }
    }

    /// Reads the next records, up to about `max` bytes, as soon as there are any, or the end of the stream.
    ///
    /// # Errors
    ///
    /// The error of [`Journal::fail`], after all events.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next_batch(&mut self, max: usize) -> Result<Batch, LogError> {
        poll_fn(|cx| self.poll_batch(cx, max)).await
    }

    /// Polls for the next records, as [`next_batch`](Self::next_batch) does.
    ///
    /// # Errors
    ///
    /// The error of [`Journal::fail`], after all events.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Waker};
    /// use unbraid_log::{End, Journal, Seq, StreamEnd};
    ///
    /// let journal = Journal::new();
    /// let mut reader = journal.reader(Seq::START);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(reader.poll_batch(&mut cx, 65_536).is_pending());
    /// journal.seal(StreamEnd::new(End::Finished));
    /// assert!(reader.poll_batch(&mut cx, 65_536).is_ready());
    /// ```
    pub fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Batch, LogError>> {
        let batch = self.read_changed(max)?;
        if !batch.is_empty() {
            return Poll::Ready(Ok(batch));
        }
        self.waiter.waker.register(cx.waker());
        // Something may have been appended before the waker was registered. An append sets the flag and then takes the waker: if
        // it took none, its changes of the waker's state precede those of the registration, and the flag is seen.
        let batch = self.read_changed(max)?;
        if batch.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(Ok(batch))
        }
    }
}

impl Stream for JournalReader {
    type Item = Result<Record, LogError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let previous = self.next.previous();
        // With a maximum of 0 bytes it is one record at a time.
        self.poll_batch(cx, 0).map(|batch| {
            let batch = batch.map(|batch| batch.records.into_iter().next());
            // Records that were read may have been merged with the next one since.
            let batch = batch.map(|record| match record {
                Some(record) if self.has_begun => record.after(previous),
                record => record,
            });
            self.has_begun = true;
            self.has_ended = !matches!(batch, Ok(Some(_)));
            batch.transpose()
        })
    }
}

impl Drop for JournalReader {
    fn drop(&mut self) {
        self.journal.state().remove_reader(&self.waiter);
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
