//! Reads an ordinary chunk in one pass over its bytes, borrowing from the event.
//!
//! The scan gives the same chunk as the slower paths, for less: it reads each byte once and builds no intermediate
//! values. At anything unusual (an escape in a key, half a surrogate pair, a number that is not an integer) it returns
//! [`Fallback`]. So it may decline valid JSON, but it never accepts invalid JSON.

mod string;
mod values;

use std::{borrow::Cow, sync::Arc};

use super::fields::{Fallback, FieldVisitor, ValueReader};
use crate::{
    chunk::{Chunk, Element, Escapes, Pairs, recycled, recycled_elements},
    limits::{MAX_JSON_DEPTH, MAX_VALUES},
};

/// The chunk, if the event is an ordinary one or foreign JSON that is as simple.
pub(super) fn chunk<'a>(
    text: &'a str,
    depth: usize,
    reasoning_keys: &[Arc<str>],
    buffers: &mut Buffers,
) -> Option<Chunk<'a>> {
    let buffered = Chunk {
        elements: recycled_elements(std::mem::take(&mut buffers.elements)),
        extra: recycled(std::mem::take(&mut buffers.extra)),
        ..Chunk::default()
    };
    chunk_by(buffered, Scanner::new(text, depth, reasoning_keys))
}

/// Buffers of the last chunk, for the next one.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) elements: Vec<Element<'static>>,
    pub(super) extra: Pairs<'static>,
}

/// The same chunk, whose strings keep their escapes, so that each of them borrows from the text.
pub(super) fn escaped_chunk<'a>(
    text: &'a str,
    depth: usize,
    reasoning_keys: &[Arc<str>],
) -> Option<Chunk<'a>> {
    let mut scanner = Scanner::new(text, depth, reasoning_keys);
    scanner.keep_escapes = true;
    chunk_by(Chunk::default(), scanner)
}

fn chunk_by<'a>(mut chunk: Chunk<'a>, mut scanner: Scanner<'a, '_>) -> Option<Chunk<'a>> {
    let text = scanner.text;
    // The lenient decoder counts the values of longer events. A text of this length cannot have too many.
    if text.len() > MAX_VALUES {
        return None;
    }
    // Everything but an object is rare: end marks, keep-alives, and errors that are bare strings.
    if scanner.next_token() != Some(b'{') {
        return None;
    }
    let has_fields = scanner.fields(&mut chunk).ok()?;
    scanner.skip_whitespace();
    // Trailing bytes mean several values or damage, which `salvage` takes apart.
    if !has_fields || scanner.pos != text.len() {
        return None; // an empty object is a keep-alive
    }
    chunk.format = chunk.recognise();
    chunk.escapes = scanner.escapes;
    Some(chunk)
}

pub(super) struct Scanner<'a, 'k> {
    text: &'a str,
    pos: usize,
    /// Whether strings are returned with their escapes.
    keep_escapes: bool,
    escapes: Escapes,
    /// How many more arrays and objects may be nested here.
    remaining_depth: usize,
    /// The names of reasoning fields, by rank.
    reasoning_keys: &'k [Arc<str>],
}

impl<'a, 'k> Scanner<'a, 'k> {
    fn new(text: &'a str, depth: usize, reasoning_keys: &'k [Arc<str>]) -> Self {
        Self {
            text,
            pos: 0,
            keep_escapes: false,
            escapes: Escapes::default(),
            // The limit of `serde_json` applies as well, so that both accept the same nesting.
            remaining_depth: depth.min(MAX_JSON_DEPTH),
            reasoning_keys,
        }
    }

    /// A scanner of single values that lie inside of `outer_depth` arrays and objects.
    pub(super) fn of_values(text: &'a str, depth: usize, outer_depth: usize) -> Option<Self> {
        let mut scanner = Self::new(text, depth, &[]);
        scanner.remaining_depth = scanner.remaining_depth.checked_sub(outer_depth)?;
        Some(scanner)
    }

    /// Moves to a value, of which the text before it was matched.
    pub(super) fn seek(&mut self, offset: usize) {
        self.pos = offset;
    }
}

