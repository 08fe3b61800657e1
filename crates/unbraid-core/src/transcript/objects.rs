//! Objects as raw JSON: their fields, and what several objects of one unknown field add up to (E24).

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{json_text::differ_in_numbers_only, limits::MAX_FIELDS};

/// The longest object that several ones are merged to. Beyond it the last one counts.
const MAX_MERGED_BYTES: usize = 4096;

/// How long it may be if the last one is short. A known object is read again for each later one, so this bounds the work for each
/// byte that arrives.
const MIN_MERGED_BYTES: usize = 1024;
const MERGED_RATIO: usize = 16;

/// The value of a field after a later one has arrived: of two objects the last value of each of their fields, in which null and values
/// without content replace nothing. `None` if that is the later value.
pub(crate) fn merged(known: &str, later: &str) -> Option<String> {
    let mut value = Value::new(known);
    value.replace(later);
    match value {
        Value::Raw(_) => None,
        Value::Object(object) => Some(object.to_json()),
    }
}

/// The value of an unknown field. What several objects add up to has parts of their texts, and is written once: each of any number of
/// short ones would be a copy of all of it.
pub(super) enum Value<'a> {
    Raw(Cow<'a, str>),
    Object(Object<'a>),
}

pub(super) struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Value<'a> {
    pub(super) fn new(raw: &'a str) -> Self {
        Self::Raw(Cow::Borrowed(raw))
    }

    /// Takes a later value.
    pub(super) fn replace(&mut self, later: &'a str) {
        let known = std::mem::replace(self, Self::new(later));
        if let Some(object) = known.merged(later) {
            *self = Self::Object(object);
        }
    }

    /// `None` if the later value is what counts.
    fn merged(self, later: &'a str) -> Option<Object<'a>> {
        let is_object = |raw: &str| raw.starts_with('{');
        if !is_object(later) || later.len() > MAX_MERGED_BYTES {
            return None;
        }
        let max = (later.len() * MERGED_RATIO).clamp(MIN_MERGED_BYTES, MAX_MERGED_BYTES);
        let known = match self {
            Self::Raw(Cow::Borrowed(raw)) if is_object(raw) && raw.len() <= max => {
                // Such as the times that llama.cpp sends with each token. They are not worth being parsed.
                if differ_in_numbers_only(raw, later) {
                    return None;
                }
                Object(raw_pairs(raw))
            }
            Self::Object(object) if object.json_len() <= max => object,
            Self::Raw(_) | Self::Object(_) => return None,
        };
        let merged = known.merged(raw_pairs(later))?;
        (merged.json_len() <= max).then_some(merged)
    }

    pub(super) fn into_json(self) -> Cow<'a, str> {
        match self {
            Self::Raw(raw) => raw,
            Self::Object(object) => object.to_json().into(),
        }
    }
}

impl<'a> Object<'a> {
    /// `None` if nothing of this one remains.
    fn merged(mut self, later: Vec<(Cow<'a, str>, &'a str)>) -> Option<Self> {
        // Of equal keys the last one counts (E26).
        let is_missing = |(key, raw): &(_, &str)| {
            let in_later = later.iter().rev().find(|(other, _)| other == key);
            in_later.is_none_or(|(_, later)| replaces_nothing(raw, later))
        };
        if !self.0.iter().any(is_missing) {
            return None;
        }
        for (key, raw) in later {
            let is_full = self.0.len() >= MAX_FIELDS;
            match self.0.iter_mut().rev().find(|(known, _)| *known == key) {
                Some((_, known)) if replaces_nothing(known, raw) => {}
                Some((_, known)) => *known = raw,
                None if is_full => {}
                None => self.0.push((key, raw)),
            }
        }
        Some(self)
    }

    fn to_json(&self) -> String {
        let mut json = String::new();
        write_object(&mut json, &self.0);
        json
    }

    /// The length of its JSON text.
    fn json_len(&self) -> usize {
        let fields = self.0.iter();
        let lengths = fields.map(|(key, raw)| quoted_len(key) + ":,".len() + raw.len());
        "{".len() + lengths.sum::<usize>()
    }
}

/// Whether a later value leaves a known one as it is.
fn replaces_nothing(known: &str, later: &str) -> bool {
    let is_nothing = |raw: &str| raw == "null" || is_void(raw);
    is_nothing(later) && !is_nothing(known)
}

