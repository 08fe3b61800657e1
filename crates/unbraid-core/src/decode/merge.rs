//! What strict mode refuses to merge: deltas whose fields change their type, or that cannot be appended (R11, R14).

use std::collections::HashMap;

use super::node::{Node, Value};
use crate::{dialect, limits::MAX_FIELDS};

/// The types of all fields that the deltas of each choice have brought so far.
#[derive(Debug, Default)]
pub(super) struct Merged {
    choices: HashMap<u32, Type>,
    known: usize,
    /// Whether the chunks of a choice that fit a template were merged twice. From then on such a chunk brings nothing
    /// new: its fields are known, none of them is refused when it comes again, and types never change.
    alike: HashMap<(u32, usize), bool>,
    /// Whether every index means choice 0.
    pub(super) folds: bool,
}

/// Why two deltas cannot be merged, in the words of the error.
type Refusal = &'static str;

const MISMATCH: Refusal = "merging: type mismatch";
const NOT_TEXT: Refusal = "merging: non-string property";

/// Fields that are remembered of a stream. A hostile server can invent names for ever; no real one has hundreds.
const MAX_KNOWN: usize = 1 << 16;

#[derive(Debug)]
enum Type {
    Text,
    Number,
    Bool,
    Object(Vec<(Box<str>, Self)>),
    List(Vec<(Entry, Self)>),
}

/// Which entry of a list an entry continues: lists of indexed objects are merged by their keys, as calls are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Index(i64),
    Position(usize),
}

impl Merged {
    /// Whether chunks of this choice that fit this template need no merging any more.
    #[inline]
    pub(super) fn is_alike(&self, choice: u32, template: usize) -> bool {
        self.alike.get(&(choice, template)) == Some(&true)
    }

    /// A chunk of this choice that fits this template was merged.
    pub(super) fn note_alike(&mut self, choice: u32, template: usize) {
        const KEPT: usize = 4096; // a hostile server can count its choices up for ever
        let key = (choice, template);
        if let Some(twice) = self.alike.get_mut(&key) {
            *twice = true;
        } else if self.alike.len() < KEPT {
            self.alike.insert(key, false);
        }
    }

    /// The templates have changed.
    pub(super) fn forget_alike(&mut self) {
        self.alike.clear();
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
            let missing = if elements.len() > 1 { position } else { 0 };
            let Some(index) = dialect::index(element) else {
                continue; // E11: no choice has it
            };
            let index = index.or_else(|| u32::try_from(missing).ok());
            let index = index.filter(|_| !self.folds).unwrap_or(0);
            if let Some(delta) = element.get("delta").filter(|delta| !delta.is_null()) {
                self.delta(index, delta)?;
            }
        }
        Ok(())
    }

    fn delta(&mut self, index: u32, delta: &Node<'_>) -> Result<(), Refusal> {
        if delta.as_object().is_none() {
            return Err(MISMATCH); // it would be merged into a message
        }
        let known = &mut self.known;
        match self.choices.get_mut(&index) {
            Some(message) => message.merge(delta, known),
            None => {
                let noted = note(delta, known).map(|message| (index, message));
                self.choices.extend(noted);
                Ok(())
            }
        }
    }
}

/// The type of a value that comes for the first time; `None` for null, which is absent, and where too much is known.
fn note(node: &Node<'_>, known: &mut usize) -> Option<Type> {
    if *known >= MAX_KNOWN {
        return None;
    }
    let mut noted = match &node.value {
        Value::Null => return None,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::Text,
        Value::Array(_) => Type::List(Vec::new()),
        Value::Object(_) => Type::Object(Vec::new()),
    };
    *known += 1;
    if let Type::List(_) | Type::Object(_) = noted {
        let _merged_into_nothing = noted.merge(node, known);
    }
    Some(noted)
}

impl Type {
    fn merge(&mut self, node: &Node<'_>, known: &mut usize) -> Result<(), Refusal> {
        match (self, &node.value) {
            (_, Value::Null) | (Self::Text, Value::String(_)) => Ok(()),
            (Self::Number, Value::Number(_)) | (Self::Bool, Value::Bool(_)) => Err(NOT_TEXT),
            (Self::Object(types), Value::Object(fields)) => {
                fields.iter().try_for_each(|(key, field)| {
                    let full = types.len() >= MAX_FIELDS;
                    let ours = types.iter_mut().find(|(name, _)| **name == **key);
                    match ours {
                        Some((_, ours)) => ours.merge(field, known),
                        None if full => Ok(()),
                        None => {
                            let noted = note(field, known).map(|noted| ((**key).into(), noted));
                            types.extend(noted);
                            Ok(())
                        }
                    }
                })
            }
            (Self::List(types), Value::Array(items)) => items
                .iter()
                .enumerate()
                .try_for_each(|(position, item)| list_item(types, position, item, known)),
            (Self::Text | Self::Number | Self::Bool | Self::Object(_) | Self::List(_), _) => {
                Err(MISMATCH)
            }
        }
    }
}

