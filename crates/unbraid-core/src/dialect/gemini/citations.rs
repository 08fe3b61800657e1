//! The citations of one candidate: each chunk has those of its own text (G17).

use super::super::reader::{entries, raw};
use crate::node::Node;

/// What the chunks so far cited.
#[derive(Default)]
pub(super) struct Citations {
    /// The name of the list; empty if `text` is something else.
    key: &'static str,
    /// The entries of the list with commas in between, or the last metadata that is not only a list. One text, so that not
    /// more is kept than has arrived, and its bytes are counted without a walk over the entries of all chunks.
    text: String,
}

impl Citations {
    /// Adds the metadata of a chunk. A list that repeats all citations before it replaces them.
    pub(super) fn add(&mut self, node: &Node<'_>) {
        let fields = node.as_object().unwrap_or_default();
        let list = match fields {
            [(key, list)] if &**key == "citations" => Some(("citations", list)),
            [(key, list)] if &**key == "citationSources" => Some(("citationSources", list)),
            _ => None,
        };
        let new = entries(list.map(|(_, list)| list));
        let Some((key, _)) = list.filter(|_| !new.is_empty()) else {
            *self = Self {
                key: "",
                text: raw(node).into_owned(),
            };
            return;
        };
        let new: Vec<_> = new.iter().map(raw).collect();
        let new = new.join(",");
        if self.key != key || self.is_repeated_by(&new) {
            *self = Self { key, text: new };
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

    /// How many bytes are kept.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn into_json(self) -> String {
        if self.key.is_empty() {
            return self.text;
        }
        format!("{{\"{}\":[{}]}}", self.key, self.text)
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
        assert_eq!(kept(&[one, sources]), sources);
        let other = r#"{"citations":[{"a":1}],"x":1}"#;
        assert_eq!(kept(&[one, other]), other);
        assert_eq!(kept(&[other, two]), two);
    }
}
