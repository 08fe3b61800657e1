//! The root handle.

use std::sync::Arc;

use futures::Stream;
use tokio::io::AsyncRead;
use unbraid_core::{BoxError, ChoiceIndex, Metadata, StreamError, Update, Usage, Warning};

use super::{choice::Choice, choices::Choices, events::AllEvents, outcomes::Outcomes};
use crate::{
    config::CompletionsBuilder,
    control::{CancelOnDrop, Command, ReaderControls},
    estimate,
    state::{choice_log::ChoiceLog, completion::CompletionState, merged::Closed},
    sync::shared::{Shared, Watcher},
};

/// The answers of one request, read from one stream.
///
/// Reading starts at once and goes on whether or not anyone consumes. A clone is the same completion. Dropping it cancels
/// nothing while a [`Choice`] or one of its streams lives; dropping the last of them closes the source.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let completions = Completions::from_byte_stream(bytes);
/// assert_eq!(completions.first().await?.text().await?, "Hi");
/// completions.closed().await?;
/// # Ok(())
/// # }
/// ```
///
/// A stream that holds no answer is an error, not an empty success:
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, StreamError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let completions = Completions::from_byte_stream(stream::iter([Ok::<_, std::io::Error>("<html>")]));
/// assert!(matches!(completions.first().await, Err(StreamError::UnsupportedFormat { .. })));
/// # }
/// ```
#[derive(Clone)]
pub struct Completions {
    pub(super) completion: Arc<Shared<CompletionState>>,
    pub(super) guard: Arc<CancelOnDrop>,
}

impl Completions {
    pub(crate) fn new(
        completion: Arc<Shared<CompletionState>>,
        controls: Arc<ReaderControls>,
    ) -> Self {
        Self {
            completion,
            guard: Arc::new(CancelOnDrop { controls }),
        }
    }

