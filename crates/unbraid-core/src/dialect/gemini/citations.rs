//! The citations of one candidate: each chunk has those of its own text (G17).

use serde_json::Value;

use super::super::reader::{entries, raw};
use crate::{limits::MAX_FIELDS, node::Node};

/// What the chunks so far cited.
#[derive(Default)]
pub(super) struct Citations {
    fields: Vec<Field>,
    /// How many bytes the fields have, so that they are counted without a walk over them at each chunk.
    bytes: usize,
}

#[derive(Default)]
struct Field {
    key: String,
    /// The entries of a list with commas in between, so that not more is kept than has arrived; or the value.
    text: String,
    is_list: bool,
}

impl Citations {
    /// Adds the metadata of a chunk.
    pub(super) fn add(&mut self, node: &Node<'_>) {
        for (key, value) in node.as_object().unwrap_or_default() {
            let list = match &**key {
                "citations" | "citationSources" if value.is_set() => entries(Some(value)),
                _ => &[],
            };
            self.change(key, |field| match list {
                [] => field.set(value),
                list => field.extend(list),
            });
        }
    }

    fn change(&mut self, key: &str, change: impl FnOnce(&mut Field)) {
        let known = self.fields.iter().position(|field| field.key == key);
        if known.is_none() {
            if self.fields.len() >= MAX_FIELDS {
                return;
            }
            self.bytes += key.len();
            self.fields.push(Field {
                key: key.to_owned(),
                ..Field::default()
            });
        }
        let at = known.unwrap_or(self.fields.len() - 1);
        if let Some(field) = self.fields.get_mut(at) {
            let before = field.text.len();
            change(field);
            self.bytes = (self.bytes + field.text.len()).saturating_sub(before);
        }
    }

    /// How many bytes are kept.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn into_json(self) -> String {
        let fields = self.fields.iter().map(|field| {
            let (key, text) = (Value::from(&*field.key), &field.text);
            if field.is_list {
                format!("{key}:[{text}]")
            } else {
                format!("{key}:{text}")
            }
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

impl Field {
    /// Sets the value. One without entries says nothing about those before it.
    fn set(&mut self, value: &Node<'_>) {
        let is_kept = self.is_list || (value.is_null() && !self.text.is_empty());
        if !is_kept {
            self.text = raw(value).into_owned();
        }
    }

    /// Adds the entries of a list. One that repeats all entries before it replaces them.
    fn extend(&mut self, list: &[Node<'_>]) {
        let new: Vec<_> = list.iter().map(raw).collect();
        let new = new.join(",");
        if !self.is_list || self.is_repeated_by(&new) {
            self.text = new;
            self.is_list = true;
        } else {
            self.text.push(',');
            self.text.push_str(&new);
        }
    }

    /// Whether entries begin with all that are kept. These are complete values, so a comma after them begins the next one.
    fn is_repeated_by(&self, new: &str) -> bool {
        let rest = new.strip_prefix(&*self.text);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{limits::MAX_JSON_DEPTH, node};

    fn kept(chunks: &[&str]) -> String {
        let mut citations = Citations::default();
        for chunk in chunks {
            citations.add(&node::read(chunk, MAX_JSON_DEPTH).unwrap());
        }
        citations.into_json()
    }

    #[test]
    fn g17_citations_of_each_chunk_are_added_and_repeated_ones_replaced() {
        let one = r#"{"citations":[{"a":1}]}"#;
        let two = r#"{"citations":[{"b":2}]}"#;
        let both = r#"{"citations":[{"a":1},{"b":2}]}"#;
        assert_eq!(kept(&[one, two]), both);
        assert_eq!(kept(&[one, two, both]), both);
        assert_eq!(kept(&[one, one]), one);
        // The text begins alike, and the list does not.
        let numbers = [r#"{"citations":[1]}"#, r#"{"citations":[12]}"#];
        assert_eq!(kept(&numbers), r#"{"citations":[1,12]}"#);
        let sources = r#"{"citationSources":[{"a":1}]}"#;
        let of_both_names = r#"{"citations":[{"a":1}],"citationSources":[{"a":1}]}"#;
        assert_eq!(kept(&[one, sources]), of_both_names);
    }

    #[test]
    fn g17_a_field_beside_the_citations_takes_none_of_them_away() {
        let one = r#"{"citations":[{"a":1}]}"#;
        let more = r#"{"citations":[{"b":2}],"x":1,"y":null}"#;
        let rest = r#"{"citations":[],"x":null,"y":2}"#;
        let all = r#"{"citations":[{"a":1},{"b":2}],"x":1,"y":2}"#;
        assert_eq!(kept(&[one, more, rest]), all);
        assert_eq!(kept(&[one, "null", "[]", "1"]), one);
        let none = r#"{"citations":[]}"#;
        assert_eq!(kept(&[none]), none);
        assert_eq!(kept(&[none, one]), one);
        let blank = r#"{"citations":{},"citationSources":{}}"#;
        let beside = r#"{"citations":[{"a":1}],"citationSources":{}}"#;
        assert_eq!(kept(&[one, blank]), beside);
    }
}
