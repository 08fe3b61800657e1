//! Objects as raw JSON: their fields, and what several objects of one unknown field add up to (E24).

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{json_text::differ_in_numbers_only, limits::MAX_FIELDS};

/// The longest object that is merged with a later one, which bounds the work for each event. A longer one is replaced.
const MAX_MERGED_BYTES: usize = 4096;

/// The value of a field after a later one has arrived: of two objects the last value of each of their fields, in which null and values
/// without content replace nothing. `None` if that is the later value.
pub(crate) fn merged(known: &str, later: &str) -> Option<String> {
    let is_object = |raw: &str| raw.starts_with('{');
    if known.len() > MAX_MERGED_BYTES || !is_object(known) || !is_object(later) {
        return None;
    }
    // Such as the times that llama.cpp sends with each token. Two of them are not worth being parsed.
    if differ_in_numbers_only(known, later) {
        return None;
    }
    let mut fields = raw_pairs(known);
    let later = raw_pairs(later);
    let is_missing = |(key, raw): &(_, &str)| {
        let in_later = later.iter().rev().find(|(other, _)| other == key);
        in_later.is_none_or(|(_, later)| replaces_nothing(raw, later))
    };
    if !fields.iter().any(is_missing) {
        return None;
    }
    for (key, raw) in later {
        let is_full = fields.len() >= MAX_FIELDS;
        match fields.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) if replaces_nothing(known, raw) => {}
            Some((_, known)) => *known = raw,
            None if is_full => {}
            None => fields.push((key, raw)),
        }
    }
    let mut object = String::new();
    write_object(&mut object, &fields);
    Some(object)
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
    // Without an early exit, the compiler vectorizes this loop.
    let is_special = |byte| matches!(byte, 0..=0x1F | b'"' | b'\\');
    if name.bytes().fold(false, |any, byte| any | is_special(byte)) {
        object.push_str(&serde_json::Value::from(name).to_string());
        return;
    }
    object.push('"');
    object.push_str(name);
    object.push('"');
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
        ];
        for (known, later, expected) in rows {
            assert_eq!(merged(known, later).as_deref(), expected, "{known} {later}");
        }
    }
}
