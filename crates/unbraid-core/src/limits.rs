//! All limits of the library, each with its reason.

use std::fmt;

/// The maximum length of a line in bytes. A base64 image or audio delta is a line of 5 to 20 MiB; no chat answer
/// has a longer one.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// The maximum length of an event's data in bytes. An event carries one chunk, and in practice a chunk is one line.
pub const MAX_EVENT_BYTES: usize = MAX_LINE_BYTES;

/// The maximum number of choices of a completion. The API limits `n` to 128. A replayed stream does not contain `n`,
/// so the choices are counted.
pub const MAX_CHOICES: usize = 128;

/// The maximum number of tool calls of a choice. Parallel calls are few; a hundred of them is a runaway model.
pub const MAX_TOOL_CALLS: usize = 128;

/// The maximum number of bytes that one choice keeps. A choice with the longest outputs of today (about 128,000
/// tokens) needs a twentieth of it.
pub const MAX_CHOICE_BYTES: u64 = 64 * 1024 * 1024;

/// The maximum number of bytes that the choices of a completion keep together.
pub const MAX_COMPLETION_BYTES: u64 = 256 * 1024 * 1024;

/// The maximum nesting of a chunk's JSON. `serde_json` has the same limit, so all decode paths agree.
pub const MAX_JSON_DEPTH: usize = 127;

/// The maximum nesting of a call's arguments (J16). `serde_json` has the same limit, so arguments that are complete
/// can be parsed.
pub const MAX_ARGUMENT_DEPTH: usize = 127;

/// The maximum number of values in a partial view of arguments. A value of 2 bytes of text can cost 400 bytes of
/// memory (a key, a map entry, its growth), so a view has at most 50 MiB. A megabyte of ordinary arguments has less
/// than half as many values.
pub const MAX_PARTIAL_NODES: usize = 1 << 17;

/// The maximum number of warnings that a completion keeps, and that each of its choices keeps. A broken server breaks
/// every chunk in the same way.
pub const MAX_WARNINGS: usize = 64;

/// The maximum number of unknown fields that are kept of one object, and of one choice or stream. Servers send about a
/// dozen, and fields are searched linearly.
pub const MAX_FIELDS: usize = 256;

/// The maximum number of `choices` entries in one event, of `tool_calls` entries, and of chunks without choices,
/// whether the event is one chunk, a list of chunks, or several on one line. Servers send one, and gateways that batch
/// send a few dozen. An entry of 3 bytes costs several hundred bytes of memory.
pub const MAX_ENTRIES: usize = 1024;

/// The maximum length of a completion's id, and of its model's name, in bytes; longer ones are dropped. Both have
/// about fifty, and each update of an event carries a copy.
pub const MAX_NAME_BYTES: usize = 4096;

/// The maximum number of JSON values in a chunk that is read field by field, and in a field that is converted to a
/// value. A value of 2 bytes costs up to a hundred bytes of memory. The largest recorded chunks have a few thousand.
pub const MAX_VALUES: usize = 1 << 18;

/// The maximum number of bytes that are kept of an error from which secrets are removed. Finding a key in every escaped
/// form takes several copies of the text. A gateway's HTML page has about 10 KiB, a provider's error less.
pub const MAX_REDACTED_BYTES: usize = 64 * 1024;

/// The memory that a kept delta costs in addition to its text, in bytes: its record, and the spare capacity of a
/// vector.
pub const DELTA_COST: u64 = 64;

/// The maximum length of a usage object in bytes; a longer one is treated as absent, because its fields and their names
/// are kept several times.
pub const MAX_USAGE_BYTES: usize = 1024 * 1024;

/// The maximum number of bytes that are read after `[DONE]`, to find usage (U13) and to make the connection reusable
/// (S26). A usage chunk has a few hundred; a server that sends more sends another answer.
pub const MAX_BYTES_AFTER_DONE: usize = 64 * 1024;

/// The maximum number of bytes of a portion, which is decoded before anything is forwarded. It bounds how long other tasks
/// wait, and what a batch holds. An ordinary read, of 64 KiB at most, is one portion.
pub(crate) const PORTION_BYTES: usize = 256 * 1024;

/// The maximum number of updates of a portion, without the rest of its last event. The shortest events have about ten bytes,
/// and an update in a batch costs several hundred.
pub(crate) const PORTION_UPDATES: usize = 4096;

/// The limit that was exceeded.
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
    /// [`Limits::choices`]: the new choice is refused, and the others continue.
    Choices,
    /// [`Limits::tool_calls`]: ends the choice.
    ToolCalls,
    /// [`Limits::choice_bytes`]: ends the choice.
    ChoiceBytes,
    /// [`Limits::completion_bytes`]: ends the stream.
    CompletionBytes,
}

impl Limit {
    /// Whether it limits one choice, so that exceeding it ends only that choice.
    pub(crate) fn is_of_choice(self) -> bool {
        match self {
            Self::ToolCalls | Self::ChoiceBytes => true,
            Self::Line | Self::Event | Self::Choices | Self::CompletionBytes => false,
        }
    }
}

impl Limit {
    /// What it counts, in the singular for a limit of one.
    fn noun(self, max: u64) -> &'static str {
        match (self, max) {
            (Self::Line, _) => "bytes of one line",
            (Self::Event, _) => "bytes of one event",
            (Self::Choices, 1) => "choice of a completion",
            (Self::Choices, _) => "choices of a completion",
            (Self::ToolCalls, 1) => "tool call of a choice",
            (Self::ToolCalls, _) => "tool calls of a choice",
            (Self::ChoiceBytes, _) => "bytes of one choice",
            (Self::CompletionBytes, _) => "bytes of a completion",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun(u64::MAX))
    }
}

/// The error of a stream that exceeded a limit.
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
#[error("more than {max} {}", .limit.noun(*.max))]
#[non_exhaustive]
pub struct LimitExceeded {
    /// The limit.
    pub limit: Limit,
    /// Its value, in bytes, choices or calls.
    pub max: u64,
}

impl LimitExceeded {
    /// The error of a limit that allows `max`.
    #[must_use]
    pub fn new(limit: Limit, max: u64) -> Self {
        Self { limit, max }
    }
}

/// The limits of a completion. The defaults are the constants of this module.
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
    /// The maximum length of a line in bytes, without its end.
    pub line_bytes: usize,
    /// The maximum length of an event's joined data in bytes.
    pub event_bytes: usize,
    /// The maximum number of choices of the completion.
    pub choices: usize,
    /// The maximum number of tool calls of a choice, including a legacy function call.
    pub tool_calls: usize,
    /// The maximum number of bytes that a choice keeps: its text, and [`DELTA_COST`] for each delta. More than 4 GiB
    /// counts as 4 GiB.
    pub choice_bytes: u64,
    /// The maximum number of bytes that all choices keep together.
    pub completion_bytes: u64,
    /// The maximum nesting of a chunk's JSON. A chunk with deeper nesting is skipped with a warning.
    pub json_depth: usize,
    /// The maximum number of warnings that the completion keeps, and that each choice keeps. Further ones are only
    /// counted.
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
