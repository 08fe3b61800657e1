//! Parses usage objects.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Fields;
use crate::{limits::MAX_VALUES, node::to_value};

/// The fields of a usage object; `None` for an empty text and for anything that is not an object.
pub(in crate::usage) fn parse(raw: &str) -> Option<Fields> {
    if raw.is_empty() {
        return None;
    }
    let short = Some(raw).filter(|raw| raw.len() <= MAX_VALUES);
    let report = short.and_then(|raw| serde_json::from_str(raw).ok());
    match report.map(|Report(value)| value).or_else(|| to_value(raw)) {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// A value that is read as `serde_json` reads it, but whose objects have room for the usual number of fields at once.
struct Report(Value);

impl<'de> Deserialize<'de> for Report {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReportVisitor).map(Self)
    }
}

struct ReportVisitor;

impl<'de> Visitor<'de> for ReportVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("usage")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Report(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        const USUAL_FIELDS: usize = 7; // a table has room for so many, or for twice as many
        let mut fields = Fields::with_capacity(USUAL_FIELDS);
        while let Some((key, Report(value))) = entries.next_entry::<String, _>()? {
            // `serde_json` gives a private name of its own a meaning.
            if key.starts_with('$') {
                return Err(A::Error::custom("a private name"));
            }
            fields.insert(key, value);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_as_serde_json_reads_it() {
        let deep = |levels| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let many: String = (0..40).map(|n| format!("\"{n}\":{n},")).collect();
        for raw in [
            "{}",
            "[1]",
            "null",
            "{\"a\":1",
            "{\"a\":01}",
            "{\"a\":1,\"b\":{\"c\":[null,true,\"x\\n\",-1,1.50,{}]},\"a\":2}",
            "{\"a\":1e400,\"b\":12345678901234567890123,\"c\":-0,\"d\":1E2}",
            "{\"a\":\"\\ud83d\",\"\\u0062\":\"\\ud83d\\ude00\"}",
            "{\"$serde_json::private::RawValue\":\"{\\\"a\\\":1}\"}",
            "{\"a\":{\"$serde_json::private::RawValue\":\"2\"},\"$b\":1}",
            &deep(127),
            &deep(128),
            &format!("{{{many}\"z\":1}}"),
        ] {
            let expected = match to_value(raw) {
                Some(Value::Object(fields)) => Some(fields),
                _ => None,
            };
            let text = |fields| serde_json::to_string(fields).unwrap();
            assert_eq!(
                parse(raw).as_ref().map(text),
                expected.as_ref().map(text),
                "{raw}"
            );
        }
    }
}
