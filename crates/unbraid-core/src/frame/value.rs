//! Whether the data lines of an event can still be one JSON value.
//!
//! It takes more than the decoder's readers do (any word for a number, raw control characters, broken escapes), so that
//! a value that one of them would read is never cut in two. What it calls wrong, none of them reads.

use memchr::memchr2;

/// Follows one JSON value over any number of lines, without keeping its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    want: Want,
    depth: usize,
    /// For each level, whether it is an object.
    objects: [u64; LEVELS / 64],
    /// The value was complete at some byte.
    was_complete: bool,
}

/// What the bytes so far are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The beginning of a value, or nothing yet.
    Open,
    /// A whole value.
    Complete,
    /// Neither; `after_value` where a whole value stands before the first wrong byte.
    Wrong { after_value: bool },
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Value,
    /// A value, or the end of the array that has just begun.
    FirstItem,
    /// A key, or the end of the object that has just begun.
    FirstKey,
    Key,
    Colon,
    /// A comma or the end of what is open; at the top nothing.
    Next,
    /// More of a string.
    Text {
        key: bool,
    },
    /// What a backslash stands before.
    Escaped {
        key: bool,
    },
    /// More of a number or word.
    Word,
    Wrong,
}

/// Deeper values are none to the decoder either.
const LEVELS: usize = 512;

impl Value {
    pub(super) fn new() -> Self {
        Self {
            want: Want::Value,
            depth: 0,
            objects: [0; LEVELS / 64],
            was_complete: false,
        }
    }

    pub(super) fn shape(&self) -> Shape {
        match self.want {
            Want::Wrong => Shape::Wrong {
                after_value: self.was_complete,
            },
            Want::Next | Want::Word if self.depth == 0 => Shape::Complete,
            _ => Shape::Open,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = match self.want {
                Want::Wrong => return,
                Want::Text { key } => match memchr2(b'"', b'\\', rest) {
                    None => return,
                    Some(at) => {
                        match (rest.get(at), key) {
                            (Some(b'\\'), key) => self.want = Want::Escaped { key },
                            (_, true) => self.want = Want::Colon,
                            (_, false) => self.end_value(),
                        }
                        rest.get(at + 1..).unwrap_or_default()
                    }
                },
                Want::Escaped { key } => {
                    self.want = Want::Text { key };
                    after
                }
                Want::Word if !is_word(byte) => {
                    self.end_value();
                    rest
                }
                Want::Word => after,
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => after,
                _ => {
                    self.take(byte);
                    after
                }
            };
        }
    }

    fn take(&mut self, byte: u8) {
        self.want = match (self.want, byte) {
            (Want::Value | Want::FirstItem, b'{') => return self.open(true),
            (Want::Value | Want::FirstItem, b'[') => return self.open(false),
            (Want::Value | Want::FirstItem, b'"') => Want::Text { key: false },
            (Want::Value | Want::FirstItem, byte) if is_word(byte) => Want::Word,
            (Want::FirstKey | Want::Key, b'"') => Want::Text { key: true },
            (Want::FirstItem, b']') | (Want::FirstKey, b'}') => return self.close(),
            (Want::Colon, b':') => Want::Value,
            (Want::Next, b',') if self.depth > 0 && self.in_object() => Want::Key,
            (Want::Next, b',') if self.depth > 0 => Want::Value,
            (Want::Next, b'}') if self.depth > 0 && self.in_object() => return self.close(),
            (Want::Next, b']') if self.depth > 0 && !self.in_object() => return self.close(),
            // The decoder drops white space of all of Unicode around a value.
            (want @ (Want::Value | Want::Next), 0x0B | 0x0C | 0x80..) if self.depth == 0 => want,
            _ => Want::Wrong,
        };
    }

    fn open(&mut self, object: bool) {
        let Some(levels) = self.objects.get_mut(self.depth / 64) else {
            self.want = Want::Wrong;
            return;
        };
        let bit = 1 << (self.depth % 64);
        *levels = if object {
            *levels | bit
        } else {
            *levels & !bit
        };
        self.depth += 1;
        self.want = if object {
            Want::FirstKey
        } else {
            Want::FirstItem
        };
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.end_value();
    }

    fn end_value(&mut self) {
        self.want = Want::Next;
        self.was_complete |= self.depth == 0;
    }

    fn in_object(&self) -> bool {
        let level = self.depth.saturating_sub(1);
        let levels = self.objects.get(level / 64).copied().unwrap_or_default();
        levels >> (level % 64) & 1 == 1
    }
}

/// Any byte of `null`, `-1.5e+7`, `NaN`, and of much that is neither.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{limits::MAX_JSON_DEPTH, node};
    use unbraid_testkit::{cut::Rng, fixture::Fixture};

    fn shape(text: &str) -> Shape {
        let mut value = Value::new();
        value.feed(text.as_bytes());
        value.shape()
    }

    #[test]
    fn a_value_is_open_complete_or_wrong() {
        const WRONG: Shape = Shape::Wrong { after_value: false };
        for (text, expected) in [
            ("", Shape::Open),
            (" \n", Shape::Open),
            ("{}", Shape::Complete),
            ("[1, {\"a\":[]}]\n ", Shape::Complete),
            ("12", Shape::Complete),
            ("\"a\nb\\\"\"", Shape::Complete),
            ("{\"a\":\"b\\", Shape::Open),
            ("{\"a\":-Infinity", Shape::Open),
            ("[\n{\"a\":1},\n", Shape::Open),
            ("{\"broken\n{\"choices\"", WRONG),
            ("{\"a\":1,{", WRONG),
            ("[1}", WRONG),
            ("{]", WRONG),
            (": ping", WRONG),
            ("{}{", Shape::Wrong { after_value: true }),
            ("1 2", Shape::Wrong { after_value: true }),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
        assert_eq!(shape(&"[".repeat(LEVELS)), Shape::Open);
        assert_eq!(shape(&"[".repeat(LEVELS + 1)), WRONG);
    }

    /// What it calls wrong or unfinished must be so to the decoder, or a value would be cut in two.
    #[test]
    fn what_the_decoder_reads_is_complete_and_open_before() {
        let mut rng = Rng::new(10);
        for fixture in Fixture::all() {
            let body = String::from_utf8_lossy(&fixture.bytes);
            for line in body.lines().take(200) {
                let mut text: Vec<char> = line.trim_start_matches("data:").chars().collect();
                for _ in 0..4 {
                    let read: String = text.iter().collect();
                    if node::read(read.trim(), MAX_JSON_DEPTH).is_ok() {
                        assert_eq!(shape(&read), Shape::Complete, "{read}");
                        let at = rng.below(read.len() + 1);
                        let head = String::from_utf8_lossy(read.as_bytes().get(..at).unwrap());
                        assert!(!matches!(shape(&head), Shape::Wrong { .. }), "{head}");
                    }
                    let odd = ['"', '\\', '\n', 'N', '-', ' ', '\u{1}', 'é', '\u{a0}'];
                    let at = rng.below(text.len() + 1);
                    text.insert(at, odd[rng.below(odd.len())]);
                }
            }
        }
    }
}