impl<'a> Scanner<'a, '_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    #[inline]
    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    /// Consumes white space and the byte after it.
    #[inline]
    fn next_token(&mut self) -> Option<u8> {
        self.skip_whitespace();
        let byte = self.peek()?;
        self.pos += 1;
        Some(byte)
    }

    fn enter(&mut self) -> Result<(), Fallback> {
        self.remaining_depth = self.remaining_depth.checked_sub(1).ok_or(Fallback)?;
        Ok(())
    }

    fn slice_from(&self, start: usize) -> Result<&'a str, Fallback> {
        self.text.get(start..self.pos).ok_or(Fallback)
    }

    /// Consumes a literal, of which the first letter was consumed.
    fn literal(&mut self, rest: &str) -> Result<(), Fallback> {
        let bytes = self.text.as_bytes().get(self.pos..).ok_or(Fallback)?;
        if !bytes.starts_with(rest.as_bytes()) {
            return Err(Fallback);
        }
        self.pos += rest.len();
        Ok(())
    }

    /// Reads the fields of an object, of which the brace was consumed; false if there are none.
    fn fields(&mut self, visitor: &mut impl FieldVisitor<'a>) -> Result<bool, Fallback> {
        self.enter()?;
        let mut next = self.next_token();
        let has_fields = next != Some(b'}');
        let mut more = has_fields;
        while more {
            if next != Some(b'"') {
                return Err(Fallback);
            }
            let key = Cow::Borrowed(self.unescaped_string()?); // servers do not escape the names of fields
            if self.next_token() != Some(b':') {
                return Err(Fallback);
            }
            visitor.visit_field(key, self)?;
            more = match self.next_token() {
                Some(b',') => true,
                Some(b'}') => false,
                _ => return Err(Fallback),
            };
            if more {
                next = self.next_token();
            }
        }
        // On an error the scanner is dropped, so the depth need not be restored there.
        self.remaining_depth += 1;
        visitor.finish()?;
        Ok(has_fields)
    }

    /// Consumes a value of any kind.
    fn skip(&mut self) -> Result<(), Fallback> {
        match self.next_token() {
            Some(b'"') => self.skip_string(),
            Some(b'{') => self.skip_container(b'}'),
            Some(b'[') => self.skip_container(b']'),
            Some(b'n') => self.literal("ull"),
            Some(b't') => self.literal("rue"),
            Some(b'f') => self.literal("alse"),
            Some(b'-') => self.skip_number(),
            Some(b'0'..=b'9') => {
                self.pos -= 1;
                self.skip_number()
            }
            _ => Err(Fallback),
        }
    }

    /// Consumes the rest of an array or object, of which the opening bracket was consumed.
    fn skip_container(&mut self, closer: u8) -> Result<(), Fallback> {
        self.enter()?;
        self.skip_whitespace();
        let mut more = self.peek() != Some(closer);
        self.pos += usize::from(!more);
        while more {
            if closer == b'}' {
                self.skip_key()?;
            }
            self.skip()?;
            more = match self.next_token() {
                Some(b',') => true,
                Some(byte) if byte == closer => false,
                _ => return Err(Fallback),
            };
        }
        self.remaining_depth += 1;
        Ok(())
    }

    fn skip_key(&mut self) -> Result<(), Fallback> {
        if self.next_token() != Some(b'"') {
            return Err(Fallback);
        }
        // `serde_json` gives a private name of its own a meaning, and would not read such an object as one. The name
        // begins with a dollar sign.
        let name = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        if name.starts_with(b"$") || name.starts_with(b"\\u0024") {
            return Err(Fallback);
        }
        self.skip_string()?;
        match self.next_token() {
            Some(b':') => Ok(()),
            _ => Err(Fallback),
        }
    }

    /// Consumes a number from its first digit on. Its text is kept as it is, so any size is accepted.
    fn skip_number(&mut self) -> Result<(), Fallback> {
        const UNLIMITED: usize = usize::MAX;
        let start = self.peek();
        let integer_digits = self.digits(UNLIMITED)?;
        if start == Some(b'0') && integer_digits > 1 {
            return Err(Fallback);
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            self.digits(UNLIMITED)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            self.pos += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits(UNLIMITED)?;
        }
        Ok(())
    }

    /// Consumes one digit or more, and returns how many.
    fn digits(&mut self, max: usize) -> Result<usize, Fallback> {
        let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.pos += count;
        if (1..=max).contains(&count) {
            Ok(count)
        } else {
            Err(Fallback)
        }
    }
}
