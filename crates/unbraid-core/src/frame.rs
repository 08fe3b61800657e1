//! Splits the bytes of a body into events, however the reads split them.
//!
//! The [`Framer`] does no I/O. It is given each read and lends out one [`Frame`] at a time. A body is read as an event
//! stream by the rules of the WHATWG HTML standard (section 9.2.6), with the few exceptions that real servers need. If
//! its first byte is a bracket or brace, it is read as JSON lines or a JSON array, and if it begins with the lengths of
//! a binary message, as such messages. The same bytes give the same frames and the same error, whatever the reads.

use std::fmt;

mod buffer;
mod error;
mod item;
mod line;
mod messages;
mod ndjson;
mod peek;
mod raw;
mod sse;
mod value;

use memchr::{memchr, memchr2};

pub use error::FrameError;
pub(crate) use item::LineLeft;
pub use item::{Frame, FrameKind, FrameLimits, Mode};
use line::Lines;
use messages::{Messages, Prelude};
use ndjson::{Json, JsonStep};
use raw::{Part, RawFrame};
use sse::Sse;

use crate::prefetch::prefetch;

/// Splits a body into frames.
///
/// An event with one line of data that is complete within one read is borrowed from that read. Bytes that the end of a
/// read cuts off are kept, and no byte is scanned twice.
///
/// # Examples
///
/// ```
/// use unbraid_core::internal::{FrameLimits, Framer};
///
/// let mut framer = Framer::new(FrameLimits::new(1024, 1024), false);
/// let mut seen = Vec::new();
/// for mut read in [&b"data: {\"a\""[..], b":1}\n\ndata: [DO", b"NE]\n\n"] {
///     while let Some(frame) = framer.next(&mut read) {
///         seen.push(frame?.data.to_vec());
///     }
/// }
/// assert!(framer.finish().is_none());
/// assert_eq!(seen, [&b"{\"a\":1}"[..], b"[DONE]"]);
/// # Ok::<(), unbraid_core::internal::FrameError>(())
/// ```
///
/// A line that exceeds the limit ends the framer:
///
/// ```
/// use unbraid_core::internal::{FrameError, FrameLimits, Framer};
///
/// let mut framer = Framer::new(FrameLimits::new(8, 8), false);
/// let mut read = &b"data: too long\n\n"[..];
/// let error = framer.next(&mut read).and_then(Result::err);
/// assert_eq!(error, Some(FrameError::LineTooLong { offset: 0, limit: 8 }));
/// assert!(framer.next(&mut read).is_none());
/// ```
// What an event of one line needs comes first, as in `Router`.
#[repr(C)]
pub struct Framer {
    mode: Mode,
    /// Whether `finish` was called, so that no more input is accepted.
    is_finishing: bool,
    has_ended: bool,
    strict: bool,
    /// The format of the dialect, if that is known: it decides for a body whose start looks like no other.
    expected: Mode,
    lines: Lines,
    sse: Sse,
    json: Json,
    messages: Messages,
    /// How many bytes of a byte order mark were matched. It is the full length once the start of the body is passed.
    bom_matched: usize,
    /// Whether the body ended inside an event of which no data has arrived.
    ends_inside: bool,
}

impl Framer {
    /// Creates a framer at the start of a body.
    ///
    /// With `strict`, the body may contain only `data:` lines, comments and blank lines. Any other line is an error,
    /// and so is JSON without `data:`.
    pub fn new(limits: FrameLimits, strict: bool) -> Self {
        Self {
            lines: Lines::new(limits.line),
            sse: Sse::new(limits.event, strict),
            json: Json::new(limits.event),
            messages: Messages::new(limits.event),
            expected: Mode::Undecided,
            mode: Mode::Undecided,
            bom_matched: 0,
            ends_inside: false,
            strict,
            is_finishing: false,
            has_ended: false,
        }
    }

    /// Sets the format that the dialect has (D05).
    ///
    /// Binary messages are expected unless the body begins with text. JSON lines may begin with a line that is not JSON (O09),
    /// unless it is a field of an event stream.
    pub(crate) fn expect(mut self, expected: Mode) -> Self {
        self.expected = expected;
        self
    }

