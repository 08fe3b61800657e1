//! One choice.

use std::sync::Arc;

use unbraid_core::{
    ChoiceError, ChoiceIndex, ChoiceOutcome, Message,
    internal::{EventFilter, TextKind},
};

use super::{
    events::{EventCursor, Events, Logprobs},
    json::{ContentJson, JsonText},
    messages::Messages,
    text::{Content, Reasoning, Refusal, TextCursor},
    tool_call::ToolCalls,
};
use crate::{
    control::{CancelOnDrop, Command},
    state::choice_log::{ChoiceLog, Timing},
    sync::{shared::Watcher, wait_list::Interest},
};

/// One of the answers of a completion, while it arrives and once it has ended.
///
/// Every stream taken from it starts at the first delta, whenever and however often it is taken. A clone is the same
/// choice. Dropping it cancels nothing while another handle of the completion lives. It keeps its own text in memory, and
/// none of its siblings'.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let outcome = choice.finished().await?;
/// assert_eq!(outcome.message.content, "Hi");
/// assert_eq!(outcome.finish_reason.unwrap().as_str(), "length");
///
/// let mut replay = choice.content(); // taken after the end
/// assert_eq!(replay.next().await.unwrap()?, "Hi");
/// assert!(replay.next().await.is_none());
/// # Ok(())
/// # }
/// ```
///
/// Other streams of a choice:
///
/// ```
/// # use futures::stream;
/// use unbraid::Completions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#.to_owned() + "\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let mut calls = choice.tool_calls(); // function calls
/// let mut messages = choice.messages(); // text and function parts, with their role
/// let mut events = choice.events(); // everything, including the end
/// let mut city = choice.content_json().field("/city"); // one string of JSON content
/// # assert!(calls.next().await.is_some() && messages.next().await.is_some());
/// # assert!(events.next().await.is_some() && city.next().await.unwrap().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Choice {
    pub(super) index: ChoiceIndex,
    pub(super) log: ChoiceLog,
    guard: Arc<CancelOnDrop>,
}

impl Choice {
    pub(super) fn new(log: ChoiceLog, guard: Arc<CancelOnDrop>) -> Self {
        Self {
            index: log.index(),
            log,
            guard,
        }
    }

    /// The index of this choice.
    ///
    /// # Examples
    ///
    /// See [`Choices`](crate::Choices).
    #[must_use]
    pub fn index(&self) -> ChoiceIndex {
        self.index
    }

