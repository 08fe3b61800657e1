//! JSON lines, or one JSON array, become one frame for each object.

use memchr::{memchr2, memchr3};

use super::line::{Line, Lines};
use super::{Cut, FrameError, FrameKind, Part};

/// Where in a body of JSON the last read ended.
pub(super) struct Json {
    place: Place,
    /// Where the object under way starts.
    start: u64,
    depth: usize,
    text: Text,
    /// The last byte between objects ended a line.
    after_end: bool,
    /// The last byte between objects was `[`.
    after_bracket: bool,
    /// The object under way, or what is left of it, lies in [`Lines::kept`] and was handed out.
    lent: bool,
    limit: usize,
}

#[derive(Clone, Copy)]
enum Place {
    Between,
    Object,
    Garbage,
}

/// Where in an object: braces count only outside of strings.
#[derive(Clone, Copy)]
enum Text {
    Outside,
    Inside,
    Escaped,
}

/// What a read brought.
pub(super) enum Step<'i> {
    More,
    Cut(Cut<'i>),
    /// A field of an event stream: the JSON before it was a stray line, and the rest is events.
    Field(Line<'i>),
}

impl Json {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            place: Place::Between,
            start: 0,
            depth: 0,
            text: Text::Outside,
            after_end: false,
            after_bracket: false,
            lent: false,
            limit,
        }
    }

    /// Takes the next object or line of garbage out of the read.
    pub(super) fn cut<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, FrameError> {
        self.take_back(lines);
        if let Place::Between = self.place {
            self.skip_separators(lines, input);
        }
        match self.place {
            Place::Between => Ok(Step::More),
            Place::Object => self.object(lines, input),
            Place::Garbage => match lines.next(input)? {
                Some(line) => Ok(self.garbage(line, lines)),
                None => Ok(Step::More),
            },
        }
    }

    /// What the end of the body leaves.
    pub(super) fn last(&mut self, lines: &mut Lines) -> Step<'static> {
        self.take_back(lines);
        match (self.place, lines.last()) {
            (Place::Garbage, Some(line)) => self.garbage(line, lines),
            (Place::Object, _) => {
                self.place = Place::Between;
                self.lent = true;
                Step::Cut(Cut::nameless(FrameKind::Truncated, Part::Kept, self.start))
            }
            (Place::Between | Place::Garbage, _) => Step::More,
        }
    }

    fn take_back(&mut self, lines: &mut Lines) {
        if self.lent {
            self.lent = false;
            lines.forget();
        }
    }

    /// Passes white space, commas and the brackets of arrays; what stands between two objects is not checked.
    fn skip_separators(&mut self, lines: &mut Lines, input: &mut &[u8]) {
        let mut skipped = 0;
        for byte in input.iter() {
            match byte {
                b'\r' | b'\n' | b' ' | b'\t' | b',' | b'[' | b']' => {}
                b'{' => {
                    self.place = Place::Object;
                    break;
                }
                _ => {
                    self.place = Place::Garbage;
                    break;
                }
            }
            self.after_end = matches!(byte, b'\r' | b'\n');
            self.after_bracket = *byte == b'[';
            skipped += 1;
        }
        lines.advance(input, skipped);
        self.start = lines.taken();
    }

    fn object<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, FrameError> {
        let end = self.scan(input);
        let count = end.unwrap_or(input.len());
        if lines.kept().len() + count > self.limit {
            return Err(FrameError::EventTooLong {
                offset: self.start,
                limit: self.limit,
            });
        }
        let whole = input
            .get(..count)
            .filter(|_| end.is_some() && lines.kept().is_empty());
        match whole {
            Some(_) => lines.advance(input, count),
            None => lines.append(input, count, self.limit),
        }
        if end.is_none() {
            return Ok(Step::More);
        }
        let data = whole.map_or(Part::Kept, Part::Read);
        self.place = Place::Between;
        self.after_end = false;
        self.after_bracket = false;
        self.lent = true;
        Ok(Step::Cut(Cut::nameless(FrameKind::Json, data, self.start)))
    }

    /// Goes on where the last read ended, and says how many bytes of this one end the object.
    fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).filter(|rest| !rest.is_empty())?;
            let found = match self.text {
                Text::Outside => memchr3(b'"', b'{', b'}', rest)?,
                Text::Inside => memchr2(b'"', b'\\', rest)?,
                Text::Escaped => 0,
            };
            done += found + 1;
            self.text = match (self.text, rest.get(found)?) {
                (Text::Outside, b'"') | (Text::Escaped, _) => Text::Inside,
                (Text::Inside, b'\\') => Text::Escaped,
                (Text::Inside, _) => Text::Outside,
                (Text::Outside, b'{') => {
                    self.depth += 1;
                    Text::Outside
                }
                (Text::Outside, _) => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(done);
                    }
                    Text::Outside
                }
            };
        }
    }

    /// Tells what a line that starts with no object is.
    fn garbage<'i>(&mut self, line: Line<'i>, lines: &Lines) -> Step<'i> {
        let bytes = line.read.unwrap_or_else(|| lines.kept());
        let starts_line = std::mem::replace(&mut self.after_end, true);
        self.place = Place::Between;
        if starts_line && FIELDS.iter().any(|field| bytes.starts_with(field)) {
            return Step::Field(line);
        }
        self.lent = true;
        // The bracket was passed as that of an array.
        if std::mem::take(&mut self.after_bracket) && bytes.trim_ascii_end() == b"DONE]" {
            return Step::Cut(Cut::bare_done(line.at.saturating_sub(1)));
        }
        let data = line.read.map_or(Part::Kept, Part::Read);
        Step::Cut(Cut::nameless(FrameKind::Garbage, data, line.at))
    }
}

/// How the lines of an event stream start. The name alone, without its colon, would be too weak a sign.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