    /// Loads what the next event most likely needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self.bytes() + self.bom_matched as u64);
        self.sse.prefetch();
    }

    /// Returns the next frame of `input`, and advances `input` past it.
    ///
    /// Returns `None` when `input` is used up; bytes of an unfinished frame are kept. A blank line that ends with CR
    /// ends its frame at once. An LF after it, in this read or the next one, is part of the same line end.
    ///
    /// # Errors
    ///
    /// The first error is the last item. After it, and after [`finish`](Self::finish), this returns `None` and drops
    /// its input.
    #[must_use]
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Option<Result<Frame<'s>, FrameError>> {
        if self.has_ended || self.is_finishing {
            self.lines.advance(input, input.len());
            return None;
        }
        let raw = self.next_raw(input).transpose()?;
        Some(self.resolve_frame(raw))
    }

    /// Ends the body and returns what is left in it. Call it until it returns `None`.
    ///
    /// That is one frame, or two if the last line shows that the data before it is a frame of its own (S10).
    ///
    /// # Errors
    ///
    /// The bytes after the last line end count as a line, so every error except `NotSse` is possible.
    #[must_use]
    pub fn finish(&mut self) -> Option<Result<Frame<'_>, FrameError>> {
        if self.has_ended {
            return None;
        }
        let is_first = !std::mem::replace(&mut self.is_finishing, true);
        let begins = is_first && self.begins_event();
        let raw = self.last_raw().transpose();
        self.has_ended = raw.is_none();
        self.ends_inside = begins && raw.is_none();
        Some(self.resolve_frame(raw?))
    }

    /// Returns whether the end of the body has cut an event of which no data has arrived, so that [`finish`](Self::finish) has
    /// not returned it: its first line, or what follows a comma in a JSON array.
    pub fn ends_inside(&self) -> bool {
        self.ends_inside
    }

    /// Whether what follows the last event begins another one.
    fn begins_event(&self) -> bool {
        match self.mode {
            Mode::Json => self.json.is_after_comma(),
            Mode::Sse => self.lines.kept().first().is_some_and(|byte| *byte != b':'),
            Mode::Undecided | Mode::Messages => false,
        }
    }

    /// Returns how many bytes were consumed so far.
    pub fn bytes(&self) -> u64 {
        self.lines.consumed()
    }

    /// Returns how many bytes of the current event are kept, because its end is in a later read.
    ///
    /// Decoding such an event takes time in proportion once its end is received.
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        if self.mode == Mode::Messages {
            return self.lines.kept().len() + self.messages.buffered_bytes();
        }
        self.lines.kept().len() + self.sse.buffered_bytes()
    }

    /// Returns whether the current event may end within these bytes. If not, they are only kept.
    pub fn may_end(&self, input: &[u8]) -> bool {
        if self.mode == Mode::Messages {
            return self.messages.may_end(input);
        }
        let may_end_value = self.mode != Mode::Sse
            && (memchr(b'}', input).is_some() || self.json.is_at_line_start());
        may_end_value || self.sse.line_left().is_some() || memchr2(b'\n', b'\r', input).is_some()
    }

    /// The complete line that has to be read again.
    pub(crate) fn line_left(&self) -> Option<LineLeft> {
        let start = self.sse.line_left()?;
        Some(LineLeft {
            length: self.lines.kept().len(),
            consumed: usize::try_from(self.lines.consumed() - start).unwrap_or(usize::MAX),
        })
    }

    /// Drops the LF of the last line's end if its CR was in an earlier read.
    pub(crate) fn skip_lf(&mut self, input: &mut &[u8]) {
        self.lines.skip_lf(input);
    }

    /// Whether no frame follows without further bytes. It ends the borrow of a lent event.
    #[inline]
    pub(crate) fn is_used_up(&mut self, input: &[u8]) -> bool {
        input.is_empty() && self.mode == Mode::Sse && self.sse.is_used_up()
    }

    /// Frees a large buffer that was lent out, because the next call may be much later.
    pub(crate) fn release(&mut self) {
        self.sse.release();
    }

    /// Returns whether any field of an event stream (`data`, `event`, `id`, `retry`) or a comment was seen.
    ///
    /// A body that ends without one is not an event stream.
    pub fn seen_field(&self) -> bool {
        self.sse.seen_field()
    }

    /// Returns the format in which the body is read.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn next_raw<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<RawFrame<'i>>, FrameError> {
        if self.mode == Mode::Undecided {
            self.detect_mode(input)?;
        }
        if self.mode == Mode::Json {
            match self.json.next_raw(&mut self.lines, input)? {
                JsonStep::More => return Ok(None),
                JsonStep::Frame(raw) => return Ok(Some(raw)),
                JsonStep::Field(line) => {
                    self.mode = Mode::Sse;
                    self.sse.store_line(line, &mut self.lines)?;
                }
            }
        }
        match self.mode {
            Mode::Undecided | Mode::Json => Ok(None),
            Mode::Messages => self.messages.next_raw(&mut self.lines, input),
            Mode::Sse => self.sse.next_raw(&mut self.lines, input),
        }
    }

    /// Reads up to the first byte that is not part of a byte order mark or white space, which decides the format.
    fn detect_mode(&mut self, input: &mut &[u8]) -> Result<(), FrameError> {
        if !self.detect_messages(input)? || !self.skip_bom(input)? {
            return Ok(());
        }
        while self.mode == Mode::Undecided {
            self.lines.skip_lf(input);
            match input.first() {
                None => break,
                // Leading white space is part of the first line if that line is a field.
                Some(b' ' | b'\t') => self.lines.keep(input, 1)?,
                Some(b'\r' | b'\n') => {
                    if let Some(line) = self.lines.next(input)? {
                        self.sse.store_line(line, &mut self.lines)?;
                    }
                }
                Some(b'{' | b'[') if self.strict => {
                    let offset = self.lines.consumed();
                    return Err(FrameError::NotSse { offset });
                }
                Some(b'{' | b'[') => {
                    self.lines.clear_kept();
                    self.mode = Mode::Json;
                }
                Some(_) if self.expected == Mode::Json => {
                    self.json.begin_line(&self.lines);
                    self.mode = Mode::Json;
                }
                Some(_) => self.mode = Mode::Sse,
            }
        }
        Ok(())
    }

    /// Recognizes binary messages at the start of the body (D01); false if more bytes are needed, or if it is decided.
    fn detect_messages(&mut self, input: &mut &[u8]) -> Result<bool, FrameError> {
        if self.lines.consumed() > 0 && self.messages.buffered_bytes() == 0 {
            return Ok(true);
        }
        let expected = self.expected == Mode::Messages;
        match self.messages.detect(expected, &mut self.lines, input) {
            Prelude::Incomplete => Ok(false),
            Prelude::Found if self.strict => Err(FrameError::NotSse { offset: 0 }),
            Prelude::Found => {
                self.mode = Mode::Messages;
                Ok(false)
            }
            Prelude::Other => {
                self.restore_prelude()?;
                Ok(self.mode == Mode::Undecided)
            }
        }
    }

    /// Restores the bytes that might have been a prelude. They are too few for a complete event.
    fn restore_prelude(&mut self) -> Result<(), FrameError> {
        let prelude = self.messages.take_prelude();
        let mut bytes = prelude.as_slice();
        if bytes.is_empty() {
            return Ok(());
        }
        self.mode = Mode::Sse; // no other body begins with a zero
        self.bom_matched = BOM.len();
        self.lines.rewind(bytes.len());
        let result = self.restore_lines(&mut bytes);
        let rest = bytes.len();
        self.lines.advance(&mut bytes, rest); // after an error
        result
    }

    fn restore_lines(&mut self, bytes: &mut &[u8]) -> Result<(), FrameError> {
        while let Some(line) = self.lines.next(bytes)? {
            self.sse.store_line(line, &mut self.lines)?;
        }
        Ok(())
    }

    /// Drops a byte order mark at the start of the body; false if more bytes are needed to recognize one.
    fn skip_bom(&mut self, input: &mut &[u8]) -> Result<bool, FrameError> {
        while let Some(expected) = BOM.get(self.bom_matched) {
            match input.first() {
                None => return Ok(false),
                Some(byte) if byte == expected => {
                    self.bom_matched += 1;
                    self.lines.advance(input, 1);
                }
                Some(_) => self.restore_bom()?,
            }
        }
        Ok(true)
    }

    /// Restores the bytes of an incomplete byte order mark, which are the start of the first line.
    fn restore_bom(&mut self) -> Result<(), FrameError> {
        let matched = std::mem::replace(&mut self.bom_matched, BOM.len());
        if (1..BOM.len()).contains(&matched) {
            self.mode = Mode::Sse;
            self.lines
                .start_with(BOM.get(..matched).unwrap_or_default())?;
        }
        Ok(())
    }

    fn last_raw(&mut self) -> Result<Option<RawFrame<'static>>, FrameError> {
        if self.mode == Mode::Messages {
            return Ok(self.messages.last());
        }
        self.restore_prelude()?;
        self.restore_bom()?;
        if self.mode == Mode::Json {
            match self.json.last(&mut self.lines) {
                JsonStep::More => return Ok(None),
                JsonStep::Frame(raw) => return Ok(Some(raw)),
                JsonStep::Field(_) => self.mode = Mode::Sse,
            }
        }
        self.sse.last(&mut self.lines)
    }

    fn resolve_frame<'s, 'i: 's>(
        &'s mut self,
        raw: Result<RawFrame<'i>, FrameError>,
    ) -> Result<Frame<'s>, FrameError> {
        let raw = raw.inspect_err(|_| self.has_ended = true)?;
        Ok(Frame {
            kind: raw.kind,
            event: Some(self.resolve(raw.event)).filter(|name| !name.is_empty()),
            data: self.resolve(raw.data),
            offset: raw.offset,
            is_later_part: raw.is_later_part,
        })
    }

    fn resolve<'s, 'i: 's>(&'s self, part: Part<'i>) -> &'s [u8] {
        match part {
            Part::Read(bytes) => bytes,
            Part::Kept => self.lines.kept(),
            Part::Name => self.sse.name(),
            Part::Data => self.sse.data(),
            Part::Bare => self.sse.bare(),
            Part::Message { start, end } => self.messages.part(start, end),
        }
    }
}

/// Shows the framer's progress, and none of its data.
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("mode", &self.mode)
            .field("bytes", &self.bytes())
            .field("seen_field", &self.seen_field())
            .field("strict", &self.strict)
            .field("ended", &self.has_ended)
            .finish_non_exhaustive()
    }
}

const BOM: &[u8] = b"\xEF\xBB\xBF";
const DONE: &[u8] = b"[DONE]";

#[cfg(test)]
mod tests;