    /// The role, once it has arrived. Most servers send it first, some late, some never (C1, C6).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// assert_eq!(choice.role().as_deref(), Some("assistant"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn role(&self) -> Option<Arc<str>> {
        self.log.read(|state| state.transcript.role().cloned())
    }

    /// The text, one item per wire delta.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// let mut content = choice.content();
    /// while let Some(delta) = content.next().await {
    ///     print!("{}", delta?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn content(&self) -> Content {
        Content(self.text_cursor(TextKind::Content))
    }

    /// The reasoning, one item per wire delta, under whichever name the server sends it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// assert_eq!(choice.reasoning().next().await.unwrap()?, "Hm.");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reasoning(&self) -> Reasoning {
        Reasoning(self.text_cursor(TextKind::Reasoning))
    }

    /// The refusal, one item per wire delta.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"No.\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// assert_eq!(choice.refusal().next().await.unwrap()?, "No.");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        Refusal(self.text_cursor(TextKind::Refusal))
    }

    /// The log probabilities, one JSON object per wire delta, in the wire's own shape (M2, M6).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = r#"data: {"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.1}]}}]}"#;
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// let logprobs = choice.logprobs().next().await.unwrap()?;
    /// assert_eq!(logprobs["content"][0]["token"], "Hi");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn logprobs(&self) -> Logprobs {
        Logprobs(self.event_cursor(EventFilter::Logprobs))
    }

    /// The function calls, each as soon as its name is known.
    ///
    /// # Examples
    ///
    /// See [`ToolCallHandle`](crate::ToolCallHandle).
    #[must_use]
    pub fn tool_calls(&self) -> ToolCalls {
        ToolCalls::new(&self.log, &self.guard)
    }

    /// The content as JSON (JSON mode, structured outputs): single fields while they are written, the value so far, and the
    /// parsed value.
    ///
    /// # Examples
    ///
    /// See [`ContentJson`].
    #[must_use]
    pub fn content_json(&self) -> ContentJson {
        ContentJson(JsonText::new(&self.log, &self.guard, TextKind::Content))
    }

    /// Text and function parts as messages, with the role on each.
    ///
    /// # Examples
    ///
    /// See [`StreamingMessage`](crate::StreamingMessage).
    #[must_use]
    pub fn messages(&self) -> Messages {
        Messages::new(self.event_cursor(EventFilter::Message))
    }

    /// Everything that happens to this choice, including its end.
    ///
    /// # Examples
    ///
    /// See [`Events`].
    #[must_use]
    pub fn events(&self) -> Events {
        Events(self.event_cursor(EventFilter::All))
    }

    /// Waits for the end and returns the whole text.
    ///
    /// # Errors
    ///
    /// As [`finished`](Self::finished): the end that cut the choice. The error's `partial()` holds what had arrived.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// let error = choice.text().await.unwrap_err(); // this body was cut off
    /// assert_eq!(error.partial().message.content, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn text(&self) -> Result<String, ChoiceError> {
        Ok(self.finished().await?.message.content)
    }

    /// The message so far; it never waits. It includes text that arrived after the end (F6).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Once upon\"}}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?; // a stream that goes on
    /// assert_eq!(choice.snapshot().content, "Once upon");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Message {
        self.log.read(|state| state.transcript.message())
    }

    /// When its first delta and its end arrived.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// choice.finished().await?;
    /// let timing = choice.timing();
    /// assert!(timing.first_delta.unwrap() <= timing.end.unwrap());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.log.read(|state| state.timing)
    }

    /// Waits for the end and returns the message, the finish reason, the calls with their status, and the warnings. It does
    /// not wait for usage (U14).
    ///
    /// # Errors
    ///
    /// [`ChoiceError`] for every end but `finished` and `done_without_finish`, and for a choice that was
    /// [discarded](Self::discard). It says which choice and how it ended, and holds what had arrived.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// See [`Choice`].
    pub async fn finished(&self) -> Result<ChoiceOutcome, ChoiceError> {
        Watcher::with_interest(Interest::OTHER, &self.log)
            .wait_for(|state| state.transcript.result())
            .await
    }

    /// Waits for the end, whichever it is: [`finished`](Self::finished) for callers that take a cut answer, too.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// let outcome = choice.outcome().await;
    /// assert_eq!((outcome.end.as_str(), &*outcome.message.content), ("interrupted", "Hi"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn outcome(&self) -> ChoiceOutcome {
        Watcher::with_interest(Interest::OTHER, &self.log)
            .wait_for(|state| state.transcript.outcome())
            .await
    }

    /// Ends this choice for all its handles. What has arrived stays, and what still arrives for it is dropped.
    ///
    /// The end `cancelled` follows at once, or `finished` if the finish reason has arrived (that of Gemini
    /// counts at the end of the body, because content may follow it). With several choices in one request the
    /// server goes on producing this one. The source closes when every choice was cancelled and as many had appeared as
    /// [`expect_choices`](crate::CompletionsBuilder::expect_choices) says, or when the last handle is dropped. If the choice
    /// has ended, nothing happens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Once upon\"}}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?; // a stream that goes on
    /// choice.cancel();
    /// assert_eq!(choice.outcome().await.end.as_str(), "cancelled");
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(&self) {
        self.guard.controls.send(Command::Cancel(self.index));
    }

    /// Cancels this choice and forgets its text, for all its handles.
    ///
    /// Its streams and whatever waits for its end get an error, even if the choice had finished before: an empty text would
    /// be taken for the answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Once upon\"}}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// let mut content = choice.content();
    /// choice.discard();
    /// assert!(content.next().await.unwrap().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn discard(self) {
        self.log.modify(|state| state.transcript.discard());
        self.cancel();
    }

    #[cfg(test)]
    pub(crate) fn log(&self) -> &ChoiceLog {
        &self.log
    }

    fn text_cursor(&self, kind: TextKind) -> TextCursor {
        TextCursor::new(&self.log, &self.guard, kind)
    }

    fn event_cursor(&self, filter: EventFilter) -> EventCursor {
        EventCursor::new(&self.log, &self.guard, filter)
    }
}
