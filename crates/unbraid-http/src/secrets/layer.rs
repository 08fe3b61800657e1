//! A text whose escapes are resolved, where each byte knows from which part of the original it comes.

use std::ops::Range;

/// One reading of a text.
pub(super) struct Layer {
    bytes: Vec<u8>,
    /// Of each byte, the part of the original text that stands for it.
    origins: Vec<Range<usize>>,
}

/// How many bytes an escape has, and what it stands for.
enum Escape {
    Means(usize, char),
    /// A single byte, which may be a part of a character.
    MeansByte(usize, u8),
    /// The text ends within it.
    Cut,
    None,
}

impl Layer {
    pub(super) fn new(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_owned(),
            origins: (0..text.len()).map(|at| at..at + 1).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// What the text reads by each kind of escape that occurs in it: of JSON, of addresses, of HTML.
    pub(super) fn decoded(&self) -> impl Iterator<Item = Self> {
        let json = self.decode(b'\\', json_escape);
        let html = self.decode(b'&', html_escape);
        [json, self.percent_decoded(), html].into_iter().flatten()
    }

    pub(super) fn percent_decoded(&self) -> Option<Self> {
        self.decode(b'%', percent_escape)
    }

    /// Where a text occurs.
    pub(super) fn find(&self, wanted: &[u8], found: &mut Vec<Range<usize>>) {
        let windows = self.bytes.windows(wanted.len().max(1)).enumerate();
        let hits = windows.filter(|(_, window)| *window == wanted);
        found.extend(hits.filter_map(|(at, _)| self.origin(at..at + wanted.len())));
    }

    /// Where the text ends with the beginning of another one, because the server's text was cut.
    pub(super) fn find_cut_at_end(
        &self,
        wanted: &[u8],
        shortest: usize,
        found: &mut Vec<Range<usize>>,
    ) {
        let begins = |length: &usize| {
            let begin = wanted.get(..*length);
            begin.is_some_and(|begin| self.bytes.ends_with(begin))
        };
        if let Some(length) = (shortest..wanted.len()).rev().find(begins) {
            let end = self.bytes.len();
            found.extend(self.origin(end - length..end));
        }
    }

    /// The part of the original that a range of bytes comes from.
    fn origin(&self, range: Range<usize>) -> Option<Range<usize>> {
        let origins = self.origins.get(range)?;
        Some(origins.first()?.start..origins.last()?.end)
    }

    /// `None` if there is no such escape in it.
    fn decode(&self, mark: u8, escape: fn(&[u8]) -> Escape) -> Option<Self> {
        if !self.bytes.contains(&mark) {
            return None;
        }
        let mut decoded = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            origins: Vec::with_capacity(self.bytes.len()),
        };
        let mut changed = false;
        let mut at = 0;
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let read = match rest.first() {
                Some(byte) if *byte == mark => escape(rest),
                _ => Escape::None,
            };
            let length = match read {
                Escape::Means(length, char) => {
                    let text = char.encode_utf8(&mut [0; 4]).to_owned();
                    decoded.push(text.as_bytes(), self.origin(at..at + length));
                    length
                }
                Escape::MeansByte(length, byte) => {
                    decoded.push(&[byte], self.origin(at..at + length));
                    length
                }
                Escape::None => {
                    decoded.push(rest.get(..1).unwrap_or_default(), self.origin(at..at + 1));
                    1
                }
                Escape::Cut => break,
            };
            changed |= length > 1;
            at += length;
        }
        changed |= at < self.bytes.len();
        changed.then_some(decoded)
    }

    fn push(&mut self, bytes: &[u8], origin: Option<Range<usize>>) {
        let origin = origin.unwrap_or_default();
        self.bytes.extend_from_slice(bytes);
        self.origins.extend(bytes.iter().map(|_| origin.clone()));
    }
}

/// Escapes of JSON, and those which Python and JavaScript print beside them.
fn json_escape(text: &[u8]) -> Escape {
    let short = |char| Escape::Means(2, char);
    match text.get(1) {
        None => Escape::Cut,
        Some(b'n') => short('\n'),
        Some(b'r') => short('\r'),
        Some(b't') => short('\t'),
        Some(b'b') => short('\u{8}'),
        Some(b'f') => short('\u{c}'),
        Some(literal @ (b'"' | b'\\' | b'/' | b'\'')) => short(char::from(*literal)),
        Some(b'x') => match hex(text, 2, 2) {
            Hex::Value(value) => char_or_none(4, value),
            Hex::Cut => Escape::Cut,
            Hex::None => Escape::None,
        },
        Some(b'u') => json_unit(text),
        Some(_) => Escape::None,
    }
}

/// `\uXXXX`, or two of them where the first is half of a pair.
fn json_unit(text: &[u8]) -> Escape {
    let high = match hex(text, 2, 4) {
        Hex::Value(high) => high,
        Hex::Cut => return Escape::Cut,
        Hex::None => return Escape::None,
    };
    if !(0xd800..0xdc00).contains(&high) {
        return char_or_none(6, high);
    }
    match (text.get(6..8), hex(text, 8, 4)) {
        (Some(b"\\u"), Hex::Value(low)) if (0xdc00..0xe000).contains(&low) => {
            char_or_none(12, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
        }
        (_, _) => Escape::Means(6, char::REPLACEMENT_CHARACTER),
    }
}

fn percent_escape(text: &[u8]) -> Escape {
    match hex(text, 1, 2) {
        Hex::Value(value) => u8::try_from(value).map_or(Escape::None, |b| Escape::MeansByte(3, b)),
        Hex::Cut => Escape::Cut,
        Hex::None => Escape::None,
    }
}

/// Bytes of the longest escape of HTML that is read: `&#1114111;`.
const LONGEST_ENTITY: usize = 10;

fn html_escape(text: &[u8]) -> Escape {
    let head = text
        .get(1..text.len().min(LONGEST_ENTITY))
        .unwrap_or_default();
    let Some(end) = head.iter().position(|byte| *byte == b';') else {
        let letters = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let is_cut = text.len() < LONGEST_ENTITY && head.iter().all(letters);
        return if is_cut { Escape::Cut } else { Escape::None };
    };
    let name = head
        .get(..end)
        .and_then(|name| std::str::from_utf8(name).ok());
    let length = end + 2;
    let means = |char| Escape::Means(length, char);
    match name.unwrap_or_default() {
        "amp" => means('&'),
        "lt" => means('<'),
        "gt" => means('>'),
        "quot" => means('"'),
        "apos" => means('\''),
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
    char::from_u32(value).map_or(Escape::None, |char| Escape::Means(length, char))
}

enum Hex {
    Value(u32),
    /// There are digits only, and too few.
    Cut,
    None,
}

fn hex(text: &[u8], from: usize, digits: usize) -> Hex {
    let all = text.get(from..text.len().min(from + digits));
    let all = all.unwrap_or_default();
    let value = all.iter().try_fold(0, |value, byte| {
        Some(value * 16 + char::from(*byte).to_digit(16)?)
    });
    match value {
        Some(value) if all.len() == digits => Hex::Value(value),
        Some(_) => Hex::Cut,
        None => Hex::None,
    }
}
