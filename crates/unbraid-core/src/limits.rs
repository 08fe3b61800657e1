//! Every bound of the library, each with its reason.

use std::fmt;

/// Bytes of one line. A base64 image or audio delta is 5 to 20 MiB on one line; a longer line is not a chat answer.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of one event's data. One event carries one chunk, and a chunk is one line in practice.
pub const MAX_EVENT_BYTES: usize = MAX_LINE_BYTES;

/// Choices of one completion. The API caps `n` at 128; a replayed stream carries no `n`, so the count is checked here.
pub const MAX_CHOICES: usize = 128;

/// Tool calls of one choice. Parallel calls come by the handful; a hundred is a runaway model.
pub const MAX_TOOL_CALLS: usize = 128;

/// Bytes that one choice may keep. One choice of the longest outputs of today (about 128,000 tokens) needs a twentieth.
pub const MAX_CHOICE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes that one completion may keep, all choices together.
pub const MAX_COMPLETION_BYTES: u64 = 256 * 1024 * 1024;

/// Nesting of a chunk's JSON; `serde_json` refuses the same depth, so both decoders agree.
pub const MAX_JSON_DEPTH: usize = 127;

/// Nesting of a call's arguments (J16): `serde_json` refuses the same depth, so what is judged complete can be parsed.
pub const MAX_ARGUMENT_DEPTH: usize = 127;

/// Values in a partial view of arguments. One costs up to some 400 bytes (a key, a map's entry, its growth) for as
/// little as 2 bytes of text, so that 50 MiB are the most; a megabyte of ordinary arguments has less than half as many.
pub const MAX_PARTIAL_NODES: usize = 1 << 17;

/// Warnings that a completion, and each of its choices, keeps. A broken server breaks every chunk in the same way.
pub const MAX_WARNINGS: usize = 64;

/// Unknown fields kept of one object, and of one choice or stream. Servers send a dozen; a search among more would be slow.
pub const MAX_FIELDS: usize = 256;

/// Entries of `choices` in one event, as many of `tool_calls`, and as many chunks without choices, whatever the event is
/// made of: one chunk, a list of them, several on one line. Servers send one, gateways that gather a few dozen; an entry
/// may take 3 bytes on the wire and costs several hundred in memory.
pub const MAX_ENTRIES: usize = 1024;

/// Bytes of a completion's id, and of its model's name; a longer one is read as none. Both have some fifty, and each update
/// of an event carries a copy.
pub const MAX_NAME_BYTES: usize = 4096;

/// JSON values in a chunk that is read field by field, and in a field that is given as a value. One takes 2 bytes on
/// the wire and costs up to a hundred in memory; the largest recorded chunks hold a few thousand.
pub const MAX_VALUES: usize = 1 << 18;

/// What one kept delta costs beside its bytes: its record, and the growth that a vector keeps in reserve.
pub const DELTA_COST: u64 = 64;

/// Bytes that are read after `[DONE]`, for usage (U13) and to let a connection be used again (S26). A usage chunk has a
/// few hundred; a server that sends more than this sends another answer.
pub const MAX_BYTES_AFTER_DONE: usize = 64 * 1024;

/// Which bound was exceeded.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_core::Limit::ToolCalls.to_string(), "tool calls of a choice");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::line_bytes`]: ends the stream.
    Line,
    /// [`Limits::event_bytes`]: ends the stream.
    Event,
    /// [`Limits::choices`]: the further choice is refused, the others go on.
    Choices,
    /// [`Limits::tool_calls`]: ends the choice.
    ToolCalls,
    /// [`Limits::choice_bytes`]: ends the choice.
    ChoiceBytes,
    /// [`Limits::completion_bytes`]: ends the stream.
    CompletionBytes,
}

impl Limit {
    /// Whether it bounds one choice, so that exceeding it is that choice's own fault.
    pub(crate) fn is_of_choice(self) -> bool {
        match self {
            Self::ToolCalls | Self::ChoiceBytes => true,
            Self::Line | Self::Event | Self::Choices | Self::CompletionBytes => false,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "bytes of one line",
            Self::Event => "bytes of one event",
            Self::Choices => "choices of a completion",
            Self::ToolCalls => "tool calls of a choice",
            Self::ChoiceBytes => "bytes of one choice",
            Self::CompletionBytes => "bytes of a completion",
        })
    }
}

/// A bound that a stream exceeded: which one, and how much it allows.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Limit, LimitExceeded};
///
/// let error = LimitExceeded::new(Limit::Choices, 128);
/// assert_eq!(error.to_string(), "more than 128 choices of a completion");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("more than {max} {limit}")]
#[non_exhaustive]
pub struct LimitExceeded {
    /// The bound.
    pub limit: Limit,
    /// What it allows, in the bound's own unit (bytes, choices, calls).
    pub max: u64,
}

impl LimitExceeded {
    /// The error of a bound that allows `max`.
    #[must_use]
    pub fn new(limit: Limit, max: u64) -> Self {
        Self { limit, max }
    }
}

/// The bounds of one completion; the defaults are this module's constants.
///
/// # Examples
///
/// ```
/// use unbraid_core::Limits;
///
/// let limits = Limits::default().with_choices(8);
/// assert_eq!(limits.tool_calls, unbraid_core::limits::MAX_TOOL_CALLS);
/// # assert_eq!(limits.choices, 8);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one line, its end not counted.
    pub line_bytes: usize,
    /// Bytes of one event's data, its lines joined.
    pub event_bytes: usize,
    /// Choices of one completion.
    pub choices: usize,
    /// Tool calls of one choice, a legacy function call included.
    pub tool_calls: usize,
    /// Bytes that one choice keeps: its text, and [`DELTA_COST`] a delta. More than 4 GiB are read as 4 GiB.
    pub choice_bytes: u64,
    /// Bytes that all choices together keep.
    pub completion_bytes: u64,
    /// Nesting of a chunk's JSON; a deeper chunk is skipped with a warning.
    pub json_depth: usize,
    /// Warnings kept by the completion and by each choice; further ones are only counted.
    pub warnings: usize,
}

impl Limits {
    with_methods! {
        with_line_bytes(usize): line_bytes = |bytes| bytes;
        with_event_bytes(usize): event_bytes = |bytes| bytes;
        with_choices(usize): choices = |choices| choices;
        with_tool_calls(usize): tool_calls = |calls| calls;
        with_choice_bytes(u64): choice_bytes = |bytes| bytes;
        with_completion_bytes(u64): completion_bytes = |bytes| bytes;
        with_json_depth(usize): json_depth = |depth| depth;
        with_warnings(usize): warnings = |warnings| warnings;
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: MAX_LINE_BYTES,
            event_bytes: MAX_EVENT_BYTES,
            choices: MAX_CHOICES,
            tool_calls: MAX_TOOL_CALLS,
            choice_bytes: MAX_CHOICE_BYTES,
            completion_bytes: MAX_COMPLETION_BYTES,
            json_depth: MAX_JSON_DEPTH,
            warnings: MAX_WARNINGS,
        }
    }
}

#[cfg(test)]
mod tests;
