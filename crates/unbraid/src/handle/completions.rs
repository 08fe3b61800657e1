//! The root handle.

use std::sync::Arc;

use futures::Stream;
use serde_json::Value;
use tokio::io::AsyncRead;
use unbraid_core::{BoxError, ChoiceIndex, Metadata, StreamError, Update, Usage, Warning};

use super::{choice::Choice, choices::Choices, events::AllEvents};
use crate::{
    config::CompletionsBuilder,
    control::{Controls, Guard, Request},
    state::choice_log::Log,
    state::completion::{Board, Closed},
    sync::shared::Watcher,
};

/// The answers of one request, read from one stream.
///
/// Reading starts at once, and goes on whether or not anyone consumes. A clone is the same completion. Dropping it
/// cancels nothing while a [`Choice`] or a stream of it lives; with the last of them the source is closed.
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
    pub(super) board: Arc<Board>,
    pub(super) guard: Arc<Guard>,
}

impl Completions {
    pub(crate) fn new(board: Arc<Board>, controls: Arc<Controls>) -> Self {
        Self {
            board,
            guard: Arc::new(Guard { controls }),
        }
    }

    /// Settings before reading: timeouts, limits, how many choices were asked for.
    #[must_use]
    pub fn builder() -> CompletionsBuilder {
        CompletionsBuilder::default()
    }

    /// Reads a stream of byte chunks with the default settings; see [`CompletionsBuilder::from_byte_stream`].
    pub fn from_byte_stream<S, B, E>(bytes: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::builder().from_byte_stream(bytes)
    }

    /// Reads anything that is an `AsyncRead` with the default settings; see [`CompletionsBuilder::from_reader`].
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
    pub fn from_updates<S, E>(updates: S) -> Self
    where
        S: Stream<Item = Result<Update<'static>, E>> + Send + 'static,
        E: Into<StreamError> + 'static,
    {
        Self::builder().from_updates(updates)
    }

    /// The choices, each as soon as it appears.
    ///
    /// Two of these streams are independent: both give every choice, from the first.
    #[must_use]
    pub fn choices(&self) -> Choices {
        Choices::new(&self.board, &self.guard)
    }

