//! Arguments that arrive as values with their paths: `{"jsonPath":"$.a.b[0]","stringValue":"x"}` (G09).

use serde_json::Value;

use super::path::{Step, steps};
use crate::{
    Fragment,
    dialect::reader::raw,
    limits::MAX_EVENT_BYTES,
    node::{self, Node},
};

/// The value so far.
#[derive(Default)]
pub(super) struct PartialArgs {
    root: Option<Tree>,
    /// The path of the piece before, whose containers exist.
    last_path: String,
    /// How many values were set, and how many bytes they have.
    values: usize,
    bytes: usize,
}

enum Tree {
    Object(Vec<(String, Self)>),
    Array(Vec<Self>),
    Text {
        text: String,
        /// Half a character at its end (C14).
        high: Option<u16>,
        /// Whether more pieces of it follow, which may be after those of other values.
        is_open: bool,
    },
    /// A number, a boolean or null, as the server wrote it.
    Raw(String),
}

/// About what an object or array with one member takes.
const CONTAINER_BYTES: usize = 4 * size_of::<(String, Tree)>();

/// How many values arguments may have in pieces. Each one is searched for along its path.
const MAX_PIECES: usize = 1 << 16;

/// How many members an object may have, because they are searched linearly.
const MAX_MEMBERS: usize = 4096;

impl PartialArgs {
    /// Sets the members of an object; false if it is none, or beyond the limits.
    pub(super) fn set_all(&mut self, arguments: &Node<'_>) -> bool {
        let Some(fields) = arguments.as_object() else {
            return false;
        };
        self.values += values_in(arguments);
        self.bytes += raw(arguments).len() + fields.len() * CONTAINER_BYTES;
        if self.values > MAX_PIECES || self.bytes > MAX_EVENT_BYTES {
            return false;
        }
        let root = self.root.get_or_insert_with(|| Tree::Object(Vec::new()));
        fields.iter().all(|(key, value)| {
            let target = root.member(Step::Key(key.to_string()));
            target.map(|target| *target = Tree::of(value)).is_some()
        })
    }

    /// How many bytes are kept.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the last piece of a string said that more follow.
    pub(super) fn has_open_string(&self) -> bool {
        self.root.as_ref().is_some_and(Tree::has_open_string)
    }

    /// Adds a piece; false if its path is invalid, or beyond the limits.
    pub(super) fn add(&mut self, piece: &Node<'_>) -> bool {
        let Some(path) = piece.get("jsonPath").and_then(Node::text) else {
            return false;
        };
        let value = value_of(piece);
        let Some(steps) = steps(&path) else {
            return false;
        };
        self.values += 1;
        // A new path may create a container for each step.
        let containers = if self.last_path == *path {
            0
        } else {
            steps.len()
        };
        self.bytes += value.len() + path.len() + containers * CONTAINER_BYTES;
        if self.values > MAX_PIECES || self.bytes > MAX_EVENT_BYTES {
            return false;
        }
        let root = self.root.get_or_insert_with(|| Tree::Object(Vec::new()));
        let Some(target) = steps.into_iter().try_fold(root, Tree::member) else {
            return false;
        };
        target.set(value);
        self.last_path = path.into_owned();
        true
    }

    /// The arguments as JSON.
    pub(super) fn to_json(&self) -> String {
        let mut json = String::new();
        match &self.root {
            Some(root) => root.write(&mut json),
            None => json.push_str("{}"),
        }
        json
    }
}

impl Tree {
    /// The tree of a whole value.
    fn of(node: &Node<'_>) -> Self {
        match &node.value {
            node::Value::Object(fields) => {
                let fields = fields.iter();
                Self::Object(fields.map(|(k, v)| (k.to_string(), Self::of(v))).collect())
            }
            node::Value::Array(items) => Self::Array(items.iter().map(Self::of).collect()),
            node::Value::String(_) => Self::text(node.fragment().unwrap_or_default(), false),
            node::Value::Null | node::Value::Bool(_) | node::Value::Number(_) => {
                Self::Raw(raw(node).into_owned())
            }
        }
    }

    fn text(fragment: Fragment<'_>, is_open: bool) -> Self {
        let mut text = String::new();
        let mut high = None;
        fragment.append_to(&mut text, &mut high);
        Self::Text {
            text,
            high,
            is_open,
        }
    }

