//! `Event`: what happened in a choice or in the stream, one event for each delta on the wire.

use crate::{
    CallIndex, ChoiceEnd, ChoiceIndex, EventIndex, StreamError, Text, Usage, Warning,
    tool_call::{CallKind, CallStatus},
};

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
    /// Unknown fields of a chunk that changed, as one raw JSON object (C20, E24).
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
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Event;
    ///
    /// let borrowed: Event<&str> = Event::Content("Hi");
    /// let owned: Event<String> = borrowed.map(str::to_owned);
    /// assert!(matches!(owned, Event::Content(text) if text == "Hi"));
    /// ```
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
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Config, Demux, Position};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{}},{\"index\":1,\"delta\":{}}]}\n\n");
/// let first = demux.choice(ChoiceIndex(0)).unwrap().event(0).unwrap().position;
/// let second = demux.choice(ChoiceIndex(1)).unwrap().event(0).unwrap().position;
/// assert_eq!((first, second), (Position::new(0, 0), Position::new(0, 1)));
/// assert!(first < second);
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Config, Demux, Sequenced};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"A\"}}]}\n\n");
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"B\"}}]}\n\n");
    /// let mut events: Vec<Sequenced<&str>> = demux
    ///     .choices()
    ///     .flat_map(|choice| (0..choice.event_count()).filter_map(|seq| choice.event(seq)))
    ///     .collect();
    /// events.sort_by_key(Sequenced::sort_key);
    /// let order: Vec<_> = events.iter().filter_map(|event| event.choice).collect();
    /// assert_eq!(order, [ChoiceIndex(1), ChoiceIndex(1), ChoiceIndex(0), ChoiceIndex(0)]);
    /// ```
    #[must_use]
    pub fn sort_key(&self) -> (Position, Option<ChoiceIndex>, u64) {
        (self.position, self.choice, self.seq)
    }

    /// The same position with the event's texts converted.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Config, Demux, Sequenced};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n");
    /// let mut kept: Vec<Sequenced<String>> = Vec::new();
    /// while let Some(event) = demux.next_event() {
    ///     kept.push(event.map(str::to_owned)); // the next call ends the borrow
    /// }
    /// assert_eq!(kept[0].event.as_str(), "choice.start");
    /// ```
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Sequenced<U> {
        Sequenced {
            choice: self.choice,
            seq: self.seq,
            position: self.position,
            event: self.event.map(f),
        }
    }
}