    /// Waits for the first choice: the short form for `n = 1`.
    ///
    /// Further choices are no error; [`choices`](Self::choices) gives them too.
    ///
    /// # Errors
    ///
    /// What ended the stream before any choice came; [`StreamError::Empty`] if nothing did.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn first(&self) -> Result<Choice, StreamError> {
        let mut board = Watcher::new(&self.board);
        let found = board.wait(|listing| match (listing.choices.first(), &listing.closed) {
            (Some(log), _) => Some(Ok(log.clone())),
            (None, Some(closed)) => Some(Err(none_came(closed))),
            (None, None) => None,
        });
        Ok(self.choice_of(found.await?))
    }

    /// Waits for the choice of an index; `None` once the stream has closed without it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn choice(&self, index: impl Into<ChoiceIndex>) -> Option<Choice> {
        let index = index.into();
        let has = |log: &&Log| log.index() == index;
        let mut board = Watcher::new(&self.board);
        let found =
            board.wait(
                |listing| match (listing.choices.iter().find(has), &listing.closed) {
                    (Some(log), _) => Some(Some(log.clone())),
                    (None, Some(_)) => Some(None),
                    (None, None) => None,
                },
            );
        Some(self.choice_of(found.await?))
    }

    pub(super) fn choice_of(&self, log: Log) -> Choice {
        Choice::new(log, Arc::clone(&self.guard))
    }

    /// All events of all choices and of the stream itself, as they arrive.
    #[must_use]
    pub fn events(&self) -> AllEvents {
        AllEvents::new(&self.board, &self.guard)
    }

    /// Waits until the stream is over and tells how: `Ok` even where a choice did not finish.
    ///
    /// # Errors
    ///
    /// What ended the stream as a whole.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn closed(&self) -> Result<(), StreamError> {
        Watcher::new(&self.board)
            .wait(|listing| listing.closed.as_ref().map(|closed| closed.result.clone()))
            .await
    }

    /// Waits until the stream is over and gives the response that the server would have sent without streaming.
    ///
    /// It never fails: what had arrived is in it; see [`aggregate`](crate::aggregate()) for its shape.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn aggregate(&self) -> Value {
        let usage = self.reported().await;
        let logs = self.board.read(|listing| listing.choices.clone());
        let metadata = self.metadata();
        // Each log is locked on its own: a reader of one choice waits for that one only.
        let parts: Vec<Value> = logs
            .iter()
            .map(|log| {
                log.read(|record| unbraid_core::aggregate(&metadata, &usage, [&*record.transcript]))
            })
            .collect();
        merge(parts).unwrap_or_else(|| unbraid_core::aggregate(&metadata, &usage, []))
    }

    /// Waits until the stream is over and gives the same response as JSON text, in which what the server sent of its own
    /// accord (usage, log probabilities, unknown fields) stands digit by digit as it came.
    ///
    /// A [`Value`] has no room for some numbers; see [`aggregate_json`](crate::aggregate_json()).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn aggregate_json(&self) -> String {
        let usage = self.reported().await;
        let logs = self.board.read(|listing| listing.choices.clone());
        let mut choices: Vec<_> = logs
            .iter()
            .map(|log| {
                log.read(|record| {
                    let choice = &record.transcript;
                    (choice.index(), unbraid_core::choice_json(choice))
                })
            })
            .collect();
        choices.sort_by_key(|(index, _)| *index);
        let choices = choices.into_iter().map(|(_, choice)| choice).collect();
        unbraid_core::aggregate_of(&self.metadata(), &usage, choices)
    }

    /// Waits until the stream is over and gives its tokens: those of the prompt, of each choice, and of all; never fails.
    ///
    /// They are what the server reported. With the feature `tokens`, what it did not report is counted, by the encoding
    /// of the model, when it is first asked for, and marked in [`Usage::estimated`]: a choice's tokens from what had come
    /// of it, the prompt's if [`request`](crate::CompletionsBuilder::request) told it. Counting runs on a thread of the runtime
    /// that may block, or on this task if no such thread is free; without a runtime it is left out. What is not known is `None`.
    ///
    /// It is for the whole stream: a choice's own end does not wait for it (U14).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, UsageSource};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"tiktoken is great!\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let usage = Completions::from_byte_stream(bytes).usage().await; // this server reported none
    /// if cfg!(feature = "tokens") {
    ///     assert_eq!((usage.completion_tokens, usage.source), (Some(6), UsageSource::Estimated));
    /// } else {
    ///     assert_eq!((usage.completion_tokens, usage.source), (None, UsageSource::Absent));
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the counting that is under way: it ends unheard, and the next call counts again.
    pub async fn usage(&self) -> Usage {
        let reported = self.reported().await;
        #[cfg(feature = "tokens")]
        let reported = crate::tokens::estimated(&self.board, reported).await;
        reported
    }

    async fn reported(&self) -> Usage {
        Watcher::new(&self.board)
            .wait(|listing| listing.closed.is_some().then(|| listing.usage.clone()))
            .await
    }

    /// What the stream has said of itself so far: id, model, time, other fields.
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.board.read(|listing| listing.metadata.clone())
    }

    /// What was tolerated so far, on the stream and on its choices, by event.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let (mut warnings, logs) = self
            .board
            .read(|listing| (listing.warnings.clone(), listing.choices.clone()));
        for log in logs {
            log.read(|record| warnings.extend_from_slice(record.transcript.warnings()));
        }
        warnings.sort_by_key(|warning| warning.event_index);
        warnings
    }

    /// Ends every choice that is open, and closes the source. What had come stays.
    pub fn cancel(&self) {
        self.guard.controls.ask(Request::CancelAll);
    }

    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<ractor::ActorCell> {
        self.guard.controls.reader()
    }
}

fn none_came(closed: &Closed) -> StreamError {
    closed.result.clone().err().unwrap_or(StreamError::Empty {
        events: closed.events,
    })
}

/// One response out of those of single choices.
fn merge(parts: Vec<Value>) -> Option<Value> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next()?;
    let choices = whole.get_mut("choices")?.as_array_mut()?;
    for mut part in parts {
        if let Some(more) = part.get_mut("choices").and_then(Value::as_array_mut) {
            choices.append(more);
        }
    }
    choices.sort_by_key(|choice| choice.get("index").and_then(Value::as_u64));
    Some(whole)
}