fn list_item(
    types: &mut Vec<(Entry, Type)>,
    position: usize,
    item: &Node<'_>,
    known: &mut usize,
) -> Result<(), Refusal> {
    let index = item.get("index").and_then(Node::as_i64_lenient);
    let entry = index.map_or(Entry::Position(position), Entry::Index);
    let full = types.len() >= MAX_FIELDS;
    match types.iter_mut().find(|(other, _)| *other == entry) {
        Some((_, Type::Object(types))) if index.is_some() => {
            // The index is the key, which every fragment repeats.
            types.retain(|(name, _)| &**name != "index");
            let mut ours = Type::Object(std::mem::take(types));
            let merged = ours.merge(item, known);
            if let Type::Object(ours) = ours {
                *types = ours;
            }
            merged
        }
        Some((_, ours)) => ours.merge(item, known),
        None if full => Ok(()),
        None => {
            types.extend(note(item, known).map(|noted| (entry, noted)));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MISMATCH, Merged, NOT_TEXT, Refusal};
    use crate::{
        decode::{Decoder, node},
        frame::Frame,
    };

    /// The first refusal of deltas of one choice.
    fn merged(deltas: &[&str]) -> Option<Refusal> {
        let mut merged = Merged::default();
        deltas.iter().find_map(|delta| {
            let chunk = format!("{{\"choices\":[{{\"index\":3,\"delta\":{delta}}}]}}");
            let node = node::read_json(&chunk, 20).expect("JSON");
            merged.merge(&node).err()
        })
    }

    #[track_caller]
    fn check(deltas: &[&str], expected: Option<Refusal>) {
        assert_eq!(merged(deltas), expected, "{deltas:?}");
    }

    #[test]
    fn r11_a_field_that_changes_its_type_is_refused() {
        check(&[r#"{"content":"a"}"#, r#"{"content":5}"#], Some(MISMATCH));
        check(&[r#"{"content":5}"#, r#"{"content":"a"}"#], Some(MISMATCH));
        check(
            &[r#"{"content":"a"}"#, r#"{"content":["a"]}"#],
            Some(MISMATCH),
        );
        check(&[r#"{"x":{}}"#, r#"{"x":[]}"#], Some(MISMATCH));
        check(
            &[
                r#"{"function_call":{"name":"f","arguments":""}}"#,
                r#"{"function_call":{"arguments":{"a":1}}}"#,
            ],
            Some(MISMATCH),
        );
        check(&[r#""text""#], Some(MISMATCH));
    }

    #[test]
    fn r14_what_cannot_be_appended_is_refused_the_second_time() {
        check(&[r#"{"x":1}"#], None);
        check(&[r#"{"x":1}"#, r#"{"x":1}"#], Some(NOT_TEXT));
        check(
            &[r#"{"x":{"y":true}}"#, r#"{"x":{"y":false}}"#],
            Some(NOT_TEXT),
        );
        check(&[r#"{"x":[1]}"#, r#"{"x":[2]}"#], Some(NOT_TEXT));
        check(&[r#"{"x":[1]}"#, "{}", r#"{"x":[]}"#], None);
    }

    #[test]
    fn d3_null_is_absent() {
        check(
            &[
                r#"{"content":null,"x":null}"#,
                r#"{"content":"a","x":1}"#,
                r#"{"content":null,"x":null}"#,
                "null",
            ],
            None,
        );
    }

    #[test]
    fn d6_calls_are_merged_by_their_index() {
        check(
            &[
                r#"{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"arguments":"{"}},{"index":0,"function":{"arguments":"{"}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#,
                r#"{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}"#,
            ],
            None,
        );
        check(
            &[
                r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":{}}}]}"#,
            ],
            Some(MISMATCH),
        );
        check(
            &[
                r#"{"tool_calls":[{"index":0,"mark":1}]}"#,
                r#"{"tool_calls":[{"index":0,"mark":1}]}"#,
            ],
            Some(NOT_TEXT),
        );
    }

    #[test]
    fn the_types_of_one_choice_are_none_of_its_siblings() {
        let mut merged = Merged::default();
        for index in ["0", "1", "\"2\""] {
            let chunk = format!("{{\"choices\":[{{\"index\":{index},\"delta\":{{\"x\":1}}}}]}}");
            let node = node::read_json(&chunk, 20).expect("JSON");
            assert_eq!(merged.merge(&node), Ok(()));
        }
        let chunk = r#"[{"choices":[{"delta":{}},{"index":null,"delta":{"x":1}}]}]"#;
        let node = node::read_json(chunk, 20).expect("JSON");
        assert_eq!(
            merged.merge(&node),
            Err(NOT_TEXT),
            "the position is the index"
        );
    }

    #[test]
    fn r11_r14_a_template_takes_no_chunk_that_would_be_refused() {
        let chunk = |index: u32, delta: &str| {
            format!("{{\"choices\":[{{\"index\":{index},\"delta\":{delta}}}]}}")
        };
        let text = |index| chunk(index, r#"{"content":"a"}"#);
        let read = |chunks: &[String]| {
            let mut decoder = Decoder::new(true, 20);
            let mut last = Ok(());
            for data in chunks {
                let frame = Frame::of_data(data.as_bytes(), 0);
                last = last.and_then(|()| decoder.decode(frame, &mut |_| ()));
            }
            (last.is_ok(), decoder.fitted())
        };
        let plain: Vec<String> = (0..10).map(|_| text(0)).collect();
        assert_eq!(
            read(&plain),
            (true, 7),
            "the first, and two that are merged"
        );
        let odd = chunk(1, r#"{"content":5}"#);
        assert!(!read(&[&plain[..], &[odd.clone(), text(1)]].concat()).0);
        assert!(!read(&[&plain[..], &[text(1), odd]].concat()).0);
        let listed = chunk(0, r#"{"content":["a"]}"#);
        assert!(!read(&[&plain[..], &[listed]].concat()).0);
        assert!(read(&[&plain[..], &[text(1), text(1), text(1), text(1)]].concat()).0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut merged = Merged::default();
        for round in 0..400 {
            let fields: Vec<String> = (0..300)
                .map(|field| format!("\"{field}\":{{\"{round}\":1}}"))
                .collect();
            let chunk = format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{{}}}}}]}}",
                fields.join(",")
            );
            let node = node::read_json(&chunk, 20).expect("JSON");
            assert_eq!(merged.merge(&node), Ok(()));
        }
        assert!(merged.known <= super::MAX_KNOWN, "{}", merged.known);
    }
}
