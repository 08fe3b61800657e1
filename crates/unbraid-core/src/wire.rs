//! `Serialize` and `Deserialize` in the wire's shape: the JSON that a server would send, without fields that are absent.

mod message;
mod outcome;
mod usage;

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Value, value::RawValue};

use crate::json_text::Json;

/// Raw parts keep every digit, which only `serde_json` can do: it recognizes [`RawValue`].
impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw =
            |json: Json<'_>| RawValue::from_string(json.into_text()).map_err(S::Error::custom);
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Raw(text) => raw(Json::Raw(Cow::Borrowed(text)))?.serialize(serializer),
            Self::Joined(lists) => raw(Json::Joined(lists.clone()))?.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(key, field)| (key, field)))
            }
        }
    }
}

/// Drops the fields that are `null`, of the object itself and of objects in its lists.
fn without_nulls(json: Json<'_>) -> Json<'_> {
    match json {
        Json::Object(mut fields) => {
            fields.retain(|(_, field)| !matches!(field, Json::Value(Value::Null)));
            let field = |(key, field)| (key, without_nulls(field));
            Json::Object(fields.into_iter().map(field).collect())
        }
        Json::List(items) => Json::List(items.into_iter().map(without_nulls).collect()),
        Json::Value(Value::Object(mut fields)) => {
            fields.retain(|_, field| !field.is_null());
            Json::Value(Value::Object(fields))
        }
        other @ (Json::Value(_) | Json::Raw(_) | Json::Joined(_)) => other,
    }
}

#[cfg(test)]
mod tests;
