//! The root handle.

use std::sync::Arc;

use futures::Stream;
use tokio::io::AsyncRead;
use unbraid_core::{BoxError, ChoiceIndex, StreamError, Update};

use super::{choice::Choice, choices::Choices, events::AllEvents, outcomes::Outcomes};
use crate::{
    config::CompletionsBuilder,
    control::{CancelOnDrop, Command, ReaderControls},
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
///
/// Several sources, and other views of the same completion:
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Source};
/// # use unbraid::{StreamError, Update};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// # let updates = stream::empty::<Result<Update<'static>, StreamError>>();
/// let (one, other) = (Source::from_byte_stream(bytes), Source::from_updates(updates));
/// let completions = Completions::merge([one, other]);
/// let session = completions.downgrade(); // does not keep the sources open
/// let mut events = completions.events(); // of all choices
/// let mut outcomes = completions.outcomes(); // of each choice, as it ends
/// while let Some(outcome) = outcomes.next().await {
///     println!("{}", outcome?.message.content);
/// }
/// # assert!(events.next().await.is_some() && session.upgrade().is_some());
/// # let _single = Completions::from_updates(stream::empty::<Result<Update<'static>, StreamError>>());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "dropping the last handle ends the stream"]
pub struct Completions {
    pub(super) completion: Arc<Shared<CompletionState>>,
    pub(super) guard: Arc<CancelOnDrop>,
}

impl Completions {
    pub(crate) fn new(completion: Arc<Shared<CompletionState>>, controls: ReaderControls) -> Self {
        Self {
            completion,
            guard: Arc::new(CancelOnDrop { controls }),
        }
    }

    /// Configures the completion before it is read: timeouts, limits, how many choices were requested.
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
    /// With it an async function can judge the answers, where [`first_where`](Self::first_where) takes a synchronous one;
    /// [`keep_only`](Self::keep_only) then cancels the others.
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
    pub(crate) fn kill_reader(&self) {
        self.guard.controls.kill_reader();
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