    /// Configures the completion before it is read: timeouts, limits, how many choices were asked for.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use std::time::Duration;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let builder = Completions::builder().expect_choices(4).idle_timeout(Duration::from_secs(30));
    /// let completions = builder.from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn builder() -> CompletionsBuilder {
        CompletionsBuilder::default()
    }

    /// Reads a stream of byte chunks with the default configuration; see [`CompletionsBuilder::from_byte_stream`].
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = "data: {\"choices\":[{\"index\":0,\"text\":\"Once\"}]}\n\ndata: [DONE]\n\n";
    /// let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// assert_eq!(Completions::from_byte_stream(bytes).first().await?.text().await?, "Once");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_byte_stream<S, B, E>(bytes: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::builder().from_byte_stream(bytes)
    }

    /// Reads an `AsyncRead` with the default configuration; see [`CompletionsBuilder::from_reader`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"data: {\"choices\":[{\"index\":0,\"text\":\"Once\"}]}\n\ndata: [DONE]\n\n"[..];
    /// let completions = unbraid::Completions::from_reader(body);
    /// assert_eq!(completions.first().await?.text().await?, "Once");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_reader<R>(reader: R) -> Self
    where
        R: AsyncRead + Send + 'static,
    {
        Self::builder().from_reader(reader)
    }

    /// Reads updates that were decoded elsewhere; see [`CompletionsBuilder::from_updates`].
    ///
    /// # Examples
    ///
    /// See [`Updates::from_byte_stream`](crate::Updates::from_byte_stream).
    pub fn from_updates<S, E>(updates: S) -> Self
    where
        S: Stream<Item = Result<Update<'static>, E>> + Send + 'static,
        E: Into<StreamError> + 'static,
    {
        Self::builder().from_updates(updates)
    }

    /// The choices, each as soon as it appears.
    ///
    /// Two of these streams are independent: each returns every choice, from the first.
    ///
    /// # Examples
    ///
    /// See [`Choices`].
    #[must_use]
    pub fn choices(&self) -> Choices {
        Choices::new(&self.completion, &self.guard)
    }

    /// The outcome of each choice as soon as it ends, in the order of the ends.
    ///
    /// With it an async function can judge the answers, where [`first_where`](Self::first_where) takes a synchronous one.
    ///
    /// # Examples
    ///
    /// See [`Outcomes`].
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        Outcomes::new(&self.completion, &self.guard)
    }

    /// Waits for the first choice: the short form for `n = 1`.
    ///
    /// Further choices are not an error; [`choices`](Self::choices) returns them, too.
    ///
    /// # Errors
    ///
    /// What ended the stream before any choice appeared; [`StreamError::Empty`] if nothing did.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let text = Completions::from_byte_stream(bytes).first().await?.text().await?;
    /// assert_eq!(text, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn first(&self) -> Result<Choice, StreamError> {
        let mut completion = Watcher::new(&self.completion);
        let found = completion.wait_for(|state| match (state.choices.first(), &state.closed) {
            (Some(log), _) => Some(Ok(log.clone())),
            (None, Some(closed)) => Some(Err(no_choice_error(closed))),
            (None, None) => None,
        });
        Ok(self.choice_of(found.await?))
    }

    /// Waits for the choice with an index; `None` once the stream has closed without it.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":1,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// assert!(completions.choice(1).await.is_some());
    /// assert!(completions.choice(2).await.is_none());
    /// # }
    /// ```
    pub async fn choice(&self, index: impl Into<ChoiceIndex>) -> Option<Choice> {
        let index = index.into();
        let matches = |log: &&ChoiceLog| log.index() == index;
        let mut completion = Watcher::new(&self.completion);
        let found = completion.wait_for(|state| {
            let log = state.choices.iter().find(matches).cloned();
            (log.is_some() || state.closed.is_some()).then_some(log)
        });
        Some(self.choice_of(found.await?))
    }

    pub(super) fn choice_of(&self, log: ChoiceLog) -> Choice {
        Choice::new(log, Arc::clone(&self.guard))
    }

    /// All events of all choices and of the stream itself, as they arrive.
    ///
    /// # Examples
    ///
    /// See [`AllEvents`].
    #[must_use]
    pub fn events(&self) -> AllEvents {
        AllEvents::new(&self.completion, &self.guard)
    }

    /// Waits until the stream is over and returns how it ended: `Ok` even if a choice did not finish.
    ///
    /// # Errors
    ///
    /// What ended the stream as a whole.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let broken = stream::iter([Err::<&str, _>(std::io::Error::other("no route to host"))]);
    /// let error = Completions::from_byte_stream(broken).closed().await.unwrap_err();
    /// assert_eq!(error.as_str(), "transport");
    /// # }
    /// ```
    pub async fn closed(&self) -> Result<(), StreamError> {
        Watcher::new(&self.completion)
            .wait_for(|state| state.closed.as_ref().map(|closed| closed.result.clone()))
            .await
    }

    /// Whether the stream is over, so that [`closed`](Self::closed) would return at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// assert!(!completions.is_closed()); // nothing has been read yet
    /// completions.closed().await?;
    /// assert!(completions.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.completion.read(|state| state.closed.is_some())
    }

    /// Waits until the stream is over and returns its token counts: of the prompt, of each choice, and of all. It never
    /// fails; what is not known is `None`.
    ///
    /// They are what the server reported. If the builder was given a [`tokenizer`](CompletionsBuilder::tokenizer), it counts
    /// what the server did not report when usage is first asked for, and such counts are marked in [`Usage::estimated`]: a
    /// choice's tokens from what arrived of it, the prompt's from the [`request`](CompletionsBuilder::request) if it was
    /// given. Counting runs on a blocking thread of the runtime, or on this task if no such thread is free; without a
    /// runtime it is left out.
    ///
    /// The usage concerns the whole stream: a choice's own end does not wait for it (U14).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. Dropping the future only loses a count that is in progress; the next call counts again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, UsageSource};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"three short words\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = || stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let usage = Completions::from_byte_stream(bytes()).usage().await; // this server reported none
    /// assert_eq!((usage.completion_tokens, usage.source), (None, UsageSource::Absent));
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let usage = Completions::builder().tokenizer(words).from_byte_stream(bytes()).usage().await;
    /// assert_eq!((usage.completion_tokens, usage.source), (Some(3), UsageSource::Estimated));
    /// # }
    /// ```
    pub async fn usage(&self) -> Usage {
        let reported = self.reported_usage().await;
        estimate::estimated(&self.completion, reported).await
    }

    pub(super) async fn reported_usage(&self) -> Usage {
        Watcher::new(&self.completion)
            .wait_for(|state| state.closed.is_some().then(|| state.usage.clone()))
            .await
    }

    /// What the stream has said about itself so far: id, model, time, other fields.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"model\":\"gpt-4o\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// completions.first().await?;
    /// assert_eq!(completions.metadata().model.as_deref(), Some("gpt-4o"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.completion.read(CompletionState::metadata)
    }

    /// What was tolerated so far, on the stream and on its choices, in the order of the events.
    ///
    /// As many are kept as [`Limits`](crate::Limits) allow; [`warnings_dropped`](Self::warnings_dropped) counts the others.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {not json}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// completions.closed().await?;
    /// for warning in completions.warnings() {
    ///     eprintln!("{} (event {}): {}", warning.code, warning.event_index, warning.message);
    /// }
    /// # assert_eq!(completions.warnings().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let (mut warnings, logs): (Vec<Warning>, _) = self
            .completion
            .read(|state| (state.warnings().cloned().collect(), state.choices.clone()));
        for log in logs {
            log.read(|state| warnings.extend_from_slice(state.transcript.warnings()));
        }
        warnings.sort_by_key(|warning| warning.event_index);
        warnings
    }

    /// How many warnings were not kept, because there were more than [`Limits`](crate::Limits) allow.
    ///
    /// While the stream is open the count may lag behind by a few events.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Limits};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: {not json}\n\ndata: {nor this}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let mut limits = Limits::default();
    /// limits.warnings = 1;
    /// let completions = Completions::builder().limits(limits).from_byte_stream(bytes);
    /// completions.closed().await?;
    /// assert_eq!((completions.warnings().len(), completions.warnings_dropped()), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        let (dropped, logs) = self
            .completion
            .read(|state| (state.warnings_dropped(), state.choices.clone()));
        let on_choice = |log: &ChoiceLog| log.read(|state| state.transcript.warnings_dropped());
        dropped + logs.iter().map(on_choice).sum::<u64>()
    }

    /// Ends every open choice as `cancelled`, and closes the source. What has arrived stays.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, StreamError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::pending::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::from_byte_stream(bytes);
    /// completions.cancel();
    /// assert!(matches!(completions.closed().await, Err(StreamError::Cancelled)));
    /// # }
    /// ```
    pub fn cancel(&self) {
        self.guard.controls.send(Command::CancelAll);
    }

    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<ractor::ActorCell> {
        self.guard.controls.reader()
    }
}

fn no_choice_error(closed: &Closed) -> StreamError {
    let empty = StreamError::Empty {
        events: closed.events,
    };
    closed.result.clone().err().unwrap_or(empty)
}
