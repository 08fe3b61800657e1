//! JSON objects whose values are JSON text, so that numbers keep their digits.

use std::collections::BTreeSet;

use serde_json::{Value, value::RawValue};

/// An object under construction. The first value of a name counts.
#[derive(Debug, Default)]
pub(super) struct Object {
    text: String,
    names: BTreeSet<String>,
}

impl Object {
    pub(super) fn raw(mut self, name: &str, json: &str) -> Self {
        self.push(name, json);
        self
    }

    pub(super) fn text(self, name: &str, text: &str) -> Self {
        self.raw(name, &Value::from(text).to_string())
    }

    /// Adds a text, unless there is none.
    pub(super) fn optional(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// Adds a list, unless it is empty.
    pub(super) fn list(self, name: &str, entries: &[String]) -> Self {
        match entries {
            [] => self,
            _ => self.raw(name, &array(entries)),
        }
    }

    /// Adds the fields whose names are not in use.
    pub(super) fn fields<K: AsRef<str>>(mut self, fields: &[(K, K)]) -> Self {
        for (name, json) in fields {
            self.push(name.as_ref(), json.as_ref());
        }
        self
    }

    fn push(&mut self, name: &str, json: &str) {
        if !self.names.insert(name.to_owned()) {
            return;
        }
        let comma = if self.text.is_empty() { "" } else { "," };
        let name = Value::from(name);
        self.text.extend([comma, &name.to_string(), ":", json]);
    }

    pub(super) fn finish(self) -> String {
        format!("{{{}}}", self.text)
    }
}

pub(super) fn array(entries: &[String]) -> String {
    format!("[{}]", entries.join(","))
}

/// The fields of an object in their order, with their values as JSON text; none for any other text.
pub(super) fn fields(json: &str) -> Vec<(String, String)> {
    struct Fields(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Fields {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Fields;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<M: serde::de::MapAccess<'de>>(
                    self,
                    mut map: M,
                ) -> Result<Fields, M::Error> {
                    let mut fields = Vec::new();
                    while let Some((name, json)) = map.next_entry::<String, Box<RawValue>>()? {
                        fields.push((name, json.get().to_owned()));
                    }
                    Ok(Fields(fields))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
    serde_json::from_str::<Fields>(json).map_or_else(|_| Vec::new(), |fields| fields.0)
}

/// The entries of a list as JSON text; none for any other text.
pub(super) fn entries(json: &str) -> Vec<String> {
    let entries: Vec<Box<RawValue>> = serde_json::from_str(json).unwrap_or_default();
    entries.iter().map(|entry| entry.get().to_owned()).collect()
}

/// The text of a field of an object.
pub(super) fn text_field(json: &str, name: &str) -> Option<String> {
    let fields = fields(json).into_iter();
    let mut own = fields.filter(|(known, _)| known == name);
    own.find_map(|(_, json)| serde_json::from_str(&json).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_text_and_the_first_of_a_name_counts() {
        let more = [("b", "1.50"), ("a", "2")];
        let object = Object::default().text("a", "x\"").fields(&more);
        let object = object.list("c", &[]).optional("d", None);
        assert_eq!(object.finish(), r#"{"a":"x\"","b":1.50}"#);
    }

    #[test]
    fn fields_and_entries_are_read_as_text() {
        assert_eq!(fields(r#"{"a": 1.50}"#), [("a".into(), "1.50".into())]);
        assert_eq!(fields("[]"), []);
        assert_eq!(entries(r#"[1.50,{"a": []}]"#), ["1.50", r#"{"a": []}"#]);
        assert_eq!(text_field(r#"{"a":"x"}"#, "a").as_deref(), Some("x"));
    }
}
