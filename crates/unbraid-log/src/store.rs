//! The traits of a log.

use std::{future::ready, sync::Arc, time::SystemTime};

use futures::{future::BoxFuture, stream::BoxStream};
use unbraid_core::ChoiceIndex;

use crate::{Claim, ClaimKey, LogError, Meta, Record, Seq, StreamEnd, StreamId};

/// Where generations are kept. Object-safe; every user holds a clone of one `Arc`.
///
/// No method waits longer than about one second for the engine: after that the result is
/// [`LogError::Unavailable`]. Dropping a future may leave its request in flight, so a caller repeats it or accepts either
/// result; every method may be repeated.
///
/// # Examples
///
/// ```
/// use futures::StreamExt;
/// use std::sync::Arc;
/// use unbraid_log::{
///     Appended, End, Event, LogStatus, LogStore, MemoryLog, MemoryOptions, Meta, RecordBuilder, Seq, StreamEnd, StreamId,
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
/// let id = StreamId::random()?;
/// let mut writer = log.open(&id, &Meta::new("/v1/chat/completions", 1_790_000_000)).await?;
///
/// let mut builder = RecordBuilder::new(Seq(1));
/// builder.push(&Event::chunk(&[0.into()], br#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#));
/// while let Some(record) = builder.take() {
///     assert_eq!(writer.append(&record).await?, Appended::New);
/// }
/// writer.seal(&StreamEnd::new(End::Finished)).await?;
///
/// let records: Vec<_> = log.read(&id, Seq::START).collect().await;
/// assert_eq!(records.len(), 1);
/// assert!(matches!(log.status(&id).await?, LogStatus::Ended { tail: Seq(1), .. }));
/// # Ok::<(), unbraid_log::LogError>(())
/// # }).unwrap();
/// ```
pub trait LogStore: Send + Sync + 'static {
    /// Creates a stream, and gives its only writer.
    ///
    /// It is one transaction, and creates the lease before the stream can be found.
    ///
    /// # Errors
    ///
    /// [`LogError::Exists`] for an id that is or was in use, [`LogError::Full`], [`LogError::Unavailable`].
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>>;

    /// Gives the writer of a stream whose [`open`](Self::open) may have succeeded although its answer was lost, or which the
    /// engine has lost since. A stream that does not exist is created.
    ///
    /// Only the caller of that `open` may use it: nobody else knows that the id has no other writer. It may be repeated.
    ///
    /// By default it is `open`, so that a stream whose opening was carried out without an answer is [`LogError::Exists`].
    ///
    /// # Errors
    ///
    /// [`LogError::Exists`] for a stream that is no longer kept, [`LogError::Full`], [`LogError::Unavailable`].
    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        self.open(id, meta)
    }

    /// The name of the engine, for metrics: one word in lower case.
    fn backend(&self) -> &'static str {
        "other"
    }

    /// Whether several processes use the log at once, so that a stream may have readers in other ones. By default they do.
    fn is_shared(&self) -> bool {
        true
    }

    /// Reads the records that contain events after a cursor, and then those that are appended. The stream ends only
    /// after the seal.
    ///
    /// The first record may begin before the cursor, and if the cursor is between the parts of one event
    /// ([`Event::Part`](crate::Event::Part)), a log may begin with the record of its first part. Each further record begins
    /// where its predecessor ended. The cursor may be greater than the log's last event: then the stream waits for greater
    /// numbers, or ends if the log is sealed.
    ///
    /// # Errors
    ///
    /// The first error is the last item: [`LogError::Unknown`], [`LogError::Expired`], [`LogError::Gap`],
    /// [`LogError::Unavailable`], or those of [`Record::decode`]. After a temporary error, read again from the last
    /// record.
    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>>;

    /// Returns what is known about a stream.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`]; an unknown stream is not an error.
    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>>;

    /// Whether the engine was away, or was emptied, so short a time ago that producers may not have written again what it
    /// lacks. Then a stream that is unknown to it may exist all the same, and is found a few seconds later.
    ///
    /// By default it was not: a log in this process lacks nothing.
    fn may_lack_streams(&self) -> BoxFuture<'_, bool> {
        Box::pin(ready(false))
    }

    /// Seals a stream as [`End::ProducerLost`](crate::End::ProducerLost) if, and only if, its lease has expired. Returns
    /// the status after it.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`].
    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>>;

    /// Erases the events of a stream, and frees its claim. Its id stays in use: the status is [`LogStatus::Expired`].
    ///
    /// Readers of a stream that is not sealed get [`LogError::Expired`], and so does its writer. An unknown stream is not an
    /// error.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`].
    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>>;

    /// Claims an idempotency key for a stream that is about to be opened. Of several claims at once exactly one is
    /// [`Claim::Acquired`].
    ///
    /// The claim is kept as long as the stream that [`Meta::claim`] connects with it. Until that is opened, its holder has to
    /// repeat the call more often than a lease lasts: a log of several processes gives the key to the next one that claims
    /// it once the holder has been silent for a lease, by the rules by which [`seal_lost`](Self::seal_lost) declares a
    /// producer lost. The holder then gets [`Claim::Held`]. A claim that is not repeated ends after 15 minutes in any log,
    /// and each repetition begins this time anew. The claim of a stream that is [`LogStatus::Expired`] is free.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`].
    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>>;

    /// Frees a claim whose request was refused, if the id holds it.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`].
    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>>;

    /// Sends a command to the gateway that produces a stream. Returning says that it was stored for delivery, not that it
    /// was carried out. A command for a stream that has ended is dropped.
    ///
    /// # Errors
    ///
    /// [`LogError::Unknown`], [`LogError::Unavailable`].
    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>>;

    /// Returns the commands that are addressed to this gateway, those before the call included. Of several such streams
    /// each command reaches one. The stream never ends.
    fn commands(&self) -> BoxStream<'static, (StreamId, Command)>;

    /// Returns the commands to one stream, those before the call included, for a process that has a task for each of its
    /// streams. They do not appear in [`commands`](Self::commands) while it lives. The stream never ends.
    ///
    /// An engine keeps a table of these receivers, and gives each command to that of its stream. To filter
    /// [`commands`](Self::commands) is wrong: each stream would take, and drop, commands to the others. The
    /// contract (feature `contract`) tests it.
    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command>;
}