    /// Sets the value, or continues a string that is open. An empty piece that ends a string twice changes nothing.
    fn set(&mut self, value: Piece<'_>) {
        match (self, value) {
            (
                Self::Text {
                    text,
                    high,
                    is_open,
                },
                Piece::Text(more, continues),
            ) if *is_open || more.is_empty() => {
                more.append_to(text, high);
                *is_open = continues;
            }
            (known, Piece::Text(text, is_open)) => *known = Self::text(text, is_open),
            (known, Piece::Raw(raw)) => *known = Self::Raw(raw),
        }
    }

    fn has_open_string(&self) -> bool {
        match self {
            Self::Text { is_open, .. } => *is_open,
            Self::Raw(_) => false,
            Self::Array(items) => items.iter().any(Self::has_open_string),
            Self::Object(fields) => fields.iter().any(|(_, value)| value.has_open_string()),
        }
    }

    /// The member at a step, which is created if it is the next one.
    fn member(&mut self, step: Step) -> Option<&mut Self> {
        let empty = || Self::Raw("null".to_owned());
        match step {
            Step::Key(key) => {
                if !matches!(self, Self::Object(_)) {
                    *self = Self::Object(Vec::new());
                }
                let Self::Object(fields) = self else {
                    return None;
                };
                let at = match fields.iter().rposition(|(known, _)| *known == key) {
                    Some(at) => at,
                    None if fields.len() >= MAX_MEMBERS => return None,
                    None => {
                        fields.push((key, empty()));
                        fields.len() - 1
                    }
                };
                fields.get_mut(at).map(|(_, value)| value)
            }
            Step::Item(at) => {
                if !matches!(self, Self::Array(_)) {
                    *self = Self::Array(Vec::new());
                }
                let Self::Array(items) = self else {
                    return None;
                };
                if at == items.len() && at < MAX_PIECES {
                    items.push(empty());
                }
                items.get_mut(at)
            }
        }
    }

    fn write(&self, json: &mut String) {
        match self {
            Self::Raw(raw) => json.push_str(raw),
            Self::Text { text, high, .. } => {
                let lone = high.is_some().then_some(char::REPLACEMENT_CHARACTER);
                let text: String = text.chars().chain(lone).collect();
                json.push_str(&Value::from(text).to_string());
            }
            Self::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    json.push(if position == 0 { '[' } else { ',' });
                    item.write(json);
                }
                json.push_str(if items.is_empty() { "[]" } else { "]" });
            }
            Self::Object(fields) => {
                json.push('{');
                for (position, (key, value)) in fields.iter().enumerate() {
                    if position > 0 {
                        json.push(',');
                    }
                    json.push_str(&Value::from(key.as_str()).to_string());
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
        }
    }
}

/// The value of a piece.
enum Piece<'a> {
    /// With whether more pieces of the string follow.
    Text(Fragment<'a>, bool),
    Raw(String),
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Text(text, _) => text.len(),
            Self::Raw(raw) => raw.len(),
        }
    }
}

/// How many values a value consists of. Each one takes much more memory than its text may have.
fn values_in(node: &Node<'_>) -> usize {
    let inside: usize = match &node.value {
        node::Value::Object(fields) => fields.iter().map(|(_, value)| values_in(value)).sum(),
        node::Value::Array(items) => items.iter().map(values_in).sum(),
        node::Value::String(_)
        | node::Value::Null
        | node::Value::Bool(_)
        | node::Value::Number(_) => 0,
    };
    1 + inside
}

/// Whether a piece adds nothing to a string, or begins an empty one.
pub(super) fn is_empty(piece: &Node<'_>) -> bool {
    matches!(value_of(piece), Piece::Text(text, _) if text.is_empty())
}

