//! Splits the binary messages of `application/vnd.amazon.eventstream` (B01 to B06).
//!
//! A message is a prelude (its total length, the length of its headers, and the CRC32 of both), headers, a payload, and
//! the CRC32 of everything before. All numbers are big-endian. After a wrong checksum the start of the next message is
//! unknown, so it is an error.

mod headers;

use std::ops::Range;

use super::{
    FrameError, FrameKind, Part, RawFrame,
    buffer::{append, clear},
    line::Lines,
};
use headers::Headers;

/// The state between two reads of a body of messages.
pub(super) struct Messages {
    /// The received part of the current message.
    kept: Vec<u8>,
    /// The length of the current message, once its prelude was read; 0 before.
    total: usize,
    /// The offset of the current message.
    start: u64,
    /// Whether `kept` was lent out as a frame.
    is_lent: bool,
    limit: usize,
}

/// Whether a body begins with the prelude of a message.
pub(super) enum Prelude {
    /// More bytes are needed.
    Incomplete,
    Found,
    Other,
}

/// The total length, the length of the headers, and a CRC32.
const PRELUDE_BYTES: usize = 12;
/// The prelude and the CRC32 at the end.
const FRAMING_BYTES: usize = PRELUDE_BYTES + 4;
/// The limit of the specification on the headers of a message.
const MAX_HEADER_BYTES: usize = 128 * 1024;

impl Messages {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            total: 0,
            start: 0,
            is_lent: false,
            limit,
        }
    }

    /// Decides by the first bytes of the body whether it consists of messages (D01).
    ///
    /// Only a message begins with a zero, because it is shorter than 16 MiB and text has none. If messages are expected, any
    /// byte that is not text will do, so that wrong lengths are reported as such.
    pub(super) fn detect(
        &mut self,
        expected: bool,
        lines: &mut Lines,
        input: &mut &[u8],
    ) -> Prelude {
        loop {
            if expected && self.kept.first().is_some_and(|byte| !is_text(*byte)) {
                return Prelude::Found;
            }
            if !may_be_prelude(&self.kept) {
                return Prelude::Other;
            }
            if self.kept.len() == PRELUDE_BYTES {
                return Prelude::Found;
            }
            let Some(byte) = input.first() else {
                return Prelude::Incomplete;
            };
            // The first byte of text stays in the input.
            if self.kept.is_empty() && *byte != 0 && (!expected || is_text(*byte)) {
                return Prelude::Other;
            }
            self.kept.push(*byte);
            lines.advance(input, 1);
        }
    }

    /// The bytes that might have been a prelude.
    pub(super) fn take_prelude(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    /// How many bytes of the current message are kept.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.kept.len()
    }

    /// Whether the current message may end within these bytes.
    pub(super) fn may_end(&self, input: &[u8]) -> bool {
        self.is_lent || self.kept.len() + input.len() >= self.total.max(FRAMING_BYTES)
    }

    /// Returns the next message; `None` when the read is used up.
    pub(super) fn next_raw<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<Option<RawFrame<'i>>, FrameError> {
        self.release();
        if self.kept.is_empty() {
            self.start = lines.consumed();
        }
        if self.total == 0 {
            if !self.fill(PRELUDE_BYTES, lines, input) && input.is_empty() {
                return Ok(None);
            }
            let prelude = if self.kept.is_empty() {
                *input
            } else {
                self.kept.as_slice()
            };
            self.total = self.length(prelude)?;
        }
        if let Some(message) = input.get(..self.total).filter(|_| self.kept.is_empty()) {
            let headers = self.headers(message)?;
            lines.advance(input, self.total);
            self.total = 0;
            let part = |range| Part::Read(message.get(range).unwrap_or_default());
            return Ok(Some(raw_frame(&headers, self.start, part)));
        }
        if !self.fill(self.total, lines, input) && self.kept.len() < self.total {
            return Ok(None);
        }
        let headers = self.headers(&self.kept)?;
        self.is_lent = true;
        Ok(Some(raw_frame(&headers, self.start, kept_part)))
    }

    /// Returns the start of a message that the end of the body cut off.
    pub(super) fn last(&mut self) -> Option<RawFrame<'static>> {
        self.release();
        if self.kept.is_empty() {
            return None;
        }
        self.is_lent = true;
        let data = kept_part(0..self.kept.len());
        let kind = FrameKind::TruncatedMessage;
        Some(RawFrame::without_name(kind, data, self.start))
    }

    /// A part of the current message.
    pub(super) fn part(&self, start: usize, end: usize) -> &[u8] {
        self.kept.get(start..end).unwrap_or_default()
    }

    fn release(&mut self) {
        if self.is_lent {
            self.is_lent = false;
            self.total = 0;
            clear(&mut self.kept);
        }
    }

    /// Keeps bytes until there are `needed`; false if none are kept because the read has all of them, or too few.
    fn fill(&mut self, needed: usize, lines: &mut Lines, input: &mut &[u8]) -> bool {
        let missing = needed.saturating_sub(self.kept.len());
        if self.kept.is_empty() && input.len() >= needed {
            return false;
        }
        let taken = missing.min(input.len());
        append(
            &mut self.kept,
            input.get(..taken).unwrap_or_default(),
            self.limit,
        );
        lines.advance(input, taken);
        self.kept.len() >= needed
    }

    /// The length of a message by its prelude, which is checked before anything is allocated (B02).
    fn length(&self, prelude: &[u8]) -> Result<usize, FrameError> {
        let offset = self.start;
        let head = prelude.get(..8).unwrap_or_default();
        let (Some(total), Some(headers), Some(checksum)) =
            (number(prelude, 0), number(prelude, 4), number(prelude, 8))
        else {
            return Err(FrameError::InvalidMessage { offset });
        };
        if crc32fast::hash(head) != checksum {
            return Err(FrameError::Checksum { offset });
        }
        let (total, headers) = (total as usize, headers as usize);
        if total < FRAMING_BYTES || headers > total - FRAMING_BYTES || headers > MAX_HEADER_BYTES {
            return Err(FrameError::InvalidMessage { offset });
        }
        let limit = self.limit;
        if total - headers > limit.saturating_add(FRAMING_BYTES) {
            return Err(FrameError::EventTooLong { offset, limit });
        }
        Ok(total)
    }

    /// The headers of a complete message whose checksum is right.
    fn headers(&self, message: &[u8]) -> Result<Headers, FrameError> {
        let offset = self.start;
        let invalid = FrameError::InvalidMessage { offset };
        let end = message.len().saturating_sub(4);
        let checksum = number(message, end).ok_or(invalid)?;
        if crc32fast::hash(message.get(..end).unwrap_or_default()) != checksum {
            return Err(FrameError::Checksum { offset });
        }
        let length = number(message, 4).ok_or(invalid)? as usize;
        Headers::read(message, PRELUDE_BYTES..PRELUDE_BYTES + length, end).ok_or(invalid)
    }
}

