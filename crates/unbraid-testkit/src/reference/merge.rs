//! The deltas that strict mode rejects because they cannot be merged with the earlier ones (R11, R14).

use std::collections::BTreeMap;

use serde_json::Value;

/// The types of the fields of all messages so far.
#[derive(Debug, Default)]
pub(super) struct Merged(BTreeMap<u32, Tree>);

/// The type of a value.
#[derive(Debug)]
enum Tree {
    Text,
    /// A number or a boolean, which cannot be continued.
    Single,
    /// An object (`{`) by its keys, or an array (`[`) by the indices of its entries, or their positions.
    Several(char, BTreeMap<String, Self>),
}

impl Merged {
    /// Merges a delta into the message of its choice. Returns `false` if their types differ.
    pub(super) fn delta(&mut self, choice: u32, delta: &Value) -> bool {
        match (delta, self.0.get_mut(&choice)) {
            (Value::Null, _) => true,
            (Value::Object(_), Some(message)) => message.merge(delta),
            (Value::Object(_), None) => {
                self.0
                    .extend(Tree::first(delta).map(|message| (choice, message)));
                true
            }
            _ => false,
        }
    }
}

impl Tree {
    /// The type of the first value of a field. Null counts as absent.
    fn first(value: &Value) -> Option<Self> {
        let mut tree = match value {
            Value::Null => return None,
            Value::String(_) => Self::Text,
            Value::Number(_) | Value::Bool(_) => Self::Single,
            Value::Array(_) => Self::Several('[', BTreeMap::new()),
            Value::Object(_) => Self::Several('{', BTreeMap::new()),
        };
        if value.is_array() || value.is_object() {
            tree.merge(value);
        }
        Some(tree)
    }

    fn merge(&mut self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) | (Self::Text, Value::String(_)) => true,
            (Self::Several('{', known), Value::Object(fields)) => fields
                .iter()
                .all(|(key, value)| merge_at(known, key, value)),
            (Self::Several('[', known), Value::Array(items)) => {
                items.iter().enumerate().all(|(position, item)| {
                    let index = item.get("index").and_then(Value::as_i64);
                    let key = index
                        .map_or_else(|| format!("position {position}"), |index| index.to_string());
                    let mut item = item.clone();
                    if let (Some(_), Some(fields)) = (index, item.as_object_mut()) {
                        fields.remove("index"); // the key of the entry, repeated in every fragment
                    }
                    merge_at(known, &key, &item)
                })
            }
            _ => false,
        }
    }
}

fn merge_at(known: &mut BTreeMap<String, Tree>, key: &str, value: &Value) -> bool {
    if let Some(tree) = known.get_mut(key) {
        return tree.merge(value);
    }
    known.extend(Tree::first(value).map(|tree| (key.to_owned(), tree)));
    true
}