/// The only producer of a generation. `&mut self` rules out a second append in flight.
///
/// Dropping it does not seal the log: [`LogStore::seal_lost`] declares the stream lost once its lease has expired. Only a
/// [`MemoryLog`](crate::MemoryLog) ends the lease at once, because nobody else can renew it there.
///
/// # Examples
///
/// A record that may have been appended before is appended again, unchanged:
///
/// ```
/// use unbraid_log::{Appended, End, LogError, LogWriter, Record, StreamEnd};
///
/// async fn append(writer: &mut dyn LogWriter, record: &Record) -> Result<Appended, LogError> {
///     loop {
///         match writer.append(record).await {
///             Err(error) if error.is_temporary() => writer.renew().await?,
///             result => return result,
///         }
///     }
/// }
///
/// async fn cancel(writer: &mut dyn LogWriter) -> Result<(), LogError> {
///     writer.seal(&StreamEnd::new(End::Cancelled)).await
/// }
/// ```
pub trait LogWriter: Send {
    /// Appends a record after the last one. A record that the log already contains at its place is
    /// [`Appended::Duplicate`].
    ///
    /// # Errors
    ///
    /// [`LogError::Sealed`], [`LogError::Fenced`] and [`LogError::Expired`] are final. After [`LogError::Gap`] the records
    /// after the log's tail have to be appended again, because the engine has lost them. [`LogError::Full`] says that this call
    /// has stored nothing, and [`LogError::Unavailable`] does not say whether the record was appended.
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>>;

    /// Extends the lease by its full duration.
    ///
    /// # Errors
    ///
    /// [`LogError::Sealed`] and [`LogError::Expired`] are final; [`LogError::Unavailable`].
    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>>;

    /// Seals the log: nothing can be appended to it, and its readers end. Of several seals the first is kept, and the
    /// others return `Ok`, too.
    ///
    /// # Errors
    ///
    /// [`LogError::Gap`] if the log ends before the last record that this writer has appended: the engine has lost the
    /// rest, and the seal would make that final. [`LogError::Expired`] if the stream was erased; [`LogError::Unavailable`].
    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>>;
}

/// Whether an append has changed the log.
///
/// # Examples
///
/// ```
/// assert_ne!(unbraid_log::Appended::New, unbraid_log::Appended::Duplicate);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Appended {
    /// The record is new.
    New,
    /// The log already contained the record, from an earlier attempt.
    Duplicate,
}

/// What a log knows about a stream.
///
/// # Examples
///
/// ```
/// use unbraid_log::{LogStatus, Meta, Seq};
///
/// let meta = Meta::new("/v1/completions", 1);
/// let status = LogStatus::Running { meta: meta.clone().into(), tail: Seq(7) };
/// assert_eq!(status.meta(), Some(&meta));
/// assert_eq!(LogStatus::Unknown.meta(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogStatus {
    /// It is not sealed.
    Running {
        /// Its meta data.
        meta: Arc<Meta>,
        /// The number of its last event.
        tail: Seq,
    },
    /// It is sealed, and kept.
    Ended {
        /// Its meta data.
        meta: Arc<Meta>,
        /// The number of its last event. The end itself has the next number.
        tail: Seq,
        /// How it ended.
        end: StreamEnd,
        /// The wall clock's time at which it expires.
        expires: SystemTime,
    },
    /// It is no longer kept: it expired, was evicted, or was erased.
    Expired {
        /// Its meta data.
        meta: Arc<Meta>,
    },
    /// There is no such stream, or it expired more than 24 hours ago.
    Unknown,
}

impl LogStatus {
    /// The meta data of the stream, if it is known.
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        match self {
            Self::Running { meta, .. } | Self::Ended { meta, .. } | Self::Expired { meta } => {
                Some(meta)
            }
            Self::Unknown => None,
        }
    }
}

/// What a gateway requests of the producer of a stream.
///
/// # Examples
///
/// ```
/// use unbraid_log::Command;
///
/// let command = Command::Cancel(Some(1.into()));
/// assert_ne!(command, Command::Cancel(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Command {
    /// Cancels one choice, or all of them.
    Cancel(Option<ChoiceIndex>),
    /// Says that another process has a reader of the stream, or had one until now. It is repeated while that lasts, for a
    /// producer that cancels what nobody reads ([`Meta::orphan_after`]).
    Read,
}
