//! Reads a raw value that has the form of an earlier one, without parsing it.
//!
//! The values of an unknown field, and log probabilities, differ in most streams only inside of strings, in numbers, and in
//! how long a list of numbers is. A [`Form`] keeps where these parts lie in the value that a template was learned from.
//! Another value is compared with that one. Where the two differ inside of a part, the part is read to its end in both,
//! and compared on from there. So the other value has the same keys, nesting and lists, and is valid because the known
//! one was. Anything else is left to the scanner.

use std::ops::Range;

use crate::{decode::json_bytes::string, json_text::common_len};

/// A raw value in the text of a template, and its parts that may differ in another one.
#[derive(Debug)]
pub(super) struct Form {
    start: usize,
    length: usize,
    /// In their order. Their offsets count from the start of the value.
    parts: Box<[Part]>,
}

/// A part of a raw value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    kind: PartKind,
    start: u16,
    end: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    /// The inside of a string's quotes. It is not the name of a field.
    Text,
    Number,
    /// The inside of the brackets of a list of numbers, without white space.
    Numbers,
}

impl Form {
    /// The form of the value in this range of a text, which is known to be valid. One that has too many parts has none of
    /// them, and is only equal to itself.
    pub(super) fn of(text: &str, value: Range<usize>) -> Self {
        /// Five alternatives to a token, with the bytes of each, are about 20 parts.
        const MAX_PARTS: usize = 128;
        let raw = text.get(value.clone()).unwrap_or_default();
        let parts: Option<Vec<Part>> = Parts { raw, pos: 0 }.take(MAX_PARTS + 1).collect();
        let parts = parts.filter(|parts| parts.len() <= MAX_PARTS);
        Self {
            start: value.start,
            length: value.len(),
            parts: parts.unwrap_or_default().into(),
        }
    }

    /// The length of the value at the start of `data`, if it has this form, of which `text` is the text. The bytes of the
    /// value are not checked to be UTF-8.
    pub(super) fn value_len(&self, text: &[u8], data: &[u8]) -> Option<usize> {
        // A number or a word might go on where the known one ends.
        if !matches!(data.first()?, b'{' | b'[' | b'"') {
            return None;
        }
        // The rest of the text is compared as well, because `common_len` is faster with longer texts. What is equal beyond the
        // value does not count.
        let known = text.get(self.start..)?;
        let (mut at, mut other_at) = (0, 0);
        let mut parts = self.parts.iter();
        loop {
            let equal = common_len(known.get(at..)?, data.get(other_at..)?);
            let rest = self.length - at;
            if equal >= rest {
                return Some(other_at + rest);
            }
            (at, other_at) = (at + equal, other_at + equal);
            // The end of a part belongs to it: the other value may go on there.
            let part = parts.find(|part| usize::from(part.end) >= at)?;
            let start = other_at - at.checked_sub(part.start.into())?;
            other_at = start + part.kind.length(data.get(start..)?)?;
            at = part.end.into();
        }
    }
}

impl PartKind {
    /// The length of such a part at the start of the data.
    fn length(self, data: &[u8]) -> Option<usize> {
        match self {
            Self::Text => {
                let (length, escapes) = string(data)?;
                (!escapes || has_short_escapes(data.get(..length)?)).then_some(length)
            }
            Self::Number => number(data),
            Self::Numbers => {
                let mut length = number(data)?;
                while data.get(length) == Some(&b',') {
                    length += 1 + number(data.get(length + 1..)?)?;
                }
                Some(length)
            }
        }
    }
}

/// Whether each escape in a string is of two bytes. The scanner checks the others.
fn has_short_escapes(mut inside: &[u8]) -> bool {
    while let Some(backslash) = memchr::memchr(b'\\', inside) {
        let [kind, rest @ ..] = inside.get(backslash + 1..).unwrap_or_default() else {
            return false;
        };
        if !matches!(kind, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
            return false;
        }
        inside = rest;
    }
    true
}

/// The length of the JSON number at the start of the data.
fn number(data: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = data.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let start = usize::from(data.first() == Some(&b'-'));
    let integer = digits(start);
    let mut length = start + integer;
    if integer == 0 || (integer > 1 && data.get(start) == Some(&b'0')) {
        return None;
    }
    if data.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        length += 1 + fraction;
        if fraction == 0 {
            return None;
        }
    }
    if let Some(b'e' | b'E') = data.get(length) {
        length += 1 + usize::from(matches!(data.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length);
        length += exponent;
        if exponent == 0 {
            return None;
        }
    }
    Some(length)
}

/// The parts of a valid value; an item is `None` if it lies too far from the start.
struct Parts<'r> {
    raw: &'r str,
    pos: usize,
}

