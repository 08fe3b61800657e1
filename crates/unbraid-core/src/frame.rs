//! Bytes, however cut, become whole events.
//!
//! The [`Framer`] does no I/O: it is given each read as it comes and lends out one [`Frame`] at a time. A body is
//! read as an event stream by the rules of the WHATWG HTML standard (9.2.6), with the few liberties that real
//! servers need, or, when its first byte says so, as JSON lines or one JSON array. The same bytes give the same
//! frames and the same error at every cut into reads.

use std::fmt;

mod buffer;
mod known;
mod line;
mod ndjson;
mod sse;
mod value;

use memchr::{memchr, memchr2};

use line::Lines;
use ndjson::Json;
use sse::Sse;

/// Cuts a body into frames.
///
/// An event whose data is one line and lies whole within one read is lent out of that read; what is cut by the end
/// of a read is kept, and no byte of it is looked at twice.
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
/// A line over the limit ends the framer:
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
pub struct Framer {
    lines: Lines,
    sse: Sse,
    json: Json,
    mode: Mode,
    /// Bytes of a byte order mark matched so far; all of them, too, when it is known that none (more) will come.
    bom: usize,
    strict: bool,
    /// `finish` was called: no more input is taken.
    finishing: bool,
    ended: bool,
}

impl Framer {
    /// Starts at the first byte of a body.
    ///
    /// `strict` takes a body of `data:` lines, comments and blank lines only: any other line is an error, and so is
    /// JSON without `data:`.
    pub fn new(limits: FrameLimits, strict: bool) -> Self {
        Self {
            lines: Lines::new(limits.line),
            sse: Sse::new(limits.event, strict),
            json: Json::new(limits.event),
            mode: Mode::Undecided,
            bom: 0,
            strict,
            finishing: false,
            ended: false,
        }
    }

