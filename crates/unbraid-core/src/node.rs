//! A tolerant JSON reader, for the chunks that serde_json refuses.
//!
//! It takes what producers are known to send and nothing more: raw control characters and invalid escapes in strings,
//! lone surrogate escapes, `NaN` and the infinities, deep nesting. Each of them costs the node
//! and its ancestors the mark [`Node::clean`], so that a caller may pass untouched parts on as they came. A number of
//! any size is clean: raw JSON keeps all of its digits, and only a `Value` has no room for them.

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

pub(crate) use compact::compact;
pub(crate) use raw::{is_doubtful, may_overflow};

#[cfg(test)]
mod tests;

/// Reads one value, with white space before it allowed, and tells how many bytes were used.
///
/// What follows the value is not looked at. A `max_depth` beyond 512 counts as 512.
///
/// # Errors
///
/// The first offence, by the byte offset at which it stands.
pub(crate) fn read_prefix(input: &str, max_depth: usize) -> Result<(Node<'_>, usize), NodeError> {
    let mut reader = Reader::new(input, max_depth);
    let node = reader.value()?;
    Ok((node, reader.used()))
}

/// Reads one value that fills the input, with white space around it allowed.
///
/// # Errors
///
/// As [`read_prefix`], and a syntax error at the first byte after the value.
pub(crate) fn read(input: &str, max_depth: usize) -> Result<Node<'_>, NodeError> {
    let mut reader = Reader::new(input, max_depth);
    let node = reader.value()?;
    reader.end()?;
    Ok(node)
}

/// Reads one value as [`read`] does, and refuses what only this reader tolerates: the text has to be JSON by its grammar.
///
/// Lone surrogate escapes and numbers of any size are JSON.
///
/// # Errors
///
/// As [`read`], and a syntax error at the end of a text that is not JSON.
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

/// Raw JSON that the wire brought, as a value.
///
/// A number that a `Value` has no room for is the nearest `f64`, and null beyond the largest of them. Lone surrogates
/// become U+FFFD. `None` for text that is not JSON, nested too deep, or made of more than [`MAX_VALUES`].
pub(crate) fn to_value(raw: &str) -> Option<serde_json::Value> {
    // Each value but the first stands behind one of these.
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

/// A JSON value and the text it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node<'a> {
    /// What the text means.
    pub(crate) value: Value<'a>,
    /// The text, without outer white space.
    pub(crate) raw: &'a str,
    /// Whether serde_json reads `raw` as it stands into a `Value` of the same meaning.
    pub(crate) clean: bool,
}

/// What a JSON text means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written, or `NaN`, `Infinity`, `-Infinity`.
    Number(&'a str),
    /// A string, decoded.
    String(JsonString<'a>),
    /// An array.
    Array(Vec<Node<'a>>),
    /// An object in the order of the wire; of duplicate keys the last value alone (E26).
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// A JSON string that may start with an unpaired low surrogate and end with an unpaired high one.
///
/// Producers that cut an answer between UTF-16 units send the halves of one character in two deltas; only a half at
/// the edge can find its partner. A lone half elsewhere stands as U+FFFD in `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonString<'a> {
    /// The string without the halves at its edges.
    pub(crate) text: Cow<'a, str>,
    /// The first unit, if it was a lone low surrogate: it stands before `text`.
    pub(crate) low: Option<u16>,
    /// The last unit, if it was a lone high surrogate: it stands after `text`.
    pub(crate) high: Option<u16>,
}

/// Why a text is no value, not even to this reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeError {
    /// A byte that fits nowhere.
    Syntax {
        /// Where it stands.
        offset: usize,
    },
    /// The input ended before its value did.
    Truncated {
        /// Where the input ended.
        offset: usize,
    },
    /// More values than [`MAX_VALUES`].
    TooMany {
        /// Where the first of too many starts.
        offset: usize,
    },
    /// An array or object deeper than allowed.
    TooDeep {
        /// Where it opens.
        offset: usize,
    },
}

impl<'a> Node<'a> {
    /// The value of a key, the last one if the object has several; `None` if it has none or is no object.
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

    /// The truth value, of `true` and `false` only.
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

    /// The fields of an object, in the order of the wire.
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

    /// The exact integer, however it is written: `5`, `5.0`, `1.7e9`, `" 5 "`.
    pub(crate) fn as_u64_lenient(&self) -> Option<u64> {
        match number::integral(self.numeral()?)? {
            (true, 1..) => None,
            (_, magnitude) => Some(magnitude),
        }
    }

    /// The exact integer, however it is written: `-5`, `-5.0`, `1.7e9`, `" -5 "`.
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

    /// Whether the value is set: gateways that serialise every field send an empty error with good chunks (X3).
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

    /// The string as a fragment, with the surrogate halves at its edges.
    pub(crate) fn fragment(&self) -> Option<Fragment<'a>> {
        self.as_str().map(|string| Fragment {
            text: string.text.clone(),
            low: string.low,
            high: string.high,
        })
    }

    /// Whether a `Value` has room for every number in it.
    pub(crate) fn is_in_range(&self) -> bool {
        match &self.value {
            Value::Null | Value::Bool(_) | Value::String(_) => true,
            Value::Number(raw) => number::in_range(raw),
            Value::Array(items) => items.iter().all(Self::is_in_range),
            Value::Object(fields) => fields.iter().all(|(_, node)| node.is_in_range()),
        }
    }

    /// JSON text of this node: `raw` if it is clean, else written anew without white space.
    ///
    /// `NaN` and the infinities become `null`, lone surrogates U+FFFD; numbers stay as they were written. What serde_json has no way to read is left out: an array or object
    /// beyond its recursion limit is `null`, a key of its own private name goes with its value.
    pub(crate) fn to_json(&self) -> Cow<'a, str> {
        if self.clean {
            Cow::Borrowed(self.raw)
        } else {
            Cow::Owned(write::json(self))
        }
    }

    /// The JSON number of a number or a numeric string.
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
