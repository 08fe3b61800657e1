//! One choice.

use std::sync::Arc;

use unbraid_core::{ChoiceError, ChoiceIndex, ChoiceOutcome, EventFilter, Message};

use super::{
    events::{EventCursor, Events, Logprobs},
    json::{ContentJson, JsonText},
    messages::Messages,
    text::{Content, Cursor, Lane, Reasoning, Refusal},
    tool_call::ToolCalls,
};
use crate::{
    control::{Guard, Request},
    state::choice_log::{Log, Timing},
    sync::shared::Watcher,
    sync::wait_list::Topics,
};

/// One of the answers of a completion, as it comes and as it ended.
///
/// Every stream taken from it starts at the first delta, whenever it is taken and any number of times. A clone is the
/// same choice. Dropping it frees and cancels nothing while another handle of the completion lives; it keeps its own
/// text in memory, and none of its siblings'.
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
/// let finished = choice.finished().await?;
/// assert_eq!(finished.message.content, "Hi");
/// assert_eq!(finished.finish_reason.unwrap().as_str(), "length");
///
/// let mut late = choice.content(); // the end has passed: it replays
/// assert_eq!(late.next().await.unwrap()?, "Hi");
/// assert!(late.next().await.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Choice {
    pub(super) index: ChoiceIndex,
    pub(super) log: Log,
    guard: Arc<Guard>,
}

impl Choice {
    pub(crate) fn new(log: Log, guard: Arc<Guard>) -> Self {
        Self {
            index: log.index(),
            log,
            guard,
        }
    }

    /// The wire's index of this choice.
    #[must_use]
    pub fn index(&self) -> ChoiceIndex {
        self.index
    }

    /// The role, once it has come; most servers send it first, some late, some never (C1, C5, C6).
    #[must_use]
    pub fn role(&self) -> Option<Arc<str>> {
        self.log.read(|record| record.transcript.role().cloned())
    }

    /// The text, one item a wire delta.
    #[must_use]
    pub fn content(&self) -> Content {
        Content(self.cursor(Lane::Content))
    }

    /// The reasoning, one item a wire delta, by whatever name the server gives it (R3).
    #[must_use]
    pub fn reasoning(&self) -> Reasoning {
        Reasoning(self.cursor(Lane::Reasoning))
    }

    /// The refusal, one item a wire delta.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        Refusal(self.cursor(Lane::Refusal))
    }

    /// The log probabilities, one JSON object a wire delta, in the wire's own shape (M2, M6).
    #[must_use]
    pub fn logprobs(&self) -> Logprobs {
        Logprobs(self.event_cursor(EventFilter::Logprobs))
    }

    /// The function calls, each as soon as it is known by its name.
    #[must_use]
    pub fn tool_calls(&self) -> ToolCalls {
        ToolCalls::new(&self.log, &self.guard)
    }

    /// The content as JSON (JSON mode, structured outputs): single fields as they are typed, the value so far, and typed.
    #[must_use]
    pub fn content_json(&self) -> ContentJson {
        ContentJson(JsonText::new(&self.log, &self.guard, Lane::Content))
    }

    /// Text and function parts as messages, the role on each (R53 to R61).
    #[must_use]
    pub fn messages(&self) -> Messages {
        Messages::new(self.event_cursor(EventFilter::Message))
    }

    /// Everything that happens to this choice, its end included.
    #[must_use]
    pub fn events(&self) -> Events {
        Events(self.event_cursor(EventFilter::All))
    }

    /// Waits for the end and gives the whole text.
    ///
    /// # Errors
    ///
    /// The end that cut it; the error's `partial()` holds what had come.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn text(&self) -> Result<String, ChoiceError> {
        Ok(self.finished().await?.message.content)
    }

    /// The message so far; it never waits. Text that came behind the end is in it (F6).
    #[must_use]
    pub fn snapshot(&self) -> Message {
        self.log.read(|record| record.transcript.message())
    }

    /// When its first delta and its end came.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.log.read(|record| record.timing)
    }

    /// Waits for the end: message, reason, calls with their status, warnings. It does not wait for usage (U14).
    ///
    /// # Errors
    ///
    /// [`ChoiceError`] for every end but `finished` and `done_without_finish`, and for a choice that was
    /// [discarded](Self::discard). It says which choice and how it ended, and holds what had arrived.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn finished(&self) -> Result<ChoiceOutcome, ChoiceError> {
        Watcher::of(Topics::REST, &self.log)
            .wait(|record| record.transcript.result())
            .await
    }

    /// Waits for the end, whichever it is: [`finished`](Self::finished) for those who take a cut answer, too.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn outcome(&self) -> ChoiceOutcome {
        Watcher::of(Topics::REST, &self.log)
            .wait(|record| record.transcript.outcome())
            .await
    }

    /// Ends this choice for all its handles; what had come stays, what still comes for it is dropped.
    ///
    /// The end `cancelled` follows at once. With several choices in one request the server goes on producing this one:
    /// the body closes when every choice was cancelled and as many had come as
    /// [`expect_choices`](crate::CompletionsBuilder::expect_choices) said, or with the last handle. Nothing happens if it has ended.
    pub fn cancel(&self) {
        self.guard.controls.ask(Request::Cancel(self.index));
    }

    /// Cancels this choice and forgets its text, for all its handles.
    ///
    /// Their streams end with an error, and so does what waits for the end, also where the choice had finished before:
    /// an empty text would be taken for the answer.
    pub fn discard(self) {
        self.log.change(|record| record.transcript.discard());
        self.cancel();
    }

    #[cfg(test)]
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    fn cursor(&self, lane: Lane) -> Cursor {
        Cursor::new(&self.log, &self.guard, lane)
    }

    fn event_cursor(&self, wanted: EventFilter) -> EventCursor {
        EventCursor::new(&self.log, &self.guard, wanted)
    }
}
