//! `Event`: what happened in a choice or in the stream, one event for each delta on the wire.

use std::{fmt, sync::Arc};

use crate::{
    CallIndex, ChoiceIndex, EventIndex, LimitExceeded, ServerError, StreamError, Text, TimedOut,
    TransportError, Usage, Warning,
    json_text::Json,
    tool_call::{CallKind, CallStatus},
};

/// Why a model stopped, as the server reported it. The set is open, and the raw text is always kept (F11).
///
/// # Examples
///
/// ```
/// use unbraid_core::FinishReason;
///
/// assert_eq!(FinishReason::from("stop"), FinishReason::Stop);
/// assert_eq!(FinishReason::from("eos_token").as_str(), "eos_token");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// `stop`: the answer is complete.
    Stop,
    /// `length`: cut at the token limit.
    Length,
    /// `tool_calls`: the model wants its calls answered.
    ToolCalls,
    /// `function_call`: the same, in the API of 2023.
    FunctionCall,
    /// `content_filter`: cut by a filter.
    ContentFilter,
    /// Any other text.
    Other(Arc<str>),
}

impl FinishReason {
    /// The raw text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::FunctionCall => "function_call",
            Self::ContentFilter => "content_filter",
            Self::Other(raw) => raw,
        }
    }
}

impl From<&str> for FinishReason {
    fn from(raw: &str) -> Self {
        match raw {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "function_call" => Self::FunctionCall,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a choice ended. Every end but the first two is also the one error of the choice's streams.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceEnd, FinishReason};
///
/// assert!(!ChoiceEnd::Finished(FinishReason::Length).is_error(), "a cut answer is an outcome");
/// assert!(ChoiceEnd::Interrupted.is_error());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ChoiceEnd {
    /// Its finish reason arrived, and then no further delta for it.
    Finished(FinishReason),
    /// `[DONE]` arrived, but no finish reason (S24, F14).
    DoneWithoutFinish,
    /// The stream ended with neither (S22, F7).
    Interrupted,
    /// The server reported an error.
    ServerError(Arc<ServerError>),
    /// The source failed.
    Transport(Arc<TransportError>),
    /// The caller cancelled it.
    Cancelled,
    /// A timeout passed.
    TimedOut(TimedOut),
    /// A limit was exceeded.
    LimitExceeded(LimitExceeded),
    /// The choice's actor was lost.
    Lost,
}

impl ChoiceEnd {
    /// One lower-case word, as the command prints it.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::ChoiceEnd::DoneWithoutFinish.as_str(), "done_without_finish");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Finished(_) => "finished",
            Self::DoneWithoutFinish => "done_without_finish",
            Self::Interrupted => "interrupted",
            Self::ServerError(_) => "server_error",
            Self::Transport(_) => "transport",
            Self::Cancelled => "cancelled",
            Self::TimedOut(_) => "timed_out",
            Self::LimitExceeded(_) => "limit_exceeded",
            Self::Lost => "lost",
        }
    }

    /// Whether the choice's streams end with an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Finished(_) | Self::DoneWithoutFinish)
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Finished(reason) => format!("finished ({reason})"),
            Self::DoneWithoutFinish => "the stream was done, without a finish reason".into(),
            Self::Interrupted => "the stream ended before the choice did".into(),
            Self::ServerError(error) => error.to_string(),
            Self::Transport(error) => error.to_string(),
            Self::Cancelled => "cancelled".into(),
            Self::TimedOut(error) => error.to_string(),
            Self::LimitExceeded(error) => error.to_string(),
            Self::Lost => "the actor that carried it was lost".into(),
        }
    }
}

impl fmt::Display for ChoiceEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl From<&StreamError> for ChoiceEnd {
    fn from(error: &StreamError) -> Self {
        match error {
            StreamError::Transport(error) => Self::Transport(Arc::clone(error)),
            StreamError::Server(error) => Self::ServerError(Arc::clone(error)),
            StreamError::Cancelled => Self::Cancelled,
            StreamError::TimedOut(error) => Self::TimedOut(*error),
            StreamError::Limit(error) => Self::LimitExceeded(*error),
            StreamError::NoRuntime | StreamError::NoTimeDriver | StreamError::Lost => Self::Lost,
            StreamError::Empty { .. }
            | StreamError::NotAStream { .. }
            | StreamError::UnsupportedFormat { .. }
            | StreamError::Malformed { .. } => Self::Interrupted,
        }
    }
}

