//! Refuses deltas that strict mode cannot merge: a field changes its type, or its values cannot be appended (R11,
//! R14).

use std::collections::HashMap;

use crate::{
    dialect,
    limits::MAX_FIELDS,
    node::{Node, Value},
};

/// The types of all fields that the deltas of each choice have brought so far.
#[derive(Debug, Default)]
pub(super) struct MergeCheck {
    choices: HashMap<u32, FieldType>,
    field_count: usize,
    /// Pairs of a choice and a template: true once two matching chunks were merged.
    ///
    /// From then on a matching chunk needs no check. All of its fields are known, none of them is refused when it is
    /// repeated (the second merge proves that), and types never change.
    repeated: HashMap<(u32, usize), bool>,
    /// Whether every index is read as choice 0.
    pub(super) fold_choices: bool,
}

/// Why two deltas cannot be merged, in the words of the error.
type Refusal = &'static str;

const MISMATCH: Refusal = "merging: type mismatch";
const NOT_TEXT: Refusal = "merging: non-string property";

/// How many fields of a stream are remembered. A hostile server can invent names without end; a real one has fewer
/// than a hundred.
const MAX_FIELD_COUNT: usize = 1 << 16;

#[derive(Debug)]
enum FieldType {
    Text,
    Number,
    Bool,
    Object(Vec<(Box<str>, Self)>),
    List(Vec<(EntryKey, Self)>),
}

/// Which entry of a list an entry continues. Lists of indexed objects are merged by their index, as tool calls are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKey {
    Index(i64),
    Position(usize),
}

impl MergeCheck {
    /// Whether chunks of this choice that match this template need no check any more.
    #[inline]
    pub(super) fn can_skip(&self, choice: u32, template: usize) -> bool {
        self.repeated.get(&(choice, template)) == Some(&true)
    }

    /// Notes that a chunk of this choice was merged and matches this template.
    pub(super) fn note_template_match(&mut self, choice: u32, template: usize) {
        const MAX_PAIRS: usize = 4096; // a hostile server can use ever new choice indices
        let key = (choice, template);
        if let Some(is_repeated) = self.repeated.get_mut(&key) {
            *is_repeated = true;
        } else if self.repeated.len() < MAX_PAIRS {
            self.repeated.insert(key, false);
        }
    }

    /// Forgets all matches, because the numbers of the templates have changed.
    pub(super) fn forget_template_matches(&mut self) {
        self.repeated.clear();
    }

    /// Merges the deltas of a chunk, or of a list of chunks.
    pub(super) fn merge(&mut self, value: &Node<'_>) -> Result<(), Refusal> {
        match value.as_array() {
            Some(chunks) => chunks.iter().try_for_each(|chunk| self.chunk(chunk)),
            None => self.chunk(value),
        }
    }

    fn chunk(&mut self, chunk: &Node<'_>) -> Result<(), Refusal> {
        let elements = chunk.get("choices").and_then(Node::as_array);
        let elements = elements.unwrap_or_default();
        for (position, element) in elements.iter().enumerate() {
            // As in `assign_indices`, or a refusal would name another choice than the events do.
            let implied_index = if elements.len() > 1 { position } else { 0 };
            let Some(index) = dialect::index(element) else {
                continue; // E11: the entry belongs to no choice
            };
            let index = index.or_else(|| u32::try_from(implied_index).ok());
            let index = index.filter(|_| !self.fold_choices).unwrap_or(0);
            if let Some(delta) = element.get("delta").filter(|delta| !delta.is_null()) {
                self.delta(index, delta)?;
            }
        }
        Ok(())
    }

    fn delta(&mut self, index: u32, delta: &Node<'_>) -> Result<(), Refusal> {
        if delta.as_object().is_none() {
            return Err(MISMATCH); // a message is an object, so nothing else can be merged into it
        }
        let field_count = &mut self.field_count;
        match self.choices.get_mut(&index) {
            Some(message) => message.merge(delta, field_count),
            None => {
                let new_type = type_of(delta, field_count).map(|message| (index, message));
                self.choices.extend(new_type);
                Ok(())
            }
        }
    }
}

/// The type of a value that is seen for the first time; `None` for `null`, which counts as absent, and beyond the
/// limit on fields.
fn type_of(node: &Node<'_>, field_count: &mut usize) -> Option<FieldType> {
    // Beyond the limit nothing is remembered, so nothing is refused either: a stream is not ended for a guess.
    if *field_count >= MAX_FIELD_COUNT {
        return None;
    }
    let mut new_type = match &node.value {
        Value::Null => return None,
        Value::Bool(_) => FieldType::Bool,
        Value::Number(_) => FieldType::Number,
        Value::String(_) => FieldType::Text,
        Value::Array(_) => FieldType::List(Vec::new()),
        Value::Object(_) => FieldType::Object(Vec::new()),
    };
    *field_count += 1;
    // A value that is seen for the first time is never refused, so a conflict inside it is ignored.
    if let FieldType::List(_) | FieldType::Object(_) = new_type {
        let _ignored = new_type.merge(node, field_count);
    }
    Some(new_type)
}

impl FieldType {
    fn merge(&mut self, node: &Node<'_>, field_count: &mut usize) -> Result<(), Refusal> {
        match (self, &node.value) {
            (_, Value::Null) | (Self::Text, Value::String(_)) => Ok(()),
            (Self::Number, Value::Number(_)) | (Self::Bool, Value::Bool(_)) => Err(NOT_TEXT),
            (Self::Object(types), Value::Object(fields)) => {
                fields.iter().try_for_each(|(key, field)| {
                    let is_full = types.len() >= MAX_FIELDS;
                    let known_type = types.iter_mut().find(|(name, _)| **name == **key);
                    match known_type {
                        Some((_, known_type)) => known_type.merge(field, field_count),
                        // Fields beyond the limit are not checked: a missing refusal is better than unbounded memory.
                        None if is_full => Ok(()),
                        None => {
                            let new_type = type_of(field, field_count)
                                .map(|new_type| ((**key).into(), new_type));
                            types.extend(new_type);
                            Ok(())
                        }
                    }
                })
            }
            (Self::List(types), Value::Array(items)) => items
                .iter()
                .enumerate()
                .try_for_each(|(position, item)| list_item(types, position, item, field_count)),
            (Self::Text | Self::Number | Self::Bool | Self::Object(_) | Self::List(_), _) => {
                Err(MISMATCH)
            }
        }
    }
}

fn list_item(
    types: &mut Vec<(EntryKey, FieldType)>,
    position: usize,
    item: &Node<'_>,
    field_count: &mut usize,
) -> Result<(), Refusal> {
    let index = item.get("index").and_then(Node::as_i64_lenient);
    let entry = index.map_or(EntryKey::Position(position), EntryKey::Index);
    let is_full = types.len() >= MAX_FIELDS;
    match types.iter_mut().find(|(other, _)| *other == entry) {
        Some((_, FieldType::Object(types))) if index.is_some() => {
            // The index identifies the entry, and every fragment repeats it.
            types.retain(|(name, _)| &**name != "index");
            let mut known_type = FieldType::Object(std::mem::take(types));
            let result = known_type.merge(item, field_count);
            if let FieldType::Object(known_type) = known_type {
                *types = known_type;
            }
            result
        }
        Some((_, known_type)) => known_type.merge(item, field_count),
        None if is_full => Ok(()),
        None => {
            types.extend(type_of(item, field_count).map(|new_type| (entry, new_type)));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
