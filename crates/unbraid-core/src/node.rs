//! A tolerant JSON reader, for the chunks that `serde_json` refuses.
//!
//! It accepts only what producers are known to send: raw control characters and invalid escapes in strings, lone
//! surrogate escapes, `NaN` and the infinities, deep nesting. A node that contains any of these is not
//! [`clean`](Node::clean), and neither are its ancestors, so that a caller can pass on all other parts as they are. A
//! number of any size is clean: raw JSON keeps all of its digits, and only a `Value` has no room for them.

use std::borrow::Cow;

use parse::Reader;

use crate::{
    Fragment,
    limits::{MAX_JSON_DEPTH, MAX_VALUES},
};

mod compact;
mod number;
mod parse;
mod raw;
mod string;
mod unique;
mod write;

pub use compact::compact;
pub(crate) use raw::{has_more_digits, is_doubtful, may_overflow};

#[cfg(test)]
mod tests;

/// Reads one value, which white space may precede, and returns it with the number of bytes read.
///
/// The text after the value is not read. A `max_depth` beyond 512 counts as 512.
///
/// # Errors
///
/// The first error, with its byte offset.
pub(crate) fn read_prefix(input: &str, max_depth: usize) -> Result<(Node<'_>, usize), NodeError> {
    let mut reader = Reader::new(input, max_depth);
    let node = reader.value()?;
    Ok((node, reader.used()))
}

/// Reads one value that fills the input, except for white space around it.
///
/// # Errors
///
/// Those of [`read_prefix`], and a syntax error at the first byte after the value.
pub(crate) fn read(input: &str, max_depth: usize) -> Result<Node<'_>, NodeError> {
    let mut reader = Reader::new(input, max_depth);
    let node = reader.value()?;
    reader.end()?;
    Ok(node)
}

/// Reads one value as [`read`] does, but refuses everything that only this reader tolerates: the text has to be JSON
/// by its grammar.
///
/// Lone surrogate escapes and numbers of any size are JSON.
///
/// # Errors
///
/// Those of [`read`], and a syntax error at the end of a text that is not JSON.
pub(crate) fn read_json(input: &str, max_depth: usize) -> Result<Node<'_>, NodeError> {
    let mut reader = Reader::new(input, max_depth);
    let node = reader.value()?;
    reader.end()?;
    if reader.is_json() {
        Ok(node)
    } else {
        let offset = input.len();
        Err(NodeError::Syntax { offset })
    }
}

/// Converts raw JSON from the stream to a value.
///
/// A number that a `Value` has no room for becomes the nearest `f64`, and null beyond the range of `f64`. Lone
/// surrogates become U+FFFD. `None` for text that is not JSON, is nested too deep, or has more than [`MAX_VALUES`]
/// values.
pub(crate) fn to_value(raw: &str) -> Option<serde_json::Value> {
    // Each value but the first follows one of these bytes, so their number bounds the number of values without
    // parsing.
    let has_too_many =
        |raw: &str| memchr::memchr3_iter(b',', b'[', b':', raw.as_bytes()).count() > MAX_VALUES;
    if raw.len() > MAX_VALUES && has_too_many(raw) {
        return None;
    }
    if let Ok(value) = serde_json::from_str(raw) {
        return Some(value);
    }
    let node = read(raw, MAX_JSON_DEPTH).ok()?;
    serde_json::from_str(&write::json_in_range(&node)).ok()
}

/// A JSON value, and the text it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node<'a> {
    /// The decoded value.
    pub(crate) value: Value<'a>,
    /// The text, without white space around it.
    pub(crate) raw: &'a str,
    /// Whether `serde_json` reads `raw` into a `Value` of the same meaning.
    pub(crate) clean: bool,
}