/// One event. Its text is a `&str` if it is borrowed from a transcript, and a [`Text`] if it is owned.
///
/// Stream-level events (a warning about the stream, `Usage`, `Error`) have no choice in their [`Sequenced`].
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
/// let mut names = Vec::new();
/// while let Some(event) = demux.next_event() {
///     names.push(event.event.as_str());
/// }
/// assert_eq!(names, ["choice.start", "content.delta", "finish", "content.done", "end"]);
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Event<T = Text> {
    /// The choice appeared, with its role if the same chunk contains it.
    Start {
        /// The role, if it is known.
        role: Option<T>,
    },
    /// The role arrived after the start (C6).
    Role(T),
    /// The next piece of the message's text.
    Content(T),
    /// The text is complete. Emitted only if there was any.
    ContentDone,
    /// The next piece of the reasoning.
    Reasoning(T),
    /// The reasoning is complete. Emitted only if there was any, and once, at the end of the choice: models may reason
    /// again after text (R9).
    ReasoningDone,
    /// The next piece of the refusal.
    Refusal(T),
    /// The refusal is complete. Emitted only if there was any (M4).
    RefusalDone,
    /// A tool call started, and its name is known.
    ToolCallStart {
        /// The call, by its ordinal within the choice.
        call_index: CallIndex,
        /// The wire's index, if the call has one.
        wire_index: Option<i64>,
        /// The call's id, if it has arrived.
        id: Option<T>,
        /// The tool's name.
        name: T,
        /// Function, custom tool or legacy function call.
        kind: CallKind,
    },
    /// The next piece of a call's arguments, verbatim.
    ToolCallArguments {
        /// The call, by its ordinal within the choice.
        call_index: CallIndex,
        /// The piece.
        text: T,
    },
    /// A call ended, together with its choice.
    ToolCallDone {
        /// The call, by its ordinal within the choice.
        call_index: CallIndex,
        /// Whether its arguments are complete.
        status: CallStatus,
    },
    /// The next piece of the audio, as raw JSON: its `id`, `data`, `transcript` or `expires_at` (M11).
    Audio(T),
    /// Log probabilities of one delta, as raw JSON.
    Logprobs(T),
    /// Unknown fields of a chunk that changed, as one raw JSON object (C20, E24, E25).
    ExtraFields(T),
    /// The raw finish reason. Only the first one is an event.
    Finish(T),
    /// A deviation was tolerated.
    Warning(Warning),
    /// The choice ended. Its streams end here.
    End(ChoiceEnd),
    /// The usage that the server reported, once, at the close of the stream.
    Usage(Box<Usage>),
    /// The error that ended the stream as a whole.
    Error(StreamError),
}

impl<T> Event<T> {
    /// The event's type, as the command prints it.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::Event::Content("x").as_str(), "content.delta");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Start { .. } => "choice.start",
            Self::Role(_) => "role",
            Self::Content(_) => "content.delta",
            Self::ContentDone => "content.done",
            Self::Reasoning(_) => "reasoning.delta",
            Self::ReasoningDone => "reasoning.done",
            Self::Refusal(_) => "refusal.delta",
            Self::RefusalDone => "refusal.done",
            Self::ToolCallStart { .. } => "tool_call.start",
            Self::ToolCallArguments { .. } => "tool_call.arguments.delta",
            Self::ToolCallDone { .. } => "tool_call.done",
            Self::Audio(_) => "audio.delta",
            Self::Logprobs(_) => "logprobs.delta",
            Self::ExtraFields(_) => "metadata",
            Self::Finish(_) => "finish",
            Self::Warning(_) => "warning",
            Self::End(_) => "end",
            Self::Usage(_) => "usage",
            Self::Error(_) => "error",
        }
    }

    /// The same event with its texts converted.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Event<U> {
        match self {
            Self::Start { role } => Event::Start { role: role.map(f) },
            Self::Role(text) => Event::Role(f(text)),
            Self::Content(text) => Event::Content(f(text)),
            Self::ContentDone => Event::ContentDone,
            Self::Reasoning(text) => Event::Reasoning(f(text)),
            Self::ReasoningDone => Event::ReasoningDone,
            Self::Refusal(text) => Event::Refusal(f(text)),
            Self::RefusalDone => Event::RefusalDone,
            Self::ToolCallStart {
                call_index,
                wire_index,
                id,
                name,
                kind,
            } => Event::ToolCallStart {
                call_index,
                wire_index,
                id: id.map(&mut f),
                name: f(name),
                kind,
            },
            Self::ToolCallArguments { call_index, text } => Event::ToolCallArguments {
                call_index,
                text: f(text),
            },
            Self::ToolCallDone { call_index, status } => Event::ToolCallDone { call_index, status },
            Self::Audio(text) => Event::Audio(f(text)),
            Self::Logprobs(text) => Event::Logprobs(f(text)),
            Self::ExtraFields(text) => Event::ExtraFields(f(text)),
            Self::Finish(text) => Event::Finish(f(text)),
            Self::Warning(warning) => Event::Warning(warning),
            Self::End(end) => Event::End(end),
            Self::Usage(usage) => Event::Usage(usage),
            Self::Error(error) => Event::Error(error),
        }
    }
}