/// The frame of a message. `part` gives the bytes of a range.
fn raw_frame<'i>(
    headers: &Headers,
    offset: u64,
    part: impl Fn(Range<usize>) -> Part<'i>,
) -> RawFrame<'i> {
    RawFrame {
        kind: if headers.is_error {
            FrameKind::Exception
        } else {
            FrameKind::Message
        },
        event: part(headers.name.clone()),
        data: part(headers.data.clone()),
        offset,
        is_later_part: false,
    }
}

fn kept_part(range: Range<usize>) -> Part<'static> {
    Part::Message {
        start: range.start,
        end: range.end,
    }
}

/// Whether bytes can be the start of a prelude: of a message shorter than 16 MiB, with headers shorter than 192 KiB and than
/// the message.
fn may_be_prelude(bytes: &[u8]) -> bool {
    let small = |at: usize, max: u8| bytes.get(at).is_none_or(|byte| *byte <= max);
    let lengths = number(bytes, 0).zip(number(bytes, 4));
    let fits = lengths.is_none_or(|(total, headers)| {
        total as usize >= FRAMING_BYTES && headers as usize <= total as usize - FRAMING_BYTES
    });
    small(0, 0) && small(4, 0) && small(5, 2) && fits
}

/// Whether a body of text can begin with this byte: a byte order mark, white space, or a printable character.
fn is_text(byte: u8) -> bool {
    matches!(byte, 0xEF | b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// The big-endian number at an offset.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests;