impl Iterator for Parts<'_> {
    type Item = Option<Part>;

    fn next(&mut self) -> Option<Option<Part>> {
        loop {
            let rest = self.raw.as_bytes().get(self.pos..)?;
            let start = self.pos;
            let (kind, start, length) = match rest {
                [b'"', inside @ ..] => {
                    let (length, _) = string(inside)?;
                    self.pos += length + 2;
                    let after = inside.get(length + 1..)?.trim_ascii_start();
                    if after.first() == Some(&b':') {
                        continue; // the name of a field
                    }
                    (PartKind::Text, start + 1, length)
                }
                [b'[', inside @ ..] => {
                    self.pos += 1;
                    let length = PartKind::Numbers.length(inside);
                    let Some(length) = length.filter(|length| inside.get(*length) == Some(&b']'))
                    else {
                        continue;
                    };
                    self.pos += length;
                    (PartKind::Numbers, start + 1, length)
                }
                [b'-' | b'0'..=b'9', ..] => {
                    let length = number(rest)?;
                    self.pos += length;
                    (PartKind::Number, start, length)
                }
                [_, ..] => {
                    self.pos += 1;
                    continue;
                }
                [] => return None,
            };
            let offset = |at: usize| u16::try_from(at).ok();
            let part = || {
                Some(Part {
                    kind,
                    start: offset(start)?,
                    end: offset(start + length)?,
                })
            };
            return Some(part());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the other value has the form of the first one, after a comparison of its length with that of the value.
    #[track_caller]
    fn has_form(known: &str, other: &str) -> bool {
        let text = format!("{{\"x\":{known}}}");
        let form = Form::of(&text, 5..5 + known.len());
        let lengths = ["}", ",12345678901234567890]", ""].map(|after| {
            let data = format!("{other}{after}");
            form.value_len(text.as_bytes(), data.as_bytes())
        });
        let [length, ..] = lengths;
        assert!(lengths.iter().all(|other| *other == length), "{lengths:?}");
        assert!(length.is_none_or(|length| length == other.len()), "{other}");
        length.is_some()
    }

    #[test]
    fn values_of_one_form_differ_inside_of_strings_and_numbers() {
        let token = "{\"token\": \"a\", \"logprob\": -0.5, \"bytes\": [97], \"top\": []}";
        for (known, same) in [
            ("[]", "[]"),
            ("\"\"", "\"a longer text than the known one is\""),
            ("\"a longer text than the known one is\"", "\"\""),
            ("\"a\\n\"", "\"\\\\\\\"\\/\\b\\f\\n\\r\\t\""),
            ("[1]", "[-120.5e-3]"),
            ("{\"a\":-120.5e-3}", "{\"a\":0}"),
            ("[1,2,3]", "[1]"),
            ("[1]", "[1,2e3,3]"),
            ("[1, 2]", "[10, -2]"),
            ("{\"a\":\"b\",\"c\":true}", "{\"a\":\"é\",\"c\":true}"),
            (
                token,
                "{\"token\": \"\u{7f}:\", \"logprob\": 3, \"bytes\": [1,2,255], \"top\": []}",
            ),
        ] {
            assert!(has_form(known, same), "{known} {same}");
            assert!(has_form(known, known) && has_form(same, same));
        }
    }

    #[test]
    fn any_other_value_is_left_to_the_scanner() {
        for (known, others) in [
            ("[]", &["[1]", "{}", "", "[ ]"][..]),
            ("[1]", &["[]", "[1,]", "[,1]", "[1 ]", "[\"1\"]", "[01]"]),
            ("[1, 2]", &["[1]", "[1,2]", "[1, 2, 3]"]),
            ("\"a\"", &["\"", "\"a", "\"\u{1}\"", "1", "null"]),
            (
                "\"b\"",
                &[
                    "\"\\x\"",
                    "\"\\u00e9\"",
                    "\"\\ud83d\"",
                    "\"\\\"",
                    "\"\\\u{1}\"",
                ],
            ),
            (
                "[1]",
                &["[-]", "[01]", "[1.]", "[1.e1]", "[1e]", "[1e+]", "[+1]"],
            ),
            ("1", &["1", "2"]),
            (
                "{\"a\":1}",
                &["{\"b\":1}", "{\"a\": 1}", "{\"a\":1,\"b\":1}"],
            ),
            ("{\"a\" :\"b\"}", &["{\"c\" :\"b\"}", "{\"a\" :null}"]),
            ("[true]", &["[false]", "[tru1]"]),
        ] {
            for other in others {
                assert!(!has_form(known, other), "{known} {other}");
            }
        }
    }

    #[test]
    fn a_value_of_many_parts_is_only_equal_to_itself() {
        let list = |last: &str| format!("[{}{last}]", "\"a\",".repeat(200));
        assert!(has_form(&list("1"), &list("1")));
        assert!(!has_form(&list("1"), &list("23")));
        let long = |last: &str| format!("{{\"{}\":{last}}}", "k".repeat(70_000));
        assert!(!has_form(&long("1"), &long("2")));
    }
}