/// Where in the stream something happened: in which server-sent event, and in which update of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// The server-sent event.
    pub event: EventIndex,
    /// Ordinal of the update within the event. What happens at the event's end comes after all of them.
    pub update: u32,
}

impl Position {
    /// The position of an update within an event.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Position;
    ///
    /// assert!(Position::new(3, 1) < Position::new(4, 0));
    /// ```
    #[must_use]
    pub fn new(event: impl Into<EventIndex>, update: u32) -> Self {
        Self {
            event: event.into(),
            update,
        }
    }

    /// After every update of an event.
    pub(crate) fn event_end(event: EventIndex) -> Self {
        Self {
            event,
            update: u32::MAX - 1,
        }
    }

    /// After everything else.
    pub(crate) fn close(event: EventIndex) -> Self {
        Self {
            event,
            update: u32::MAX,
        }
    }
}

/// An event with its choice, number and position. Sorted by [`sort_key`](Self::sort_key), the events of a stream are in
/// [`Demux`](crate::Demux)'s order.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Config, Demux, Position};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
/// let first = demux.next_event().unwrap();
/// assert_eq!((first.choice, first.seq, first.position), (Some(ChoiceIndex(0)), 0, Position::new(0, 0)));
/// assert_eq!(first.to_string(), "0 0 c0 choice.start {\"role\":null}");
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Sequenced<T = Text> {
    /// The choice, or `None` for the stream itself.
    pub choice: Option<ChoiceIndex>,
    /// Counts from 0 within the choice, or within the stream's own events.
    pub seq: u64,
    /// The event that caused it.
    pub position: Position,
    /// What happened.
    pub event: Event<T>,
}

impl<T> Sequenced<T> {
    /// An event and where it belongs: its choice (or the stream), its number there, and its position.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Event, Position, Sequenced};
    ///
    /// let event = Sequenced::new(Some(ChoiceIndex(1)), 4, Position::new(7, 0), Event::Content("Hi"));
    /// assert_eq!(event.to_string(), r#"7 4 c1 content.delta {"delta":"Hi"}"#);
    /// ```
    #[must_use]
    pub fn new(choice: Option<ChoiceIndex>, seq: u64, position: Position, event: Event<T>) -> Self {
        Self {
            choice,
            seq,
            position,
            event,
        }
    }

    /// The key of the total order.
    #[must_use]
    pub fn sort_key(&self) -> (Position, Option<ChoiceIndex>, u64) {
        (self.position, self.choice, self.seq)
    }

    /// The same position with the event's texts converted.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Sequenced<U> {
        Sequenced {
            choice: self.choice,
            seq: self.seq,
            position: self.position,
            event: self.event.map(f),
        }
    }
}

impl<T: AsRef<str>> fmt::Display for Sequenced<T> {
    /// One line: `event seq c<choice> <type> <payload as JSON>`, the format of the fixture traces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.position.event, self.seq)?;
        match self.choice {
            Some(choice) => write!(f, "c{choice}")?,
            None => f.write_str("-")?,
        }
        write!(f, " {}", self.event.as_str())?;
        let payload = crate::report::payload(&self.event);
        if payload.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", Json::Object(payload).into_text())
        }
    }
}
