//! Which citations of a message have arrived, to compare them with a complete list (D13).

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::CHOICE;
use crate::{
    dialect::reader::{Output, raw},
    limits::MAX_ENTRIES,
    node::{Node, Value},
};

/// What has arrived of the citations of a message: their parts and checksums, of the first [`MAX_ENTRIES`]. The citations themselves
/// are not kept.
#[derive(Default)]
pub(super) struct CitedParts(Vec<(i64, u64)>);

/// A citation with the number of its part.
pub(super) type Cited<'n, 'a> = (i64, &'n Node<'a>);

impl CitedParts {
    pub(super) fn note(&mut self, part: i64, citation: &Node<'_>) {
        if !self.is_full() {
            self.0.push((part, checksum(citation)));
        }
    }

    /// Whether there may be more of them than are known.
    fn is_full(&self) -> bool {
        self.0.len() >= MAX_ENTRIES
    }

    /// What a complete list has beyond the citations that have arrived, of one part or of all of them. `None` if it lacks one of
    /// these.
    fn missing<'n, 'a>(
        &self,
        whole: &[Cited<'n, 'a>],
        part: Option<i64>,
    ) -> Option<Vec<Cited<'n, 'a>>> {
        let mut arrived: HashMap<u64, usize> = HashMap::new();
        for (_, checksum) in self
            .0
            .iter()
            .filter(|(known, _)| part.is_none_or(|part| *known == part))
        {
            *arrived.entry(*checksum).or_default() += 1;
        }
        let mut missing = Vec::new();
        for (number, citation) in whole {
            match arrived.get_mut(&checksum(citation)) {
                Some(count) if *count > 0 => *count -= 1,
                Some(_) | None => missing.push((*number, *citation)),
            }
        }
        arrived.values().all(|count| *count == 0).then_some(missing)
    }

    /// Reports the citations of a complete list that have not arrived. False if the list lacks one that has.
    pub(super) fn complete<'a>(
        &mut self,
        whole: &[Cited<'_, 'a>],
        part: Option<i64>,
        output: &mut Output<'a>,
    ) -> bool {
        if whole.is_empty() || self.is_full() {
            return true;
        }
        let Some(missing) = self.missing(whole, part) else {
            return false;
        };
        for (number, citation) in missing {
            self.note(number, citation);
            output.entry(CHOICE, "annotations", &raw(citation));
        }
        true
    }
}

/// A checksum of a value. The order of its fields does not count, nor do those that are null: servers write a value anew.
fn checksum(node: &Node<'_>) -> u64 {
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    match &node.value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields =
                fields.map(|(key, value)| hash(&|hasher| (&**key, checksum(value)).hash(hasher)));
            fields.fold(1, u64::wrapping_add)
        }
        Value::Array(items) => hash(&|hasher| {
            items.iter().for_each(|item| checksum(item).hash(hasher));
        }),
        Value::String(text) => hash(&|hasher| text.text.hash(hasher)),
        Value::Number(_) | Value::Bool(_) | Value::Null => hash(&|hasher| raw(node).hash(hasher)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn d13_the_order_of_fields_and_nulls_do_not_count() {
        let checksum = |json: &str| checksum(&node::read(json, 16).unwrap());
        let same = [
            r#"{"a":[1,"x"],"b":{"c":true}}"#,
            r#"{"b":{"c":true,"d":null},"a":[1, "x"]}"#,
        ];
        assert_eq!(checksum(same[0]), checksum(same[1]));
        let others = [
            r#"{"a":["x",1],"b":{"c":true}}"#,
            r#"{"a":[1,"x"],"b":{"c":false}}"#,
            r#"{"a":[1,"x"]}"#,
            "{}",
            "[]",
        ];
        for other in others {
            assert_ne!(checksum(same[0]), checksum(other), "{other}");
        }
    }
}