/// Whether a value holds nothing: an empty string, list or object. In place of an absent field, servers send one after the value
/// (E24).
pub(crate) fn is_void(raw: &str) -> bool {
    let inner = |open, close| raw.strip_prefix(open)?.strip_suffix(close);
    let inner = inner('{', '}').or_else(|| inner('[', ']'));
    raw == "\"\"" || inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// Appends the fields as one JSON object.
pub(super) fn write_object<K, V>(object: &mut String, fields: &[(K, V)])
where
    K: AsRef<str>,
    V: AsRef<str>,
{
    for (at, (key, raw)) in fields.iter().enumerate() {
        object.push(if at == 0 { '{' } else { ',' });
        push_quoted(object, key.as_ref());
        object.push(':');
        object.push_str(raw.as_ref());
    }
    object.push('}');
}

/// Writes a name as a JSON string; hardly any needs an escape.
fn push_quoted(object: &mut String, name: &str) {
    if has_special(name) {
        object.push_str(&serde_json::Value::from(name).to_string());
        return;
    }
    object.push('"');
    object.push_str(name);
    object.push('"');
}

/// The length of a name as a JSON string.
fn quoted_len(name: &str) -> usize {
    match has_special(name) {
        true => serde_json::Value::from(name).to_string().len(),
        false => name.len() + 2,
    }
}

/// Whether a JSON string has escapes in place of some of the characters.
fn has_special(name: &str) -> bool {
    // Without an early exit, the compiler vectorizes this loop.
    let is_special = |byte| matches!(byte, 0..=0x1F | b'"' | b'\\');
    name.bytes().fold(false, |any, byte| any | is_special(byte))
}

/// The fields of an object, with their raw values; none for text that is not an object.
pub(crate) fn raw_pairs(object: &str) -> Vec<(Cow<'_, str>, &str)> {
    serde_json::from_str::<Pairs<'_>>(object).map_or_else(|_| Vec::new(), |pairs| pairs.0)
}

struct Pairs<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'a> Visitor<'a> for PairsVisitor {
            type Value = Pairs<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Pairs<'a>, M::Error> {
                let mut pairs = Vec::new();
                while let Some((key, raw)) = map.next_entry::<Cow<'a, str>, &'a RawValue>()? {
                    pairs.push((key, raw.get()));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e24_objects_have_the_last_value_of_each_of_their_fields() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_MERGED_BYTES));
        let rows = [
            (
                r#"{"a":1,"b":2}"#,
                r#"{"a":3,"c":4}"#,
                Some(r#"{"a":3,"b":2,"c":4}"#),
            ),
            (
                r#"{"a":{"x":1}}"#,
                r#"{"b":{"y":2}}"#,
                Some(r#"{"a":{"x":1},"b":{"y":2}}"#),
            ),
            (
                r#"{"a":1,"b":2}"#,
                r#"{"b":null}"#,
                Some(r#"{"a":1,"b":2}"#),
            ),
            (
                r#"{"a":1,"b":[2]}"#,
                r#"{"a":3,"b":[]}"#,
                Some(r#"{"a":3,"b":[2]}"#),
            ),
            (r#"{"a":1}"#, r#"{"a":2,"b":3}"#, None),
            (r#"{"a":null}"#, r#"{"a":null}"#, None),
            (r#"{"a":1}"#, r#"{"a":null,"a":2}"#, None),
            ("{}", r#"{"a":1}"#, None),
            (r#"{"a":1}"#, "[1]", None),
            ("[1]", r#"{"a":1}"#, None),
            (r#"{"a":1}"#, "\"x\"", None),
            (&long, r#"{"b":1}"#, None),
            (r#"{"b":1}"#, &long, None),
            (
                r#"{"a":1,"a":2,"b":1}"#,
                r#"{"a":3}"#,
                Some(r#"{"a":1,"a":3,"b":1}"#),
            ),
        ];
        for (known, later, expected) in rows {
            assert_eq!(merged(known, later).as_deref(), expected, "{known} {later}");
        }
    }

    /// The fields of the completion are merged as they arrive, those of a choice together.
    #[test]
    fn e24_objects_add_up_to_the_same_one_by_one_and_together() {
        let key = |n: usize| ["a", "é", "\\\"", "\\n", "key"][n % 5].repeat(1 + n % 7);
        let object = |n: usize| {
            let value = "x".repeat(n * n % 700);
            let (first, second) = (key(n), key(n * 3 + 1));
            format!("{{\"{first}\": \"{value}\",\"{second}\":{n}}}")
        };
        let objects: Vec<String> = (0..2000).map(object).collect();
        let mut together = Value::new("{}");
        let (mut one_by_one, mut lengths) = ("{}".to_owned(), Vec::new());
        for later in &objects {
            one_by_one = merged(&one_by_one, later).unwrap_or_else(|| later.clone());
            lengths.push(one_by_one.len());
            together.replace(later);
        }
        assert_eq!(together.into_json(), one_by_one);
        let is_bounded = |length: &&usize| **length > MIN_MERGED_BYTES;
        assert!(lengths.iter().filter(is_bounded).count() > 100);
        assert!(lengths.iter().all(|length| *length <= MAX_MERGED_BYTES));
    }

    #[test]
    fn e24_a_short_object_is_not_merged_with_a_long_one() {
        let known = |length| format!("{{\"a\":\"{}\"}}", "x".repeat(length));
        let short = r#"{"b":1}"#;
        assert!(merged(&known(1010), short).is_some());
        assert_eq!(merged(&known(1011), short), None, "the result is too long");
        assert_eq!(merged(&known(1100), short), None);
        let long = format!("{{\"b\":\"{}\"}}", "y".repeat(100));
        assert!(merged(&known(1500), &long).is_some());
        assert_eq!(merged(&known(2000), &long), None);
    }
}
