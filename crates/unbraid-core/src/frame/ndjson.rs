//! Splits JSON lines, or one JSON array, into one frame for each object.
//!
//! A line that was cut does not take the lines after it with it: the start of another object in a new line ends it.

use memchr::memchr3;

use super::line::{Line, Lines};
use super::{FrameError, FrameKind, Part, RawFrame};

/// The state between two reads of a JSON body.
pub(super) struct Json {
    region: Region,
    /// The offset of the current object.
    start: u64,
    depth: usize,
    string: StringState,
    /// Whether the last byte between objects ended a line.
    after_line_end: bool,
    /// Whether the last byte between objects was `[`.
    after_bracket: bool,
    /// Whether the last separator was a comma.
    after_comma: bool,
    /// Whether the bytes in [`Lines::kept`] were lent out as a frame.
    is_lent: bool,
    /// The last byte of the object outside strings that is not white space.
    significant: u8,
    /// How much of the start of the next line has been matched inside the object, after a line end.
    line_start: LineStart,
    /// The start of the object that follows a broken line, which was read with that line.
    carry: &'static [u8],
    limit: usize,
}

/// The start of a line inside an object, which may show that the line before it was cut (O09).
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineStart {
    None,
    /// A line end.
    LineEnd,
    /// A brace after it.
    Brace,
}

/// The end of an object.
enum ObjectEnd {
    /// It ends before this byte of the read.
    At(usize),
    /// Another object starts in a new line, and its first two bytes end before this byte of the read.
    Broken(usize),
}

#[derive(Clone, Copy)]
enum Region {
    Between,
    Object,
    Garbage,
}

/// The position relative to strings, since braces count only outside them.
#[derive(Clone, Copy)]
enum StringState {
    Outside,
    Inside,
    Escaped,
}

