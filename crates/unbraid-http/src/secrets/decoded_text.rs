//! A text whose escapes are decoded, and that maps each byte to its range in the original text.

use std::ops::Range;

/// A decoded text with the origin of each byte.
pub(super) struct DecodedText {
    bytes: Vec<u8>,
    /// For each byte, its range in the original text.
    origins: Vec<Range<usize>>,
}

/// The length of an escape in bytes, and its meaning.
enum Escape {
    Char(usize, char),
    /// A single byte, which may be a part of a character.
    Byte(usize, u8),
    /// The text ends within the escape.
    Truncated,
    None,
}

impl DecodedText {
    pub(super) fn new(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_owned(),
            origins: (0..text.len()).map(|index| index..index + 1).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Decodes the text by each kind of escape that occurs in it: those of JSON, addresses and HTML.
    pub(super) fn decoded(&self) -> impl Iterator<Item = Self> {
        let json = self.decode(b'\\', json_escape);
        let html = self.decode(b'&', html_escape);
        [json, self.percent_decoded(), html].into_iter().flatten()
    }

    pub(super) fn percent_decoded(&self) -> Option<Self> {
        self.decode(b'%', percent_escape)
    }

    /// Finds the ranges of a text.
    pub(super) fn find(&self, pattern: &[u8], found: &mut Vec<Range<usize>>) {
        let windows = self.bytes.windows(pattern.len().max(1)).enumerate();
        let matches = windows.filter(|(_, window)| *window == pattern);
        let origin = |(start, _)| self.origin(start..start + pattern.len());
        found.extend(matches.filter_map(origin));
    }

    /// Finds the beginning of a text at the end of this one, which the server truncated.
    pub(super) fn find_truncated(
        &self,
        pattern: &[u8],
        min_length: usize,
        found: &mut Vec<Range<usize>>,
    ) {
        let is_at_end = |length: &usize| {
            let prefix = pattern.get(..*length);
            prefix.is_some_and(|prefix| self.bytes.ends_with(prefix))
        };
        if let Some(length) = (min_length..pattern.len()).rev().find(is_at_end) {
            let end = self.bytes.len();
            found.extend(self.origin(end - length..end));
        }
    }

    /// The range in the original text that a range of bytes comes from.
    fn origin(&self, range: Range<usize>) -> Option<Range<usize>> {
        let origins = self.origins.get(range)?;
        Some(origins.first()?.start..origins.last()?.end)
    }

    /// Decodes one kind of escape. Returns `None` if there is none.
    fn decode(&self, mark: u8, escape: fn(&[u8]) -> Escape) -> Option<Self> {
        if !self.bytes.contains(&mark) {
            return None;
        }
        let mut decoded = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            origins: Vec::with_capacity(self.bytes.len()),
        };
        let mut changed = false;
        let mut offset = 0;
        while let Some(rest) = self.bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            let decoded_escape = match rest.first() {
                Some(byte) if *byte == mark => escape(rest),
                _ => Escape::None,
            };
            let length = match decoded_escape {
                Escape::Char(length, char) => {
                    let text = char.encode_utf8(&mut [0; 4]).to_owned();
                    decoded.push(text.as_bytes(), self.origin(offset..offset + length));
                    length
                }
                Escape::Byte(length, byte) => {
                    decoded.push(&[byte], self.origin(offset..offset + length));
                    length
                }
                Escape::None => {
                    decoded.push(
                        rest.get(..1).unwrap_or_default(),
                        self.origin(offset..offset + 1),
                    );
                    1
                }
                Escape::Truncated => break,
            };
            changed |= length > 1;
            offset += length;
        }
        changed |= offset < self.bytes.len();
        changed.then_some(decoded)
    }

    fn push(&mut self, bytes: &[u8], origin: Option<Range<usize>>) {
        let origin = origin.unwrap_or_default();
        self.bytes.extend_from_slice(bytes);
        self.origins.extend(bytes.iter().map(|_| origin.clone()));
    }
}

