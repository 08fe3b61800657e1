//! The errors of framing.

/// Why the framer refuses a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A line is too long.
    #[error("line at byte {offset} is longer than {limit} bytes")]
    LineTooLong {
        /// The offset of the line.
        offset: u64,
        /// The limit on a line.
        limit: usize,
    },
    /// The data of an event, or a JSON value, is too long.
    #[error("event at byte {offset} holds more than {limit} bytes")]
    EventTooLong {
        /// The offset of the event.
        offset: u64,
        /// The limit on an event.
        limit: usize,
    },
    /// In strict mode: a line is neither blank, a comment nor a `data:` line.
    #[error("line at byte {offset} does not start with `data:`")]
    NotData {
        /// The offset of the line.
        offset: u64,
    },
    /// In strict mode: the body is JSON, not an event stream.
    #[error("body is not an event stream: JSON starts at byte {offset}")]
    NotSse {
        /// The offset of the JSON.
        offset: u64,
    },
    /// A checksum of a binary message is wrong, so the start of the next one is unknown (B03, B04).
    #[error("checksum of the message at byte {offset} is wrong")]
    Checksum {
        /// The offset of the message.
        offset: u64,
    },
    /// The lengths or headers of a binary message contradict each other (B02).
    #[error("message at byte {offset} has invalid lengths or headers")]
    InvalidMessage {
        /// The offset of the message.
        offset: u64,
    },
}
