//! Builds a value from tokens: the closed values, and the containers that are still open.

use serde_json::{Map, Number, Value};

use crate::{
    json::{
        TrailingStrings,
        token::{Container, Literal, Token, TokenListener},
    },
    limits::MAX_PARTIAL_NODES,
};

/// A value that grows with each token.
#[derive(Clone)]
pub(super) struct Tree {
    /// The open containers, the outermost first.
    open: Vec<OpenContainer>,
    /// The outermost value, once it has closed.
    closed: Option<Value>,
    role: TextRole,
    /// The text of the current string or number.
    text: String,
    nodes: usize,
    max_nodes: usize,
    is_full: bool,
}

#[derive(Clone)]
enum OpenContainer {
    Array(Vec<Value>),
    /// `key` is the last complete key, whose value follows.
    Object {
        members: Map<String, Value>,
        key: Option<String>,
    },
}

/// What `Tree::text` belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextRole {
    None,
    Key,
    String,
    Number,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(MAX_PARTIAL_NODES)
    }
}

impl TokenListener for Tree {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Placeholder => *self = Self::new(self.max_nodes),
            _ if self.is_full || self.is_closed() => {}
            Token::Open(container) => {
                if self.admit() {
                    self.open.push(OpenContainer::new(container));
                }
            }
            Token::Close => {
                if let Some(open) = self.open.pop() {
                    self.add(open.into());
                }
            }
            Token::Key => self.role = TextRole::Key,
            Token::String => {
                if self.admit() {
                    self.role = TextRole::String;
                }
            }
            Token::NumberText(text) => {
                if self.role == TextRole::Number || self.admit() {
                    self.role = TextRole::Number;
                    self.text.push_str(text);
                }
            }
            Token::Text(text) => self.text.push_str(text),
            Token::KeyEnd => {
                let text = self.take_text();
                if let Some(OpenContainer::Object { key, .. }) = self.open.last_mut() {
                    *key = Some(text);
                }
            }
            Token::StringEnd => {
                let text = self.take_text();
                self.add(Value::String(text));
            }
            Token::NumberEnd => {
                let number = number(&self.text);
                self.text.clear();
                self.role = TextRole::None;
                self.add(number);
            }
            Token::Literal(literal) => {
                if self.admit() {
                    self.add(match literal {
                        Literal::Null => Value::Null,
                        Literal::True => Value::Bool(true),
                        Literal::False => Value::Bool(false),
                    });
                }
            }
        }
    }
}

impl Tree {
    pub(super) fn new(max_nodes: usize) -> Self {
        Self {
            open: Vec::new(),
            closed: None,
            role: TextRole::None,
            text: String::new(),
            nodes: 0,
            max_nodes,
            is_full: false,
        }
    }

    /// The value so far, with the open containers as if they were closed.
    pub(super) fn value(&self, trailing: TrailingStrings) -> Option<Value> {
        let shows_string = self.role == TextRole::String && trailing == TrailingStrings::On;
        let text = shows_string.then(|| Value::String(self.text.clone()));
        let from_innermost = self.open.iter().rev();
        let open = from_innermost.fold(text, |inner, open| Some(open.to_value(inner)));
        open.or_else(|| self.closed.clone())
    }

    /// Whether the outermost value is complete.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Counts another value; false if the maximum is reached.
    fn admit(&mut self) -> bool {
        self.is_full = self.nodes >= self.max_nodes;
        self.nodes += usize::from(!self.is_full);
        !self.is_full
    }

    /// Adds a complete value to the innermost container.
    fn add(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.closed = Some(value),
            Some(OpenContainer::Array(items)) => items.push(value),
            Some(OpenContainer::Object { members, key }) => {
                if let Some(key) = key.take() {
                    members.insert(key, value);
                }
            }
        }
    }

    /// Returns the complete text of a string, and clears the buffer.
    fn take_text(&mut self) -> String {
        self.role = TextRole::None;
        if self.text.len() > MAX_COPIED_BYTES {
            return std::mem::take(&mut self.text);
        }
        let text = self.text.clone();
        self.text.clear();
        text
    }
}

/// Strings up to this length are copied out of the buffer, so that the buffer is allocated only once.
const MAX_COPIED_BYTES: usize = 256;

impl OpenContainer {
    fn new(container: Container) -> Self {
        match container {
            Container::Array => Self::Array(Vec::new()),
            Container::Object => Self::Object {
                members: Map::new(),
                key: None,
            },
        }
    }

    /// The container as a value, with the unfinished value at its end.
    fn to_value(&self, last: Option<Value>) -> Value {
        match self {
            Self::Array(items) => Value::Array(items.iter().cloned().chain(last).collect()),
            Self::Object { members, key } => {
                let mut members = members.clone();
                if let (Some(key), Some(last)) = (key, last) {
                    members.insert(key.clone(), last);
                }
                Value::Object(members)
            }
        }
    }
}

impl From<OpenContainer> for Value {
    fn from(open: OpenContainer) -> Self {
        match open {
            OpenContainer::Array(items) => Self::Array(items),
            OpenContainer::Object { members, .. } => Self::Object(members),
        }
    }
}

/// A number as `serde_json` reads it with whatever features are enabled; null if it cannot.
fn number(text: &str) -> Value {
    // Small integers, the common case. `-0` is a float to serde_json.
    let is_small =
        |digits: &str| digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_small(text)
        && let Ok(integer) = text.parse::<u64>()
    {
        return Value::from(integer);
    }
    serde_json::from_str::<Number>(text).map_or(Value::Null, Value::Number)
}