    /// Takes the next frame out of `input`, advancing it.
    ///
    /// None when `input` is used up; what of it belongs to an unfinished frame is kept. A blank line that ends with
    /// CR gives its frame at once: a LF that follows, in this read or the next, belongs to it.
    ///
    /// # Errors
    ///
    /// The first error is the last item: after it, and after [`finish`](Self::finish), this gives None and drops
    /// its input.
    #[must_use]
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Option<Result<Frame<'s>, FrameError>> {
        if self.ended || self.finishing {
            self.lines.advance(input, input.len());
            return None;
        }
        let cut = self.cut(input).transpose()?;
        Some(self.lend(cut))
    }

    /// Ends the body and gives what it left unfinished; call it until it gives None.
    ///
    /// That is one frame, or two where the last line shows that the data before it stands for itself (S10).
    ///
    /// # Errors
    ///
    /// The bytes after the last line end are a line like any other, so all but `NotSse` can still come.
    #[must_use]
    pub fn finish(&mut self) -> Option<Result<Frame<'_>, FrameError>> {
        if self.ended {
            return None;
        }
        self.finishing = true;
        let cut = self.last_cut().transpose();
        self.ended = cut.is_none();
        Some(self.lend(cut?))
    }

    /// How many bytes were taken so far.
    pub fn bytes(&self) -> u64 {
        self.lines.taken()
    }

    /// How many bytes of the event under way are kept, since the reads so far did not bring its end.
    ///
    /// Such an event takes time in proportion when its end comes.
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        self.lines.kept().len() + self.sse.buffered_bytes()
    }

    /// Whether the event under way may end within these bytes; if not, they are only kept.
    pub fn may_end(&self, input: &[u8]) -> bool {
        let json = self.mode != Mode::Sse && memchr(b'}', input).is_some();
        json || self.sse.has_line_left() || memchr2(b'\n', b'\r', input).is_some()
    }

    /// Takes back what was lent, if it is large: the next call may be far off.
    pub(crate) fn release(&mut self) {
        self.sse.release();
    }

    /// Whether any field of an event stream (`data`, `event`, `id`, `retry`) or a comment was seen.
    ///
    /// A body that ends without one was no event stream.
    pub fn seen_field(&self) -> bool {
        self.sse.seen_field()
    }

    /// What the body is read as.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn cut<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Cut<'i>>, FrameError> {
        if self.mode == Mode::Undecided {
            self.decide(input)?;
        }
        if self.mode == Mode::Json {
            match self.json.cut(&mut self.lines, input)? {
                ndjson::Step::More => return Ok(None),
                ndjson::Step::Cut(cut) => return Ok(Some(cut)),
                ndjson::Step::Field(line) => {
                    self.mode = Mode::Sse;
                    self.sse.store(line, &mut self.lines)?;
                }
            }
        }
        match self.mode {
            Mode::Undecided | Mode::Json => Ok(None),
            Mode::Sse => self.sse.cut(&mut self.lines, input),
        }
    }

    /// Reads up to the first byte that is neither mark nor white space, which tells how to read the rest.
    fn decide(&mut self, input: &mut &[u8]) -> Result<(), FrameError> {
        if !self.skip_bom(input)? {
            return Ok(());
        }
        while self.mode == Mode::Undecided {
            self.lines.skip_lf(input);
            match input.first() {
                None => break,
                // They are part of the first line if that turns out to be a field.
                Some(b' ' | b'\t') => self.lines.keep(input, 1)?,
                Some(b'\r' | b'\n') => {
                    if let Some(line) = self.lines.next(input)? {
                        self.sse.store(line, &mut self.lines)?;
                    }
                }
                Some(b'{' | b'[') if self.strict => {
                    let offset = self.lines.taken();
                    return Err(FrameError::NotSse { offset });
                }
                Some(b'{' | b'[') => {
                    self.lines.forget();
                    self.mode = Mode::Json;
                }
                Some(_) => self.mode = Mode::Sse,
            }
        }
        Ok(())
    }

    /// Drops a byte order mark at the start of the body; false while more bytes are needed to know it.
    fn skip_bom(&mut self, input: &mut &[u8]) -> Result<bool, FrameError> {
        while let Some(expected) = BOM.get(self.bom) {
            match input.first() {
                None => return Ok(false),
                Some(byte) if byte == expected => {
                    self.bom += 1;
                    self.lines.advance(input, 1);
                }
                Some(_) => self.give_back_bom()?,
            }
        }
        Ok(true)
    }

    /// Makes the bytes of a broken byte order mark what they are: the first bytes of a line.
    fn give_back_bom(&mut self) -> Result<(), FrameError> {
        let matched = std::mem::replace(&mut self.bom, BOM.len());
        if (1..BOM.len()).contains(&matched) {
            self.mode = Mode::Sse;
            self.lines
                .open_with(BOM.get(..matched).unwrap_or_default())?;
        }
        Ok(())
    }

    fn last_cut(&mut self) -> Result<Option<Cut<'static>>, FrameError> {
        self.give_back_bom()?;
        if self.mode == Mode::Json {
            match self.json.last(&mut self.lines) {
                ndjson::Step::More => return Ok(None),
                ndjson::Step::Cut(cut) => return Ok(Some(cut)),
                ndjson::Step::Field(_) => self.mode = Mode::Sse,
            }
        }
        self.sse.last(&mut self.lines)
    }

    fn lend<'s, 'i: 's>(
        &'s mut self,
        cut: Result<Cut<'i>, FrameError>,
    ) -> Result<Frame<'s>, FrameError> {
        let cut = cut.inspect_err(|_| self.ended = true)?;
        Ok(Frame {
            kind: cut.kind,
            event: Some(self.resolve(cut.event)).filter(|name| !name.is_empty()),
            data: self.resolve(cut.data),
            offset: cut.offset,
        })
    }

    fn resolve<'s, 'i: 's>(&'s self, part: Part<'i>) -> &'s [u8] {
        match part {
            Part::Read(bytes) => bytes,
            Part::Kept => self.lines.kept(),
            Part::Name => self.sse.name(),
            Part::Data => self.sse.data(),
        }
    }
}

