//! The messages of a choice, as the decision record describes them: the role on each, text and function parts apart.

use std::task::{Context, Poll};

use unbraid_core::{CallIndex, ChoiceError, ChoiceIndex, Event, EventIndex, Sequenced, Text};

use super::{cursor, events::EventCursor};

/// One piece of a choice's message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamingMessage {
    /// Which choice.
    pub choice: ChoiceIndex,
    /// The role, on every message once it is known; `None` before (R53).
    pub role: Option<Text>,
    /// The server-sent event that contained it.
    pub event_index: EventIndex,
    /// Text, or a piece of a function call; never both (R58, R59).
    pub part: Part,
}

/// What a message brings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The next piece of the text; never empty (R57).
    Text(Text),
    /// A function call begins: its name is known.
    FunctionName {
        /// The call, by its ordinal within the choice.
        call_index: CallIndex,
        /// The call's id, if it had come by then.
        id: Option<Text>,
        /// The function's name.
        name: Text,
    },
    /// The next piece of a call's arguments, verbatim; never empty.
    FunctionArguments {
        /// The call, by its ordinal within the choice.
        call_index: CallIndex,
        /// The piece.
        arguments: Text,
    },
}

impl StreamingMessage {
    /// The text; empty for a function part (R58).
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
    /// assert_eq!((message.role.as_deref(), message.content()), (Some("assistant"), "Hi"));
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
/// Updates that bring neither text nor function parts give no message, but are heeded: the role they bring stands on
/// the next one (R60). After the end it gives `None`, or first the error that cut the choice.
#[derive(Clone)]
pub struct Messages {
    pub(super) events: EventCursor,
    role: Option<Text>,
}

impl Messages {
    pub(crate) fn new(events: EventCursor) -> Self {
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
                Poll::Ready(Some(Ok(stamped))) => {
                    if let Some(message) = self.message(stamped) {
                        return Poll::Ready(Some(Ok(message)));
                    }
                }
            }
        }
    }

    fn message(&mut self, stamped: Sequenced) -> Option<StreamingMessage> {
        let part = match stamped.event {
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
        let choice = stamped.choice.unwrap_or(ChoiceIndex(0));
        Some(StreamingMessage {
            choice,
            role: self.role.clone(),
            event_index: stamped.position.event,
            part,
        })
    }

    fn is_done(&self) -> bool {
        self.events.done
    }
}

cursor!(Messages, StreamingMessage, ChoiceError);
