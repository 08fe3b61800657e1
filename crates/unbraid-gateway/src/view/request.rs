//! What a reader requests: a view, where it begins, and its form.

use unbraid_core::ChoiceIndex;
use unbraid_log::Seq;

/// A request for a view, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewRequest {
    pub(crate) target: Target,
    pub(crate) start: Start,
    pub(crate) format: Format,
}

/// Which part of a stream a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// All events.
    Combined,
    /// One choice as a stream of its own.
    Choice {
        index: ChoiceIndex,
        /// Whether the choice keeps its index, in place of 0.
        keep_index: bool,
        /// The only part of its message that is shown.
        part: Option<Part>,
    },
}

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Content,
    Reasoning,
    Refusal,
    /// The tool call with this index.
    ToolCall(u32),
}

/// Where a view begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the first event.
    Beginning,
    /// With one chunk that holds everything so far.
    Snapshot,
    /// With the current position, and then new events.
    Tail,
    /// With the first event after a cursor.
    After(Seq),
}

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Server-sent events.
    Events,
    /// The message so far as one JSON object.
    Json,
}

/// The headers that select a view. A header that is sent several times counts as its first value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestHeaders<'a> {
    pub(crate) accept: Option<&'a [u8]>,
    pub(crate) last_event_id: Option<&'a [u8]>,
}

/// Why a view is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ViewError {
    /// 400 `bad_cursor`.
    #[error("a cursor is a decimal number below 2^63")]
    BadCursor,
    /// 400 `invalid_parameter`: the query has a value that does not exist.
    #[error("the value of the query parameter `{0}` is not known")]
    InvalidParameter(&'static str),
    /// 404 `choice_not_found`.
    #[error("the stream has no such choice")]
    ChoiceNotFound,
    /// 406 `not_acceptable`.
    #[error("a view is text/event-stream or application/json")]
    NotAcceptable,
}

impl ViewRequest {
    /// The view of a POST: all events, from the first one or after a cursor.
    pub(crate) fn of_post(after: Option<Seq>) -> Self {
        Self {
            target: Target::Combined,
            start: after.map_or(Start::Beginning, Start::After),
            format: Format::Events,
        }
    }

    /// Parses the query and the headers of a GET. Parameters that are not of views (those of links) are ignored.
    pub(crate) fn parse(
        choice: Option<ChoiceIndex>,
        query: Option<&str>,
        headers: RequestHeaders<'_>,
    ) -> Result<Self, ViewError> {
        let _ = (choice, query, headers);
        unimplemented!()
    }

    /// Parses a cursor: the value of `Last-Event-ID`.
    pub(crate) fn parse_cursor(value: &[u8]) -> Result<Seq, ViewError> {
        let _ = value;
        unimplemented!()
    }
}
