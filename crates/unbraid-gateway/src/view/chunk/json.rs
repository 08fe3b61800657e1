//! Finds the parts of a JSON text without decoding them, so that everything else of it can be passed on unchanged.
//!
//! It only follows strings and brackets. A text that is not JSON is either refused or divided at the same places as by
//! any other reader of strings and brackets; nothing panics, and nothing is recursive.

use std::{borrow::Cow, ops::Range};

use memchr::memchr2;

/// A part of a text, by its bytes.
pub(super) type Span = Range<usize>;

/// The members of an object.
#[derive(Debug)]
pub(super) struct Object {
    /// Everything between the braces.
    pub(super) interior: Span,
    pub(super) members: Vec<Member>,
}

#[derive(Debug)]
pub(super) struct Member {
    /// The key with its quotes.
    pub(super) key: Span,
    pub(super) value: Span,
}

impl Member {
    /// From the key's quote to the end of the value.
    pub(super) fn span(&self) -> Span {
        self.key.start..self.value.end
    }
}

/// The elements of an array.
#[derive(Debug)]
pub(super) struct Array {
    /// Everything between the brackets.
    pub(super) interior: Span,
    pub(super) elements: Vec<Span>,
}

/// The bytes of a span.
pub(super) fn bytes<'a>(text: &'a [u8], span: &Span) -> &'a [u8] {
    text.get(span.clone()).unwrap_or_default()
}

/// The values of a text: one, or several with nothing but white space between them.
pub(super) fn values(text: &[u8]) -> Option<Vec<Span>> {
    let mut reader = Reader { text, at: 0 };
    let mut values = Vec::new();
    loop {
        reader.skip_space();
        if reader.at == text.len() {
            return Some(values);
        }
        values.push(reader.value()?);
    }
}

/// The object at a span; `None` if it is another value, or damaged.
pub(super) fn object(text: &[u8], span: &Span) -> Option<Object> {
    /// A chunk has about ten members.
    const MEMBERS: usize = 12;
    let mut reader = Reader::new(text, span);
    let mut members = Vec::with_capacity(MEMBERS);
    reader.expect(b'{')?;
    let start = reader.at;
    let end = reader.list(b'}', |reader| {
        let key = reader.string()?;
        reader.skip_space();
        reader.expect(b':')?;
        reader.skip_space();
        let value = reader.value()?;
        members.push(Member { key, value });
        Some(())
    })?;
    Some(Object {
        interior: start..end,
        members,
    })
}

/// The array at a span; `None` if it is another value, or damaged.
pub(super) fn array(text: &[u8], span: &Span) -> Option<Array> {
    let mut reader = Reader::new(text, span);
    let mut elements = Vec::new();
    reader.expect(b'[')?;
    let start = reader.at;
    let end = reader.list(b']', |reader| {
        elements.push(reader.value()?);
        Some(())
    })?;
    Some(Array {
        interior: start..end,
        elements,
    })
}

/// The text of a string, without its escapes; `None` for another value, and for a string that is not JSON.
pub(super) fn string<'a>(text: &'a [u8], span: &Span) -> Option<Cow<'a, str>> {
    let raw = bytes(text, span);
    let inside = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inside).is_none() {
        return str::from_utf8(inside).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(raw).ok().map(Cow::Owned)
}

/// Whether a key, which may be written with escapes, has this name.
pub(super) fn is_key(text: &[u8], key: &Span, name: &str) -> bool {
    let raw = bytes(text, key);
    let inside = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    inside == name.as_bytes()
        || (memchr::memchr(b'\\', inside).is_some()
            && string(text, key).is_some_and(|key| key == name))
}

/// The last value of a key, which is the one that counts.
pub(super) fn member<'o>(text: &[u8], object: &'o Object, name: &str) -> Option<&'o Span> {
    let mut members = object.members.iter().rev();
    members
        .find(|member| is_key(text, &member.key, name))
        .map(|member| &member.value)
}

/// Whether a value is neither `null` nor an empty string.
pub(super) fn is_set(text: &[u8], span: &Span) -> bool {
    !matches!(bytes(text, span), b"null" | b"\"\"" | b"")
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of one value, which ends where the value does.
    fn new(text: &'a [u8], span: &Span) -> Self {
        Self {
            text: text.get(..span.end).unwrap_or_default(),
            at: span.start,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Reads the items of an object or array, after its opening bracket. Returns the offset of the closing one.
    fn list(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<usize> {
        self.skip_space();
        if self.expect(close).is_some() {
            return Some(self.at - 1);
        }
        loop {
            self.skip_space();
            item(self)?;
            self.skip_space();
            if self.expect(close).is_some() {
                return Some(self.at - 1);
            }
            self.expect(b',')?;
        }
    }

    fn value(&mut self) -> Option<Span> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.nested(),
            _ => self.scalar(),
        }
    }

    fn string(&mut self) -> Option<Span> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            let rest = self.text.get(self.at..)?;
            self.at += memchr2(b'"', b'\\', rest)?;
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                _ => self.at += 2,
            }
        }
    }

    fn nested(&mut self) -> Option<Span> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(start..self.at);
            }
        }
    }

    /// A number or a word.
    fn scalar(&mut self) -> Option<Span> {
        let rest = self.text.get(self.at..)?;
        let ends = |byte: &u8| {
            matches!(byte, b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"')
                || byte.is_ascii_whitespace()
        };
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        let start = self.at;
        self.at += length;
        Some(start..self.at)
    }
}