/// Tells how far the framer is, and nothing of what it holds.
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("mode", &self.mode)
            .field("bytes", &self.bytes())
            .field("seen_field", &self.seen_field())
            .field("strict", &self.strict)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// What may not be exceeded while framing.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FrameLimits {
    /// Bytes of one line, without its end.
    pub line: usize,
    /// Bytes of the joined data of one event, and of one JSON value.
    pub event: usize,
}

impl FrameLimits {
    /// Limits on the bytes of a line and of an event.
    #[must_use]
    pub fn new(line: usize, event: usize) -> Self {
        Self { line, event }
    }
}

/// One event, lent until the next call; its `Debug` tells how long the data is, and none of it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// How it was cut out.
    pub kind: FrameKind,
    /// The event's name, if it has one that is not empty.
    pub event: Option<&'a [u8]>,
    /// Its data lines, joined by LF. The bytes are not checked to be UTF-8.
    pub data: &'a [u8],
    /// Where in the body its first line starts: the first field of the event, or the value's first byte.
    pub offset: u64,
}

impl<'a> Frame<'a> {
    /// A nameless event.
    #[must_use]
    pub fn of_data(data: &'a [u8], offset: u64) -> Self {
        Self {
            kind: FrameKind::Event,
            event: None,
            data,
            offset,
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

/// How one frame was cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameKind {
    /// An event with at least one data line; the data may be empty.
    Event,
    /// A part of an event whose data lines, joined, are no JSON value (S10): a value that ends with its line, or what is
    /// none.
    ///
    /// It is given as soon as that is known, so that a server which leaves out the blank lines is read as it writes. The
    /// name of the event is that of its first part.
    Line,
    /// A line `[DONE]` that is no field, and before which the event has no data. White space around it is dropped.
    BareDone,
    /// One object of a body that is JSON lines or a JSON array.
    Json,
    /// A line of such a body, or the rest of one, that is no object.
    Garbage,
    /// The event, part of one, or object that the end of the body cut off, as far as it came.
    ///
    /// It may well be complete but for the blank line; whoever reads the data can tell.
    Truncated,
}

/// What a body is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing but white space came so far.
    Undecided,
    /// An event stream.
    Sse,
    /// JSON lines or a JSON array.
    Json,
}

/// Why a body cannot be cut into frames any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A line is longer than allowed.
    #[error("line at byte {offset} is longer than {limit} bytes")]
    LineTooLong {
        /// Where the line starts.
        offset: u64,
        /// The limit on a line.
        limit: usize,
    },
    /// The data of an event, or one JSON value, is longer than allowed.
    #[error("event at byte {offset} holds more than {limit} bytes")]
    EventTooLong {
        /// Where the event starts.
        offset: u64,
        /// The limit on an event.
        limit: usize,
    },
    /// Strict: a line is neither blank, a comment nor `data:`.
    #[error("line at byte {offset} does not start with `data:`")]
    NotData {
        /// Where the line starts.
        offset: u64,
    },
    /// Strict: the body is JSON, not an event stream.
    #[error("body is no event stream: JSON starts at byte {offset}")]
    NotSse {
        /// Where the JSON starts.
        offset: u64,
    },
}

/// A frame before it borrows from the framer.
struct Cut<'i> {
    kind: FrameKind,
    event: Part<'i>,
    data: Part<'i>,
    offset: u64,
}

impl<'i> Cut<'i> {
    fn nameless(kind: FrameKind, data: Part<'i>, offset: u64) -> Self {
        let event = Part::Read(b"");
        Self {
            kind,
            event,
            data,
            offset,
        }
    }

    fn bare_done(offset: u64) -> Self {
        Self::nameless(FrameKind::BareDone, Part::Read(DONE), offset)
    }
}

/// Where the bytes of a cut lie.
#[derive(Clone, Copy)]
enum Part<'i> {
    /// In the read itself.
    Read(&'i [u8]),
    /// In the buffer of what reads cut in two.
    Kept,
    /// In the buffer of the event's name.
    Name,
    /// In the buffer of the event's joined data.
    Data,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";
const DONE: &[u8] = b"[DONE]";

#[cfg(test)]
mod tests;
