//! The fields of a JSON object as text, so that a copy with a few of them changed keeps the others to the letter.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Fields of an object. The API has about forty.
const MAX_FIELDS: usize = 4096;

/// The fields of an object, in their order. Of a repeated field the last counts, as for most servers.
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// The text of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter().rev();
        fields
            .find(|(known, _)| known == name)
            .map(|(_, raw)| raw.get())
    }

    /// The value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// The object with these fields set and those removed. All others keep their place and their text.
    pub(crate) fn encode(&self, changed: &[(&str, Cow<'_, str>)], removed: &[&str]) -> String {
        let change_of = |name: &str| changed.iter().find(|(changed, _)| *changed == name);
        let is_new = |name: &str| self.get(name).is_none();
        let kept = self
            .0
            .iter()
            .filter(|(name, _)| !removed.contains(&name.as_str()));
        let kept = kept.map(|(name, raw)| match change_of(name) {
            Some((_, raw)) => (name.as_str(), raw.as_ref()),
            None => (name.as_str(), raw.get()),
        });
        let new = changed.iter().filter(|(name, _)| is_new(name));
        let new = new.map(|(name, raw)| (*name, raw.as_ref()));
        let length = self
            .0
            .iter()
            .map(|(name, raw)| name.len() + raw.get().len() + 4)
            .sum();
        let mut text = String::with_capacity(length);
        text.push('{');
        for (name, raw) in kept.chain(new) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&Value::from(name).to_string());
            text.push(':');
            text.push_str(raw);
        }
        text.push('}');
        text
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    if fields.len() == MAX_FIELDS {
                        return Err(A::Error::custom("too many fields"));
                    }
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_the_text_and_the_place_of_every_other_field() {
        let text = r#"{ "a" : 1.10, "b":[ 1 ], "a\"c":1e400, "b":2}"#;
        let fields: Fields = serde_json::from_str(text).unwrap();
        assert_eq!(fields.get("b"), Some("2"), "the last one counts");
        assert_eq!(
            fields.encode(&[("b", "3".into()), ("d", "4".into())], &["x"]),
            r#"{"a":1.10,"b":3,"a\"c":1e400,"b":3,"d":4}"#
        );
        assert_eq!(fields.encode(&[], &["a", "b"]), r#"{"a\"c":1e400}"#);
    }
}