/// A decoded JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// The text of a number, or `NaN`, `Infinity`, `-Infinity`.
    Number(&'a str),
    /// A decoded string.
    String(JsonString<'a>),
    /// An array.
    Array(Vec<Node<'a>>),
    /// An object in the order of the text. Of duplicate keys only the last value is kept (E26).
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// A JSON string that may begin with an unpaired low surrogate and end with an unpaired high one.
///
/// Producers that cut an answer between UTF-16 units send the halves of one character in two deltas, so a half at the
/// edge may find its other half. A lone half elsewhere is U+FFFD in `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonString<'a> {
    /// The string without the halves at its edges.
    pub(crate) text: Cow<'a, str>,
    /// The first unit, before `text`, if it is a lone low surrogate.
    pub(crate) low: Option<u16>,
    /// The last unit, after `text`, if it is a lone high surrogate.
    pub(crate) high: Option<u16>,
}

/// Why this reader refuses a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeError {
    /// A byte that is not valid there.
    Syntax {
        /// The offset of the byte.
        offset: usize,
    },
    /// The input ended before its value did.
    Truncated {
        /// The length of the input.
        offset: usize,
    },
    /// More values than [`MAX_VALUES`].
    TooMany {
        /// The offset of the first value too many.
        offset: usize,
    },
    /// An array or object deeper than allowed.
    TooDeep {
        /// The offset at which it opens.
        offset: usize,
    },
}

impl<'a> Node<'a> {
    /// The last value of a key; `None` if the object does not have the key, or the node is not an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node)
    }

    /// Whether this is `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value of `true` or `false`.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }

    /// The string, with the surrogate halves at its edges.
    pub(crate) fn as_str(&self) -> Option<&JsonString<'a>> {
        match &self.value {
            Value::String(string) => Some(string),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }

    /// The string, with lone surrogates as U+FFFD.
    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        self.as_str().map(JsonString::to_cow)
    }

    /// The elements of an array.
    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match &self.value {
            Value::Array(items) => Some(items),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }
    }

    /// The entries of a list, or of what servers send in its place: one entry, or an object with the positions as keys, which
    /// is empty for an empty list (E22).
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Self> {
        self.entries_at().map(|(_, entry)| entry)
    }

    /// The same, with the positions that are keys.
    pub(crate) fn entries_at(&self) -> impl Iterator<Item = (Option<i64>, &Self)> {
        let is_position =
            |(key, _): &(Cow<'_, str>, Self)| key.bytes().all(|byte| byte.is_ascii_digit());
        let (items, fields) = match &self.value {
            Value::Array(items) => (items.as_slice(), &[][..]),
            Value::Object(fields) if fields.iter().all(is_position) => (&[][..], fields.as_slice()),
            Value::Object(_) => (std::slice::from_ref(self), &[][..]),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                (&[][..], &[][..])
            }
        };
        let fields = fields.iter().map(|(key, value)| (key.parse().ok(), value));
        // Lua writes the fields of an object in any order.
        let mut fields: Vec<(Option<i64>, &Self)> = fields.collect();
        fields.sort_by_key(|(position, _)| *position);
        items.iter().map(|item| (None, item)).chain(fields)
    }

    /// The fields of an object, in the order of the text.
    pub(crate) fn as_object(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match &self.value {
            Value::Object(fields) => Some(fields),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => None,
        }
    }

    /// The exact integer, in any notation: `5`, `5.0`, `1.7e9`, `" 5 "`.
    pub(crate) fn as_u64_lenient(&self) -> Option<u64> {
        match number::integral(self.numeral()?)? {
            (true, 1..) => None,
            (_, magnitude) => Some(magnitude),
        }
    }

    /// The exact integer, in any notation: `-5`, `-5.0`, `1.7e9`, `" -5 "`.
    pub(crate) fn as_i64_lenient(&self) -> Option<i64> {
        match number::integral(self.numeral()?)? {
            (true, magnitude) => 0_i64.checked_sub_unsigned(magnitude),
            (false, magnitude) => i64::try_from(magnitude).ok(),
        }
    }

    /// The nearest finite number of a number or a numeric string.
    pub(crate) fn as_f64_lenient(&self) -> Option<f64> {
        self.numeral()?
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }

    /// The JSON text of an object; `None` for any other value.
    pub(crate) fn object_json(&self) -> Option<Cow<'a, str>> {
        matches!(self.value, Value::Object(_)).then(|| self.to_json())
    }

    /// Whether the value is set to something: gateways that serialize every field send an empty error in good chunks
    /// (X3).
    pub(crate) fn is_set(&self) -> bool {
        match &self.value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Number(raw) => *raw != "0",
            Value::Bool(true) => true,
        }
    }

    /// Whether the value is set, and if it is an object, any of its fields: typed servers write each field of an absent one.
    pub(crate) fn has_content(&self) -> bool {
        match self.as_object() {
            Some(fields) => fields.iter().any(|(_, value)| value.has_content()),
            None => self.is_set(),
        }
    }

    /// The string as a fragment, with the surrogate halves at its edges.
    pub(crate) fn fragment(&self) -> Option<Fragment<'a>> {
        self.as_str().map(|string| Fragment {
            text: string.text.clone(),
            low: string.low,
            high: string.high,
        })
    }

    /// Whether a `Value` has room for all numbers in the node.
    pub(crate) fn is_in_range(&self) -> bool {
        match &self.value {
            Value::Null | Value::Bool(_) | Value::String(_) => true,
            Value::Number(raw) => number::in_range(raw),
            Value::Array(items) => items.iter().all(Self::is_in_range),
            Value::Object(fields) => fields.iter().all(|(_, node)| node.is_in_range()),
        }
    }

    /// The JSON text of this node: `raw` if it is clean, otherwise written anew without white space.
    ///
    /// `NaN` and the infinities become `null`, and lone surrogates U+FFFD. Other numbers keep their text. What
    /// `serde_json` cannot read is left out: an array or object beyond its recursion limit becomes `null`, and a key
    /// with its private name is dropped with its value.
    pub(crate) fn to_json(&self) -> Cow<'a, str> {
        if self.clean {
            Cow::Borrowed(self.raw)
        } else {
            Cow::Owned(write::json(self))
        }
    }

    /// The text of a number, or of a string that contains a number.
    fn numeral(&self) -> Option<&str> {
        let text = match &self.value {
            Value::Number(raw) => raw,
            Value::String(JsonString {
                text,
                low: None,
                high: None,
            }) => text.trim(),
            Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(_) => return None,
        };
        (number::len(text) == Ok(text.len())).then_some(text)
    }
}

impl<'a> JsonString<'a> {
    /// The string, with lone surrogates as U+FFFD.
    pub(crate) fn to_cow(&self) -> Cow<'a, str> {
        if self.low.is_none() && self.high.is_none() {
            return self.text.clone();
        }
        let replacement = char::REPLACEMENT_CHARACTER;
        let low = self.low.map(|_| replacement);
        let high = self.high.map(|_| replacement);
        low.into_iter()
            .chain(self.text.chars())
            .chain(high)
            .collect()
    }

    /// Whether there is neither text nor half a character.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.low.is_none() && self.high.is_none()
    }
}