fn value_of<'a>(piece: &Node<'a>) -> Piece<'a> {
    let is_open = piece.get("willContinue").and_then(Node::as_bool) == Some(true);
    if let Some(text) = piece.get("stringValue").and_then(Node::fragment) {
        return Piece::Text(text, is_open);
    }
    let raw_value = |key: &str| piece.get(key).filter(|node| !node.is_null());
    if let Some(value) = raw_value("numberValue").or_else(|| raw_value("boolValue")) {
        return Piece::Raw(raw(value).into_owned());
    }
    // In proto3 JSON null is the text `NULL_VALUE`. A piece without a value begins an empty string.
    if piece.get("nullValue").is_some() {
        return Piece::Raw("null".to_owned());
    }
    Piece::Text(Fragment::default(), is_open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let mut arguments = PartialArgs::default();
        for piece in pieces {
            let node = node::read(piece, 10).unwrap();
            assert!(arguments.add(&node), "{piece}");
        }
        assert_eq!(arguments.to_json(), expected);
    }

    fn is_valid(path: &str) -> bool {
        let piece = serde_json::json!({ "jsonPath": path, "stringValue": "x" }).to_string();
        PartialArgs::default().add(&node::read(&piece, 10).unwrap())
    }

    #[test]
    fn g09_values_are_set_by_their_paths() {
        check(&[], "{}");
        check(
            &[
                r#"{"jsonPath":"$.a.b[0].c","stringValue":"x\n"}"#,
                r#"{"jsonPath":"$.a.b[1]","numberValue":1.50}"#,
                r#"{"jsonPath":"$.a['d e']","boolValue":false}"#,
                r#"{"jsonPath":"$.n","nullValue":null}"#,
            ],
            r#"{"a":{"b":[{"c":"x\n"},1.50],"d e":false},"n":null}"#,
        );
    }

    #[test]
    fn g09_a_string_is_continued_by_the_pieces_of_its_path_until_it_ends() {
        check(
            &[
                r#"{"jsonPath":"$.a","stringValue":"Hel","willContinue":true}"#,
                r#"{"jsonPath":"$.a","stringValue":"lo"}"#,
                r#"{"jsonPath":"$.b","stringValue":"x","willContinue":true}"#,
                r#"{"jsonPath":"$.a","stringValue":"new"}"#,
                r#"{"jsonPath":"$.b","stringValue":"y","willContinue":true}"#,
                r#"{"jsonPath":"$.b"}"#,
            ],
            r#"{"a":"new","b":"xy"}"#,
        );
    }

    #[test]
    fn c14_halves_of_a_character_in_two_pieces_are_joined() {
        check(
            &[
                r#"{"jsonPath":"$.a","stringValue":"x\ud83d","willContinue":true}"#,
                r#"{"jsonPath":"$.a","stringValue":"\ude00y"}"#,
                r#"{"jsonPath":"$.b","stringValue":"\ude00\ud83d"}"#,
            ],
            "{\"a\":\"x\u{1f600}y\",\"b\":\"\u{fffd}\u{fffd}\"}",
        );
    }

    #[test]
    fn g09_whole_arguments_are_the_start_of_those_in_pieces() {
        let whole = node::read(r#"{"a":{"b":[1,"x"]},"c":null}"#, 10).unwrap();
        let piece = r#"{"jsonPath":"$.a.b[2]","stringValue":"y","willContinue":true}"#;
        let mut arguments = PartialArgs::default();
        assert!(arguments.set_all(&whole) && arguments.add(&node::read(piece, 10).unwrap()));
        assert_eq!(arguments.to_json(), r#"{"a":{"b":[1,"x","y"]},"c":null}"#);
        assert!(arguments.has_open_string());
        let many = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(MAX_PIECES));
        assert!(!PartialArgs::default().set_all(&node::read(&many, 10).unwrap()));
        let gap = r#"{"jsonPath":"$.a.b[4]","stringValue":"z"}"#;
        assert!(!arguments.add(&node::read(gap, 10).unwrap()));
    }

    #[test]
    fn g09_a_repeated_end_of_a_string_changes_nothing() {
        check(
            &[
                r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#,
                r#"{"jsonPath":"$.a","stringValue":""}"#,
                r#"{"jsonPath":"$.a","stringValue":""}"#,
            ],
            r#"{"a":"x"}"#,
        );
    }

    #[test]
    fn g09_invalid_paths_are_refused() {
        for path in [
            "", "$", "a", "$a", "$.", "$.a.", "$[", "$[x]", "$['a", "$['a'", "$[-1]",
        ] {
            assert!(!is_valid(path), "{path}");
        }
        assert!(!is_valid("$[1000000000]"), "nothing is allocated for it");
        assert!(!is_valid(&"$.a".replace("$", "$.a").repeat(200)));
        assert!(is_valid("$[0]") && is_valid("$['a\\'b'][0].c"));
    }
}