/// Escapes of JSON, and further ones that Python and JavaScript print.
fn json_escape(text: &[u8]) -> Escape {
    let short = |char| Escape::Char(2, char);
    match text.get(1) {
        None => Escape::Truncated,
        Some(b'n') => short('\n'),
        Some(b'r') => short('\r'),
        Some(b't') => short('\t'),
        Some(b'b') => short('\u{8}'),
        Some(b'f') => short('\u{c}'),
        Some(literal @ (b'"' | b'\\' | b'/' | b'\'')) => short(char::from(*literal)),
        Some(b'x') => match hex(text, 2, 2) {
            Hex::Value(value) => char_or_none(4, value),
            Hex::Truncated => Escape::Truncated,
            Hex::None => Escape::None,
        },
        Some(b'u') => json_unit(text),
        Some(_) => Escape::None,
    }
}

/// `\uXXXX`, or two of them if the first is half of a surrogate pair.
fn json_unit(text: &[u8]) -> Escape {
    let high = match hex(text, 2, 4) {
        Hex::Value(high) => high,
        Hex::Truncated => return Escape::Truncated,
        Hex::None => return Escape::None,
    };
    if !(0xd800..0xdc00).contains(&high) {
        return char_or_none(6, high);
    }
    match (text.get(6..8), hex(text, 8, 4)) {
        (Some(b"\\u"), Hex::Value(low)) if (0xdc00..0xe000).contains(&low) => {
            char_or_none(12, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
        }
        (_, _) => Escape::Char(6, char::REPLACEMENT_CHARACTER),
    }
}

fn percent_escape(text: &[u8]) -> Escape {
    match hex(text, 1, 2) {
        Hex::Value(value) => u8::try_from(value).map_or(Escape::None, |b| Escape::Byte(3, b)),
        Hex::Truncated => Escape::Truncated,
        Hex::None => Escape::None,
    }
}

/// Bytes of the longest HTML escape that is decoded: `&#1114111;`.
const MAX_ENTITY_BYTES: usize = 10;

fn html_escape(text: &[u8]) -> Escape {
    let head = text
        .get(1..text.len().min(MAX_ENTITY_BYTES))
        .unwrap_or_default();
    let Some(end) = head.iter().position(|byte| *byte == b';') else {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let is_truncated = text.len() < MAX_ENTITY_BYTES && head.iter().all(is_name);
        return if is_truncated {
            Escape::Truncated
        } else {
            Escape::None
        };
    };
    let name = head
        .get(..end)
        .and_then(|name| std::str::from_utf8(name).ok());
    let length = end + 2;
    let decoded = |char| Escape::Char(length, char);
    match name.unwrap_or_default() {
        "amp" => decoded('&'),
        "lt" => decoded('<'),
        "gt" => decoded('>'),
        "quot" => decoded('"'),
        "apos" => decoded('\''),
        name => {
            let Some(number) = name.strip_prefix('#') else {
                return Escape::None;
            };
            let value = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            value.map_or(Escape::None, |value| char_or_none(length, value))
        }
    }
}

fn char_or_none(length: usize, value: u32) -> Escape {
    char::from_u32(value).map_or(Escape::None, |char| Escape::Char(length, char))
}

enum Hex {
    Value(u32),
    /// The text ends after too few digits.
    Truncated,
    None,
}

fn hex(text: &[u8], start: usize, digits: usize) -> Hex {
    let available = text.get(start..text.len().min(start + digits));
    let available = available.unwrap_or_default();
    let value = available.iter().try_fold(0, |value, byte| {
        Some(value * 16 + char::from(*byte).to_digit(16)?)
    });
    match value {
        Some(value) if available.len() == digits => Hex::Value(value),
        Some(_) => Hex::Truncated,
        None => Hex::None,
    }
}
