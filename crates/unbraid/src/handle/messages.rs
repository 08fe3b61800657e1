//! The messages of a choice: the role on each, and text and function parts as separate messages.

use std::task::{Context, Poll};

use unbraid_core::{CallIndex, ChoiceError, ChoiceIndex, Event, EventIndex, Sequenced, Text};

use super::{cursor, events::EventCursor};

/// One part of a choice's message.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Part};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let choice = Completions::from_byte_stream(bytes).first().await?;
/// let mut messages = choice.messages();
/// while let Some(message) = messages.next().await {
///     let message = message?;
///     assert_eq!(message.role.as_deref(), Some("assistant"));
///     match message.part {
///         Part::Text(text) => print!("{text}"),
///         Part::FunctionName { name, .. } => println!("calls {name}"),
///         Part::FunctionArguments { arguments, .. } => print!("{arguments}"),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamingMessage {
    /// The choice.
    pub choice: ChoiceIndex,
    /// The role, on every message once it is known; `None` before.
    pub role: Option<Text>,
    /// The ordinal of the server-sent event that brought it, from 0.
    pub event_index: EventIndex,
    /// Text, or a part of a function call; never both.
    pub part: Part,
}

/// What a message brings.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Part};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let message = Completions::from_byte_stream(bytes).first().await?.messages().next().await.unwrap()?;
/// assert!(matches!(message.part, Part::Text(text) if text == "Hi"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The next piece of the text; never empty.
    Text(Text),
    /// A function call begins: its name is known.
    FunctionName {
        /// The ordinal of the call within its choice, from 0.
        call_index: CallIndex,
        /// The call's id, if it has arrived by then.
        id: Option<Text>,
        /// The function's name.
        name: Text,
    },
    /// The next fragment of a call's arguments, verbatim; never empty.
    FunctionArguments {
        /// The ordinal of the call within its choice, from 0.
        call_index: CallIndex,
        /// The fragment.
        arguments: Text,
    },
}

impl StreamingMessage {
    /// The text; empty for a function part.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let choice = unbraid::Completions::from_byte_stream(bytes).first().await?;
    /// let message = choice.messages().next().await.unwrap()?;
    /// assert_eq!(message.content(), "Hi");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn content(&self) -> &str {
        match &self.part {
            Part::Text(text) => text,
            Part::FunctionName { .. } | Part::FunctionArguments { .. } => "",
        }
    }
}

/// The messages of one choice; see [`Choice::messages`](crate::Choice::messages).
///
/// An update with neither text nor function parts yields no message, but if it has a role, the messages that follow have it,
/// too. After the end the stream returns `None`, or first the error that cut the choice. A clone continues from the
/// same position on its own. Dropping it cancels nothing while another handle lives.
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
/// let mut messages = Completions::from_byte_stream(bytes).first().await?.messages();
/// assert_eq!(messages.next().await.unwrap()?.content(), "Hi");
/// assert!(messages.next().await.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Messages {
    pub(super) events: EventCursor,
    role: Option<Text>,
}

impl Messages {
    pub(super) fn new(events: EventCursor) -> Self {
        Self { events, role: None }
    }

    fn poll_item(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<StreamingMessage, ChoiceError>>> {
        loop {
            match self.events.poll_event(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(event))) => {
                    if let Some(message) = self.message(event) {
                        return Poll::Ready(Some(Ok(message)));
                    }
                }
            }
        }
    }

    fn message(&mut self, sequenced: Sequenced) -> Option<StreamingMessage> {
        let part = match sequenced.event {
            Event::Start { role: Some(role) } | Event::Role(role) => {
                self.role = Some(role);
                return None;
            }
            Event::Content(text) => Part::Text(text),
            Event::ToolCallStart {
                call_index,
                id,
                name,
                ..
            } => Part::FunctionName {
                call_index,
                id,
                name,
            },
            Event::ToolCallArguments { call_index, text } => Part::FunctionArguments {
                call_index,
                arguments: text,
            },
            _ => return None,
        };
        Some(StreamingMessage {
            choice: sequenced.choice.unwrap_or(ChoiceIndex(0)),
            role: self.role.clone(),
            event_index: sequenced.position.event,
            part,
        })
    }

    fn is_done(&self) -> bool {
        self.events.done
    }
}

cursor!(Messages, StreamingMessage, ChoiceError);
