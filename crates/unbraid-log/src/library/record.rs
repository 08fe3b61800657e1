//! The producer's side: a byte stream that is written to a log while it is read.

mod options;
mod task;

use std::{fmt, sync::Arc};

use futures::{Stream, StreamExt};
pub use options::Recorder;
use task::{Commands, RecordingTask};
use tokio::sync::{
    mpsc::{UnboundedSender, unbounded_channel},
    watch,
};
use unbraid::{BoxError, Completions, internal};
use unbraid_core::ChoiceIndex;

use super::read::{LogSource, Origin};
use crate::{Command, Journal, LogError, LogStore, Producer, Seq, StreamEnd, StreamId};

/// Writes a byte stream, such as the body of a response, to a log while it is read. Other processes read it meanwhile, with
/// [`completions`](crate::completions), or over HTTP through a gateway of the same log.
///
/// It returns once the stream can be found. A task of its own does the rest: it reads the body whether or not anybody follows,
/// carries out the commands of readers, renews the lease, and seals the log with the end of the body. [`Recorder`] is the
/// same with options.
///
/// # Errors
///
/// [`LogError::Exists`] for an id that is in use. If the log is not available or full, the stream is written later, or with
/// [`OnFailure::Fail`](crate::OnFailure::Fail) this is an error, too (see [`Producer`]).
///
/// # Cancel safety
///
/// Dropping the future drops the body, and may leave an empty stream in the log, which is declared lost later.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use futures::stream;
/// use unbraid_log::{End, LogStore, MemoryLog, MemoryOptions, StreamId, record};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
/// let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let body = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let recording = record(body, log, StreamId::random()?).await?;
/// // The worker can use the answer, too.
/// assert_eq!(recording.completions().first().await?.text().await?, "Hi");
/// assert_eq!(recording.ended().await.unwrap().end, End::Finished);
/// # Ok(())
/// # }
/// ```
pub async fn record<S, B, E>(
    body: S,
    log: Arc<dyn LogStore>,
    id: StreamId,
) -> Result<Recording, LogError>
where
    S: Stream<Item = Result<B, E>> + Send + 'static,
    B: AsRef<[u8]> + Send + 'static,
    E: Into<BoxError> + Send + 'static,
{
    Recorder::new(log).record(body, id).await
}

impl Recorder {
    /// Writes a byte stream to the log, as [`record`] does.
    ///
    /// # Errors
    ///
    /// Those of [`record`].
    ///
    /// # Cancel safety
    ///
    /// As for [`record`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use futures::stream;
    /// use unbraid_log::{LogStore, MemoryLog, MemoryOptions, Recorder, StreamId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
    /// let body = stream::iter([Ok::<_, std::io::Error>("data: [DONE]\n\n")]);
    /// let recording = Recorder::new(log).record(body, StreamId::random()?).await?;
    /// recording.ended().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn record<S, B, E>(&self, body: S, id: StreamId) -> Result<Recording, LogError>
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        // Before the stream can be found: no command to it precedes its receiver.
        let log_commands = self.log.commands_of(&id);
        let log = Arc::clone(&self.log);
        let producer = Producer::open(log, &id, &self.meta, self.producer.clone()).await?;
        let journal = producer.journal().clone();
        let body = body.map(|read| read.map_err(Into::into)).boxed();
        let (commands, own) = unbounded_channel();
        let received = Commands {
            own,
            log: log_commands,
        };
        let task = RecordingTask::new(self, received, body, producer);
        let (running, ended) = watch::channel(());
        tokio::spawn(async move {
            task.run().await;
            drop(running);
        });
        Ok(Recording {
            id,
            journal,
            ended,
            commands,
        })
    }
}

/// A stream that is being recorded.
///
/// Dropping it changes nothing: the recording continues until the body ends or a reader cancels it. If the runtime shuts
/// down before that, or the process dies, the stream ends as [`End::ProducerLost`](crate::End::ProducerLost).
///
/// # Examples
///
/// ```
/// use unbraid_log::{LogError, Recording};
///
/// /// What a worker does with a recording that a reader may cancel.
/// async fn finish(recording: Recording) -> Result<(), LogError> {
///     if let Ok(answer) = recording.completions().first().await {
///         let _text = answer.text().await;
///     }
///     let end = recording.ended().await?;
///     println!("{} ended as {}", recording.id(), end.end);
///     Ok(())
/// }
/// ```
pub struct Recording {
    id: StreamId,
    journal: Journal,
    /// Its sender is dropped at the end of the task.
    ended: watch::Receiver<()>,
    commands: UnboundedSender<Command>,
}

impl Recording {
    /// The id under which it can be read.
    #[must_use]
    pub fn id(&self) -> &StreamId {
        &self.id
    }

    /// What the log has acknowledged, in this process's memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{JournalReader, Recording, Seq};
    ///
    /// /// The events as they are, for a server that passes them on.
    /// fn follow(recording: &Recording) -> JournalReader {
    ///     recording.journal().reader(Seq::START)
    /// }
    /// ```
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The library's handles over the recording, from its first event. They get what the log has acknowledged, and cancel as
    /// those of other processes do. To cancel each choice drops the body only as [`cancel_choice`](Self::cancel_choice) does.
    pub fn completions(&self) -> Completions {
        let commands = self.commands.clone();
        let source = LogSource::new(Origin::Journal {
            journal: self.journal.clone(),
            cancel: Box::new(move |command| {
                // A recording that has ended needs no command.
                let _ended = commands.send(command);
            }),
        });
        Completions::builder().from_source(internal::source(source))
    }

    /// Cancels one choice for all readers.
    ///
    /// The body is dropped once all choices have ended, if their number is known from
    /// [`Meta::n`](crate::Meta::n) ([`Recorder::with_meta`]). Otherwise further choices may appear, and the body is read to its
    /// end although every choice so far is cancelled; [`cancel`](Self::cancel) drops it.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn cancel(recording: &unbraid_log::Recording) {
    /// recording.cancel_choice(1);
    /// # }
    /// ```
    pub fn cancel_choice(&self, choice: impl Into<ChoiceIndex>) {
        let _ended = self.commands.send(Command::Cancel(Some(choice.into())));
    }

    /// Cancels the stream for all readers, and drops the body.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn cancel(recording: &unbraid_log::Recording) {
    /// recording.cancel();
    /// # }
    /// ```
    pub fn cancel(&self) {
        let _ended = self.commands.send(Command::Cancel(None));
    }

    /// Waits until the stream has ended, and the log has its end.
    ///
    /// # Errors
    ///
    /// Why the log does not have it: the stream was erased, or is kept by the log under another producer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn ended(&self) -> Result<StreamEnd, LogError> {
        // The only change is that the task has ended.
        let _ended = self.ended.clone().changed().await;
        // No number is greater, so the reader gets nothing but the end.
        let mut reader = self.journal.reader(Seq::MAX);
        loop {
            if let Some(end) = reader.next_batch(usize::MAX).await?.end {
                return Ok(end);
            }
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("id", &self.id)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}