/// The result of reading.
pub(super) enum JsonStep<'i> {
    More,
    Frame(RawFrame<'i>),
    /// A field of an event stream. The JSON before it was a stray line, and the rest of the body is an event stream.
    Field(Line<'i>),
}

impl Json {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            region: Region::Between,
            start: 0,
            depth: 0,
            string: StringState::Outside,
            after_line_end: false,
            after_bracket: false,
            after_comma: false,
            is_lent: false,
            significant: 0,
            line_start: LineStart::None,
            carry: b"",
            limit,
        }
    }

    /// Whether the last read ended at the start of a line inside an object, where the first bytes of another object end the
    /// current one (O09).
    pub(super) fn is_at_line_start(&self) -> bool {
        self.line_start != LineStart::None
    }

    /// Reads the body from a line that is not an object. What is kept is the start of that line.
    pub(super) fn begin_line(&mut self, lines: &Lines) {
        self.region = Region::Garbage;
        self.after_line_end = true;
        self.start = lines.consumed().saturating_sub(lines.kept().len() as u64);
    }

    /// Reads the next object, or a line that is not an object.
    pub(super) fn next_raw<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<JsonStep<'i>, FrameError> {
        self.release_kept(lines);
        if let Region::Between = self.region {
            self.skip_separators(lines, input);
        }
        match self.region {
            Region::Between => Ok(JsonStep::More),
            Region::Object => self.object(lines, input),
            Region::Garbage => match lines.next(input)? {
                Some(line) => Ok(self.garbage_line(line, lines)),
                None => Ok(JsonStep::More),
            },
        }
    }

    /// Whether a comma has announced another value of an array.
    pub(super) fn is_after_comma(&self) -> bool {
        self.after_comma && matches!(self.region, Region::Between)
    }

    /// Returns what is left at the end of the body.
    pub(super) fn last(&mut self, lines: &mut Lines) -> JsonStep<'static> {
        self.release_kept(lines);
        match (self.region, lines.last()) {
            (Region::Garbage, Some(line)) => self.garbage_line(line, lines),
            (Region::Object, _) => {
                self.region = Region::Between;
                self.is_lent = true;
                JsonStep::Frame(RawFrame::without_name(
                    FrameKind::Truncated,
                    Part::Kept,
                    self.start,
                ))
            }
            (Region::Between | Region::Garbage, _) => JsonStep::More,
        }
    }

    fn release_kept(&mut self, lines: &mut Lines) {
        if self.is_lent {
            self.is_lent = false;
            lines.clear_kept();
        }
        if !self.carry.is_empty() {
            let carry = std::mem::take(&mut self.carry);
            self.region = Region::Object;
            self.start = lines.consumed().saturating_sub(carry.len() as u64);
            self.depth = 1;
            self.string = StringState::Inside;
            lines.restore(carry);
        }
    }

    /// Skips white space, commas and the brackets of arrays. The order of these between two objects is not checked.
    fn skip_separators(&mut self, lines: &mut Lines, input: &mut &[u8]) {
        let mut skipped = 0;
        for byte in input.iter() {
            match byte {
                b'\r' | b'\n' | b' ' | b'\t' | b',' | b'[' | b']' => {}
                b'{' => {
                    self.region = Region::Object;
                    break;
                }
                _ => {
                    self.region = Region::Garbage;
                    break;
                }
            }
            self.after_line_end = matches!(byte, b'\r' | b'\n');
            self.after_bracket = *byte == b'[';
            self.after_comma = match byte {
                b',' => true,
                b'[' | b']' => false,
                _ => self.after_comma,
            };
            skipped += 1;
        }
        lines.advance(input, skipped);
        self.start = lines.consumed();
    }

    fn object<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<JsonStep<'i>, FrameError> {
        let found = self.find_object_end(input);
        let (end, is_broken) = match found {
            None => (None, false),
            Some(ObjectEnd::At(end)) => (Some(end), false),
            Some(ObjectEnd::Broken(end)) => (Some(end), true),
        };
        let count = end.unwrap_or(input.len());
        if lines.kept().len() + count > self.limit {
            return Err(FrameError::EventTooLong {
                offset: self.start,
                limit: self.limit,
            });
        }
        if is_broken {
            lines.append(input, count, self.limit);
            return Ok(JsonStep::Frame(self.broken_line(lines)));
        }
        let in_read = input
            .get(..count)
            .filter(|_| end.is_some() && lines.kept().is_empty());
        match in_read {
            Some(_) => lines.advance(input, count),
            None => lines.append(input, count, self.limit),
        }
        if end.is_none() {
            return Ok(JsonStep::More);
        }
        let data = in_read.map_or(Part::Kept, Part::Read);
        self.region = Region::Between;
        self.after_line_end = false;
        self.after_bracket = false;
        self.after_comma = false;
        self.is_lent = true;
        Ok(JsonStep::Frame(RawFrame::without_name(
            FrameKind::Json,
            data,
            self.start,
        )))
    }

    /// Lends out a line that was cut before its object ended. The object in the line after it is read next.
    fn broken_line<'i>(&mut self, lines: &mut Lines) -> RawFrame<'i> {
        self.carry = OBJECT_START;
        self.region = Region::Between;
        self.is_lent = true;
        self.after_line_end = true;
        lines.truncate_kept(OBJECT_START.len());
        RawFrame::without_name(FrameKind::Garbage, Part::Kept, self.start)
    }

    /// Continues at the end of the last read, and returns where in this one the object ends.
    fn find_object_end(&mut self, bytes: &[u8]) -> Option<ObjectEnd> {
        let mut scanned = 0;
        loop {
            let rest = bytes.get(scanned..).filter(|rest| !rest.is_empty())?;
            if self.line_start != LineStart::None
                && let Some(end) = self.match_line_start(rest)
            {
                return Some(ObjectEnd::Broken(scanned + end));
            }
            let special = match self.string {
                StringState::Outside => self.find_outside(rest),
                StringState::Inside => memchr3(b'"', b'\\', b'\n', rest),
                StringState::Escaped => Some(0),
            }?;
            scanned += special + 1;
            self.string = match (self.string, rest.get(special)?) {
                (StringState::Outside, b'"') => StringState::Inside,
                (StringState::Escaped, _) => StringState::Inside,
                (StringState::Inside, b'\\') => StringState::Escaped,
                (StringState::Inside, b'\n') => {
                    self.line_start = LineStart::LineEnd;
                    StringState::Inside
                }
                (StringState::Inside, _) => StringState::Outside,
                (StringState::Outside, b'{') => {
                    self.depth += 1;
                    StringState::Outside
                }
                (StringState::Outside, b'\n') => {
                    self.line_start = LineStart::LineEnd;
                    StringState::Outside
                }
                (StringState::Outside, _) => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(ObjectEnd::At(scanned));
                    }
                    StringState::Outside
                }
            };
        }
    }

    /// Finds the next byte that matters outside strings, and notes the last significant one before it.
    fn find_outside(&mut self, rest: &[u8]) -> Option<usize> {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'\n');
        let found = rest.iter().position(is_special);
        let before = rest.get(..found.map_or(rest.len(), |at| at + 1));
        let mut before = before.unwrap_or_default().iter().rev();
        if let Some(byte) = before.find(|byte| !byte.is_ascii_whitespace()) {
            self.significant = *byte;
        }
        found
    }

    /// Matches the start of an object at the start of a line inside the current object. Returns its length if the current
    /// object was cut: no string may contain a quote that is not escaped, and an object may only follow a colon, a comma or
    /// a bracket.
    fn match_line_start(&mut self, rest: &[u8]) -> Option<usize> {
        let is_inside = matches!(self.string, StringState::Inside);
        let may_follow = matches!(self.significant, b':' | b',' | b'[');
        let mut bytes = rest.iter().copied().enumerate();
        if self.line_start == LineStart::LineEnd {
            let (_, byte) = bytes.next()?;
            self.line_start = LineStart::None;
            if byte != b'{' || (!is_inside && may_follow) {
                return None;
            }
            self.line_start = LineStart::Brace;
            // The brace is read as a part of the object, too, until the next byte decides.
        }
        let (at, byte) = bytes.next()?;
        self.line_start = LineStart::None;
        (byte == b'"').then_some(at + 1)
    }

    /// Classifies a line that does not start with an object.
    fn garbage_line<'i>(&mut self, line: Line<'i>, lines: &Lines) -> JsonStep<'i> {
        let bytes = line.read.unwrap_or_else(|| lines.kept());
        let starts_line = std::mem::replace(&mut self.after_line_end, true);
        self.region = Region::Between;
        if starts_line && FIELD_PREFIXES.iter().any(|field| bytes.starts_with(field)) {
            return JsonStep::Field(line);
        }
        self.is_lent = true;
        // The bracket of `[DONE]` was skipped as that of an array.
        if std::mem::take(&mut self.after_bracket) && bytes.trim_ascii_end() == b"DONE]" {
            return JsonStep::Frame(RawFrame::bare_done(line.offset.saturating_sub(1)));
        }
        let data = line.read.map_or(Part::Kept, Part::Read);
        JsonStep::Frame(RawFrame::without_name(
            FrameKind::Garbage,
            data,
            line.offset,
        ))
    }
}

/// What shows that another object starts: a brace alone may be a part of a text.
const OBJECT_START: &[u8] = b"{\"";

/// The starts of lines in an event stream. A name without its colon would also match ordinary text.
const FIELD_PREFIXES: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
