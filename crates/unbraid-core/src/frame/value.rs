//! Whether the data lines of an event can still be one JSON value.
//!
//! It accepts more than the decoder does (any word as a number, raw control characters, invalid escapes), so that a
//! value that the decoder can read is never split. It calls a text invalid only if the decoder cannot read it.

use memchr::memchr2;

/// Follows one JSON value over any number of lines without keeping its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    expected: Expected,
    depth: usize,
    /// For each level, whether it is an object.
    objects: [u64; MAX_DEPTH / 64],
    /// Whether the value was complete at some byte.
    was_complete: bool,
}

/// The state of the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueState {
    /// Nothing, or the start of a value.
    Open,
    /// A complete value.
    Complete,
    /// Neither. `after_value` is true if a complete value precedes the first invalid byte.
    Invalid { after_value: bool },
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    /// A value, or the end of the array.
    FirstItem,
    /// A key, or the end of the object.
    FirstKey,
    Key,
    Colon,
    /// A comma or the end of the container; nothing at the top level.
    Next,
    /// More of a string.
    Text {
        is_key: bool,
    },
    /// The character after a backslash.
    Escaped {
        is_key: bool,
    },
    /// More of a number or word.
    Word,
    Nothing,
}

/// The decoder does not accept deeper values either.
const MAX_DEPTH: usize = 512;

impl Value {
    pub(super) fn new() -> Self {
        Self {
            expected: Expected::Value,
            depth: 0,
            objects: [0; MAX_DEPTH / 64],
            was_complete: false,
        }
    }

    pub(super) fn state(&self) -> ValueState {
        match self.expected {
            Expected::Nothing => ValueState::Invalid {
                after_value: self.was_complete,
            },
            Expected::Next | Expected::Word if self.depth == 0 => ValueState::Complete,
            _ => ValueState::Open,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = match self.expected {
                Expected::Nothing => return,
                Expected::Text { is_key } => match memchr2(b'"', b'\\', rest) {
                    None => return,
                    Some(special) => {
                        match (rest.get(special), is_key) {
                            (Some(b'\\'), is_key) => self.expected = Expected::Escaped { is_key },
                            (_, true) => self.expected = Expected::Colon,
                            (_, false) => self.end_value(),
                        }
                        rest.get(special + 1..).unwrap_or_default()
                    }
                },
                Expected::Escaped { is_key } => {
                    self.expected = Expected::Text { is_key };
                    after
                }
                Expected::Word if !is_word(byte) => {
                    self.end_value();
                    rest
                }
                Expected::Word => after,
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => after,
                _ => {
                    self.take(byte);
                    after
                }
            };
        }
    }

    fn take(&mut self, byte: u8) {
        self.expected = match (self.expected, byte) {
            (Expected::Value | Expected::FirstItem, b'{') => return self.open(true),
            (Expected::Value | Expected::FirstItem, b'[') => return self.open(false),
            (Expected::Value | Expected::FirstItem, b'"') => Expected::Text { is_key: false },
            (Expected::Value | Expected::FirstItem, byte) if is_word(byte) => Expected::Word,
            (Expected::FirstKey | Expected::Key, b'"') => Expected::Text { is_key: true },
            (Expected::FirstItem, b']') | (Expected::FirstKey, b'}') => return self.close(),
            (Expected::Colon, b':') => Expected::Value,
            (Expected::Next, b',') if self.depth > 0 && self.in_object() => Expected::Key,
            (Expected::Next, b',') if self.depth > 0 => Expected::Value,
            (Expected::Next, b'}') if self.depth > 0 && self.in_object() => return self.close(),
            (Expected::Next, b']') if self.depth > 0 && !self.in_object() => return self.close(),
            // The decoder drops all Unicode white space around a value.
            (expected @ (Expected::Value | Expected::Next), 0x0B | 0x0C | 0x80..)
                if self.depth == 0 =>
            {
                expected
            }
            _ => Expected::Nothing,
        };
    }

    fn open(&mut self, is_object: bool) {
        let Some(bits) = self.objects.get_mut(self.depth / 64) else {
            self.expected = Expected::Nothing;
            return;
        };
        let bit = 1 << (self.depth % 64);
        *bits = if is_object { *bits | bit } else { *bits & !bit };
        self.depth += 1;
        self.expected = if is_object {
            Expected::FirstKey
        } else {
            Expected::FirstItem
        };
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.end_value();
    }

    fn end_value(&mut self) {
        self.expected = Expected::Next;
        self.was_complete |= self.depth == 0;
    }

    fn in_object(&self) -> bool {
        let level = self.depth.saturating_sub(1);
        let bits = self.objects.get(level / 64).copied().unwrap_or_default();
        bits >> (level % 64) & 1 == 1
    }
}

/// Whether a byte can be part of a number or literal: `null`, `-1.5e+7`, `NaN`.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{limits::MAX_JSON_DEPTH, node};
    use unbraid_testkit::{cut::Rng, fixture::Fixture};

    fn state(text: &str) -> ValueState {
        let mut value = Value::new();
        value.feed(text.as_bytes());
        value.state()
    }

    #[test]
    fn a_value_is_open_complete_or_invalid() {
        const INVALID: ValueState = ValueState::Invalid { after_value: false };
        for (text, expected) in [
            ("", ValueState::Open),
            (" \n", ValueState::Open),
            ("{}", ValueState::Complete),
            ("[1, {\"a\":[]}]\n ", ValueState::Complete),
            ("12", ValueState::Complete),
            ("\"a\nb\\\"\"", ValueState::Complete),
            ("{\"a\":\"b\\", ValueState::Open),
            ("{\"a\":-Infinity", ValueState::Open),
            ("[\n{\"a\":1},\n", ValueState::Open),
            ("{\"broken\n{\"choices\"", INVALID),
            ("{\"a\":1,{", INVALID),
            ("[1}", INVALID),
            ("{]", INVALID),
            (": ping", INVALID),
            ("{}{", ValueState::Invalid { after_value: true }),
            ("1 2", ValueState::Invalid { after_value: true }),
        ] {
            assert_eq!(state(text), expected, "{text}");
        }
        assert_eq!(state(&"[".repeat(MAX_DEPTH)), ValueState::Open);
        assert_eq!(state(&"[".repeat(MAX_DEPTH + 1)), INVALID);
    }

    /// A value that the decoder can read must never be split.
    #[test]
    fn a_value_that_the_decoder_reads_is_complete_and_its_prefixes_are_not_invalid() {
        let mut rng = Rng::new(10);
        for fixture in Fixture::all() {
            let body = String::from_utf8_lossy(&fixture.bytes);
            for line in body.lines().take(200) {
                let mut text: Vec<char> = line.trim_start_matches("data:").chars().collect();
                for _ in 0..4 {
                    let read: String = text.iter().collect();
                    if node::read(read.trim(), MAX_JSON_DEPTH).is_ok() {
                        assert_eq!(state(&read), ValueState::Complete, "{read}");
                        let at = rng.below(read.len() + 1);
                        let head = String::from_utf8_lossy(read.as_bytes().get(..at).unwrap());
                        assert!(
                            !matches!(state(&head), ValueState::Invalid { .. }),
                            "{head}"
                        );
                    }
                    let insertions = ['"', '\\', '\n', 'N', '-', ' ', '\u{1}', 'é', '\u{a0}'];
                    let at = rng.below(text.len() + 1);
                    text.insert(at, insertions[rng.below(insertions.len())]);
                }
            }
        }
    }
}
