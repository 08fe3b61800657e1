//! What the framer takes and lends out: limits, frames, and how a frame was delimited.

use std::fmt;

/// A complete line that has to be read again.
pub(crate) struct LineLeft {
    /// Its length, without its end.
    pub(crate) length: usize,
    /// How many bytes were consumed from its start on.
    pub(crate) consumed: usize,
}

/// The limits of a framer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FrameLimits {
    /// The maximum length of a line in bytes, without its end.
    pub line: usize,
    /// The maximum length of the joined data of an event, and of a JSON value, in bytes.
    pub event: usize,
}

impl FrameLimits {
    /// Limits on the bytes of a line and of an event.
    #[must_use]
    pub fn new(line: usize, event: usize) -> Self {
        Self { line, event }
    }
}

/// One event, borrowed until the next call. Its `Debug` shows the length of the data, and none of it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// How the frame was delimited.
    pub kind: FrameKind,
    /// The event's name, if it is not empty.
    pub event: Option<&'a [u8]>,
    /// The data lines, joined by LF. They are not checked to be UTF-8.
    pub data: &'a [u8],
    /// The offset in the body of the event's first field, or of the JSON value.
    pub offset: u64,
    /// Whether an earlier frame was a part of the same event (S10), as far as blank lines show that.
    pub is_later_part: bool,
}

impl<'a> Frame<'a> {
    /// Creates an event without a name.
    #[must_use]
    pub fn of_data(data: &'a [u8], offset: u64) -> Self {
        Self {
            kind: FrameKind::Event,
            event: None,
            data,
            offset,
            is_later_part: false,
        }
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("kind", &self.kind)
            .field("event_bytes", &self.event.map(<[u8]>::len))
            .field("data_bytes", &self.data.len())
            .field("offset", &self.offset)
            .finish()
    }
}

/// How a frame was delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameKind {
    /// An event with at least one data line. The data may be empty.
    Event,
    /// A part of an event whose data lines together are not a JSON value (S10): a value that ends with its line, or
    /// data that is not a value.
    ///
    /// It is returned as soon as that is known, so that a server which omits the blank lines is read without delay.
    /// The event's name belongs to its first part.
    Line,
    /// A line `[DONE]` without a field name, if the event has no data before it. White space around it is dropped.
    BareDone,
    /// One object of a body that consists of JSON lines or a JSON array.
    Json,
    /// A line of such a body, or the rest of one, that is not an object.
    Garbage,
    /// The received part of an event, part or object that the end of the body cut off.
    ///
    /// It may be complete except for the blank line, which only its data can show.
    Truncated,
    /// Lines of an event stream without a field name that begin like JSON (G16). They are the last frame of the body.
    BareJson,
    /// The payload of a binary message (B01). The event's name is the message's `:event-type`.
    Message,
    /// A binary message that reports an error (B06). The event's name is its `:exception-type` or `:error-code`, and the
    /// data is its payload or `:error-message`.
    Exception,
    /// The start of a binary message that the end of the body cut off (B05).
    TruncatedMessage,
}

/// The format in which a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Only white space was received so far.
    Undecided,
    /// An event stream.
    Sse,
    /// JSON lines or a JSON array.
    Json,
    /// Binary messages: `application/vnd.amazon.eventstream`.
    Messages,
}
