//! Builds JSON text from values and raw JSON, so that JSON from the stream is printed unchanged.

mod numbers;

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use serde_json::{Map, Value, value::RawValue};

pub(crate) use numbers::{common_len, differ_in_integers_only, differ_in_numbers_only};

use crate::{
    limits::MAX_JSON_DEPTH,
    node::{self, compact, is_doubtful, to_value},
};

/// A JSON value, parts of which are raw JSON.
#[derive(Debug)]
pub(crate) enum Json<'a> {
    Value(Value),
    Raw(Cow<'a, str>),
    List(Vec<Self>),
    /// Several raw lists that form one. They are valid JSON.
    Joined(Vec<Cow<'a, str>>),
    Object(Fields<'a>),
}

/// The fields of an object, in the order of the output.
pub(crate) type Fields<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

impl<'a> Json<'a> {
    /// The fields of an object without raw parts; anything else has none.
    pub(crate) fn fields(value: Value) -> Fields<'a> {
        let Value::Object(fields) = value else {
            return Vec::new();
        };
        let field = |(key, value)| (Cow::Owned(key), Self::Value(value));
        fields.into_iter().map(field).collect()
    }

    /// Converts it to a value. A number that a `Value` has no room for becomes the nearest `f64`, or null beyond the range of
    /// `f64`.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Raw(raw) => parsed(&raw),
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Joined(lists) => {
                // Parsed separately, because together they may exceed the limit on the values of one field.
                let values = lists.iter().map(|list| parsed(list));
                let items = values.flat_map(|list| match list {
                    Value::Array(items) => items,
                    other => vec![other],
                });
                items.collect()
            }
            Self::Object(fields) => {
                let field =
                    |(key, value): (Cow<'_, str>, Self)| (key.into_owned(), value.into_value());
                Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
            }
        }
    }

    /// Converts it to text without white space. Numbers in raw parts keep their exact digits.
    pub(crate) fn into_text(self) -> String {
        let mut text = String::new();
        let _infallible = self.write(&mut text);
        text
    }

    /// Writes the same text, of which only single parts are in memory. Each write holds whole tokens or parts of one string.
    pub(crate) fn write(self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Self::Value(value) => write!(out, "{value}"),
            Self::Raw(raw) => out.write_str(&printable(&raw)),
            Self::List(items) => {
                out.write_char('[')?;
                for (position, item) in items.into_iter().enumerate() {
                    if position > 0 {
                        out.write_char(',')?;
                    }
                    item.write(out)?;
                }
                out.write_char(']')
            }
            Self::Joined(lists) => write_joined(&lists, out),
            Self::Object(fields) => {
                let mut object = ObjectWriter::begin(out)?;
                for (key, field) in fields {
                    field.write(object.key(&key)?)?;
                }
                object.end()
            }
        }
    }
}

/// Writes an object field by field.
pub(crate) struct ObjectWriter<'w> {
    out: &'w mut dyn Write,
    empty: bool,
}

impl<'w> ObjectWriter<'w> {
    pub(crate) fn begin(out: &'w mut dyn Write) -> Result<Self, fmt::Error> {
        out.write_char('{')?;
        Ok(Self { out, empty: true })
    }

    /// Writes a key, and returns where its value has to be written.
    pub(crate) fn key(&mut self, key: &str) -> Result<&mut dyn Write, fmt::Error> {
        if !std::mem::take(&mut self.empty) {
            self.out.write_char(',')?;
        }
        write!(self.out, "{}:", Value::from(key))?;
        Ok(self.out)
    }

    pub(crate) fn end(self) -> fmt::Result {
        self.out.write_char('}')
    }
}

fn write_joined(lists: &[Cow<'_, str>], out: &mut dyn Write) -> fmt::Result {
    out.write_char('[')?;
    let mut empty = true;
    for list in lists {
        let list = match is_doubtful(list) {
            true => printable(list),
            false => compact(list),
        };
        let items = list_items(&list);
        if items.is_empty() {
            continue;
        }
        if !std::mem::take(&mut empty) {
            out.write_char(',')?;
        }
        out.write_str(items)?;
    }
    out.write_char(']')
}

/// Raw JSON in a form that can be part of other JSON in one line. Text that is not JSON becomes a string, because updates
/// that were decoded elsewhere may contain anything.
fn printable(raw: &str) -> Cow<'_, str> {
    let is_json = || serde_json::from_str::<&RawValue>(raw).is_ok();
    if !is_doubtful(raw) && is_json() {
        return compact(raw);
    }
    match node::read(raw, MAX_JSON_DEPTH) {
        Ok(node) => Cow::Owned(compact(&node.to_json()).into_owned()),
        Err(_) => Cow::Owned(Value::from(raw).to_string()),
    }
}

/// The raw JSON between the brackets of a list.
pub(crate) fn list_items(list: &str) -> &str {
    let list = list.strip_prefix('[').unwrap_or(list);
    list.strip_suffix(']').unwrap_or(list).trim()
}

/// Converts raw JSON to a value. JSON with more than [`MAX_VALUES`](crate::limits::MAX_VALUES) values stays text.
#[doc(hidden)]
#[must_use]
pub fn parsed(raw: &str) -> Value {
    to_value(raw).unwrap_or_else(|| Value::from(raw))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn raw_parts_are_printed_unchanged_in_one_line() {
        let text = |raw: &str| Json::Raw(raw.into()).into_text();
        assert_eq!(text("{ \"a\":\n 1.50 }"), r#"{"a":1.50}"#);
        assert_eq!(
            text(r#"{"a":1e400,"a":"\u00e9"}"#),
            r#"{"a":1e400,"a":"\u00e9"}"#
        );
        assert_eq!(text(r#""\ud83d\ude00""#), r#""\ud83d\ude00""#);
        assert_eq!(text(r#"["\ud83d",NaN]"#), "[\"\u{FFFD}\",null]");
        assert_eq!(text("not JSON\n"), r#""not JSON\n""#);
        assert_eq!(
            text(r#"{"$serde_json::private::RawValue":"1","b":2}"#),
            r#"{"b":2}"#
        );
    }

    #[test]
    fn lists_are_joined_unchanged() {
        let lists = || {
            Json::Joined(vec![
                "[ ]".into(),
                "[1.0, [2]]".into(),
                "[]".into(),
                "[[]]".into(),
            ])
        };
        assert_eq!(lists().into_text(), "[1.0,[2],[]]");
        assert_eq!(lists().into_value(), json!([1.0, [2], []]));
        assert_eq!(Json::Joined(vec!["[]".into()]).into_text(), "[]");
    }

    #[test]
    fn values_and_raw_parts_make_one_object() {
        let mut fields = Json::fields(json!({"a": [1, null], "b": "\n"}));
        fields.push((
            "c\"".into(),
            Json::List(vec![Json::Raw("0.10".into()), Json::Value(json!({}))]),
        ));
        let text = Json::Object(fields).into_text();
        assert_eq!(text, r#"{"a":[1,null],"b":"\n","c\"":[0.10,{}]}"#);
    }
}
