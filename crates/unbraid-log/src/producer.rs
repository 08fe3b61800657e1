//! `Producer`: writes one stream to a log, whatever happens to the log.

mod options;
mod queue;
mod task;

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

pub use options::{OnFailure, ProducerObserver, ProducerOptions};
use queue::{Progress, Shared};
use task::{ProducerTask, Target};
use tokio::time::{Instant, timeout};

use crate::{End, Journal, LogError, LogStore, Meta, Record, StreamEnd, StreamId};

/// How long opening a stream may take. After that the answer goes on without the log, or is refused.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// The producer of one stream of a log that is shared with other processes.
///
/// Events are given to it in records ([`append`](Self::append)), and reach the readers of its [`journal`](Self::journal)
/// once the log has acknowledged them. A task of its own appends one record at a time, collects what arrives meanwhile into
/// the next one, renews the lease every third of its duration, repeats what fails, and appends again what the log has
/// lost. It keeps the stream in memory until its seal is acknowledged.
///
/// While the log fails, the stream is *degraded*: readers get events at once, and the log gets them later. With
/// [`OnFailure::Fail`] the stream ends as [`End::ServerError`] in place of that. An append that has no answer yet may still be
/// stored: readers get its events before the end, and it is repeated before the seal, for at most a lease: then readers elsewhere
/// get [`End::ProducerLost`], and do not wait for an end that the log may never take.
///
/// Dropping it without [`finish`](Self::finish) ends the stream as [`End::ProducerLost`]. The task continues until the seal
/// is acknowledged, for at most the time to live of an ended stream.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use unbraid_log::{
///     End, Event, LogStatus, LogStore, MemoryLog, MemoryOptions, Meta, Producer, ProducerOptions, RecordBuilder, Seq, StreamEnd,
///     StreamId,
/// };
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
/// let id = StreamId::random()?;
/// let meta = Meta::new("/v1/chat/completions", 1_790_000_000);
/// let producer = Producer::open(Arc::clone(&log), &id, &meta, ProducerOptions::default()).await?;
///
/// let mut builder = RecordBuilder::new(Seq(1));
/// builder.push(&Event::chunk(&[0.into()], br#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#));
/// while let Some(record) = builder.take() {
///     producer.append(record);
/// }
/// producer.flushed().await?;
/// assert_eq!(producer.journal().tail(), Seq(1));
/// assert!(producer.is_flushed() && !producer.is_degraded());
///
/// // In a task that waits for other things, too.
/// let is_ready = std::future::poll_fn(|cx| {
///     let failed = producer.poll_failed(cx).is_ready();
///     std::task::Poll::Ready(!failed && producer.poll_flushed(cx).is_ready())
/// });
/// assert!(is_ready.await && producer.failure().is_none());
/// // What is held is dropped once the log has the end.
/// producer.hold(String::from("a place in a table"));
///
/// producer.finish(StreamEnd::new(End::Finished));
/// producer.sealed().await;
/// assert!(!producer.has_given_up());
/// assert!(matches!(log.status(&id).await?, LogStatus::Ended { tail: Seq(1), .. }));
/// # Ok::<(), unbraid_log::LogError>(())
/// # }).unwrap();
/// ```
pub struct Producer {
    shared: Arc<Shared>,
}

impl Producer {
    /// Opens a stream, and starts its producer in the runtime of this task. It waits for the log for at most a second.
    ///
    /// # Errors
    ///
    /// Those of [`LogStore::open`]; with [`OnFailure::Degrade`] a log that is not available or full is not an error: the stream
    /// begins degraded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave an empty stream in the log, which expires like one of a lost producer.
    pub async fn open(
        log: Arc<dyn LogStore>,
        id: &StreamId,
        meta: &Meta,
        options: ProducerOptions,
    ) -> Result<Self, LogError> {
        let started = Instant::now();
        let opened = timeout(OPEN_TIMEOUT, log.open(id, meta)).await;
        let opened = opened.unwrap_or_else(|_| Err(LogError::unavailable("opening took too long")));
        let writer = match opened {
            Ok(writer) => Ok(writer),
            // The provider has been asked already: an error would lose an answer, and a request that is sent again costs
            // another one.
            Err(error @ (LogError::Unavailable { .. } | LogError::Full))
                if options.on_failure == OnFailure::Degrade =>
            {
                Err(error)
            }
            Err(error) => return Err(error),
        };
        let shared = Arc::new(Shared::new(writer.is_err()));
        let target = Target {
            log,
            id: id.clone(),
            meta: meta.clone(),
        };
        let task = ProducerTask::new(target, writer, options, Arc::clone(&shared), started);
        tokio::spawn(task.run());
        Ok(Self { shared })
    }

    /// What readers may see: everything that the log has acknowledged and, while the stream is degraded, everything else. It
    /// ends with the stream.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    /// Gives it the next events. Records follow each other, from number 1; one that does not is dropped.
    pub fn append(&self, record: Record) {
        self.shared.push(record);
    }

    /// Says that no events follow, and how the stream ends. The first end is kept.
    pub fn finish(&self, end: StreamEnd) {
        self.shared.finish(end);
    }

    /// Whether readers get what the log does not have.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.shared.progress().is_degraded
    }

    /// Whether readers have everything that was appended.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.shared.progress().released >= self.shared.pushed()
    }

    /// Why the log does not take events any more, if it does not. The upstream can then be closed.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.shared.progress().failure.clone()
    }

    /// Waits until readers have everything that was appended.
    ///
    /// # Errors
    ///
    /// That of [`failure`](Self::failure).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn flushed(&self) -> Result<(), LogError> {
        // Not by `poll_flushed`, which wakes one task.
        let mut progress = self.shared.subscribe();
        let has_result = |progress: &Progress| {
            progress.failure.is_some() || progress.released >= self.shared.pushed()
        };
        // The sender lives as long as this producer.
        let progress = progress.wait_for(has_result).await;
        let failure = progress.ok().and_then(|progress| progress.failure.clone());
        failure.map_or(Ok(()), Err)
    }

    /// Ready once readers have everything that was appended, or with the error of [`failure`](Self::failure). One task is
    /// woken: the last that polled.
    ///
    /// # Errors
    ///
    /// That of [`failure`](Self::failure).
    pub fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<Result<(), LogError>> {
        self.shared.flush_waker.register(cx.waker());
        if let Some(error) = self.failure() {
            Poll::Ready(Err(error))
        } else if self.is_flushed() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Ready with the error of [`failure`](Self::failure). One task is woken: the last that polled.
    pub fn poll_failed(&self, cx: &mut Context<'_>) -> Poll<LogError> {
        if let Some(error) = self.failure() {
            return Poll::Ready(error);
        }
        self.shared.failure_waker.register(cx.waker());
        self.failure().map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits until the log has the end of the stream, or refuses it, after [`finish`](Self::finish).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn sealed(&self) {
        let mut progress = self.shared.subscribe();
        // The task holds the sender until it is done.
        let _done = progress.wait_for(|progress| progress.is_done).await;
    }

    /// Whether the log has not taken the end of the stream within the time to live, or refuses it. What it does not have was
    /// dropped then.
    #[must_use]
    pub fn has_given_up(&self) -> bool {
        self.shared.progress().has_given_up
    }

    /// Keeps a value until the log has the end of the stream, or refuses it.
    pub fn hold(&self, value: impl Send + 'static) {
        self.shared.hold(Box::new(value));
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.finish(StreamEnd::new(End::ProducerLost));
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("journal", self.journal())
            .field("is_degraded", &self.is_degraded())
            .finish_non_exhaustive()
    }
}
