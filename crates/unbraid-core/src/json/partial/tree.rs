//! The value as it grows: what is closed, and the containers that are open around its end.

use serde_json::{Map, Number, Value};

use crate::{
    json::{
        TrailingStrings,
        token::{Container, Literal, Token, Visit},
    },
    limits::MAX_PARTIAL_NODES,
};

/// A value that grows by tokens.
#[derive(Clone)]
pub(super) struct Tree {
    /// The open containers, the outermost first.
    open: Vec<Open>,
    /// The outermost value, once it has closed.
    closed: Option<Value>,
    typing: Typing,
    /// What is typed so far.
    text: String,
    nodes: usize,
    max_nodes: usize,
    full: bool,
}

#[derive(Clone)]
enum Open {
    Array(Vec<Value>),
    /// `key` waits for its value, once it has come in whole.
    Object {
        members: Map<String, Value>,
        key: Option<String>,
    },
}

/// What `Tree::text` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typing {
    Nothing,
    Key,
    String,
    Number,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(MAX_PARTIAL_NODES)
    }
}

impl Visit for Tree {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Placeholder => *self = Self::new(self.max_nodes),
            _ if self.full || self.is_closed() => {}
            Token::Open(container) => {
                if self.admit() {
                    self.open.push(Open::new(container));
                }
            }
            Token::Close => {
                if let Some(open) = self.open.pop() {
                    self.add(open.into());
                }
            }
            Token::Key => self.typing = Typing::Key,
            Token::String => {
                if self.admit() {
                    self.typing = Typing::String;
                }
            }
            Token::NumberText(text) => {
                if self.typing == Typing::Number || self.admit() {
                    self.typing = Typing::Number;
                    self.text.push_str(text);
                }
            }
            Token::Text(text) => self.text.push_str(text),
            Token::KeyEnd => {
                let typed = self.take();
                if let Some(Open::Object { key, .. }) = self.open.last_mut() {
                    *key = Some(typed);
                }
            }
            Token::StringEnd => {
                let typed = self.take();
                self.add(Value::String(typed));
            }
            Token::NumberEnd => {
                let number = number(&self.text);
                self.text.clear();
                self.typing = Typing::Nothing;
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
            typing: Typing::Nothing,
            text: String::new(),
            nodes: 0,
            max_nodes,
            full: false,
        }
    }

    /// The value so far; of an open container what has come of it.
    pub(super) fn value(&self, trailing: TrailingStrings) -> Option<Value> {
        let string = self.typing == Typing::String && trailing == TrailingStrings::On;
        let typed = string.then(|| Value::String(self.text.clone()));
        let spine = self.open.iter().rev();
        let open = spine.fold(typed, |inner, open| Some(open.with(inner)));
        open.or_else(|| self.closed.clone())
    }

    /// Whether the outermost value has come in whole.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Counts a further value, unless there are as many as may be.
    fn admit(&mut self) -> bool {
        self.full = self.nodes >= self.max_nodes;
        self.nodes += usize::from(!self.full);
        !self.full
    }

    /// Adds a value that is whole to the innermost container.
    fn add(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.closed = Some(value),
            Some(Open::Array(items)) => items.push(value),
            Some(Open::Object { members, key }) => {
                if let Some(key) = key.take() {
                    members.insert(key, value);
                }
            }
        }
    }

    /// The text that was typed to its end.
    fn take(&mut self) -> String {
        self.typing = Typing::Nothing;
        if self.text.len() > COPIED {
            return std::mem::take(&mut self.text);
        }
        let typed = self.text.clone();
        self.text.clear();
        typed
    }
}

/// Bytes up to which a string is copied out of the buffer, which then grows only once.
const COPIED: usize = 256;

impl Open {
    fn new(container: Container) -> Self {
        match container {
            Container::Array => Self::Array(Vec::new()),
            Container::Object => Self::Object {
                members: Map::new(),
                key: None,
            },
        }
    }

    /// What the container is, with what has come of its last value.
    fn with(&self, last: Option<Value>) -> Value {
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

impl From<Open> for Value {
    fn from(open: Open) -> Self {
        match open {
            Open::Array(items) => Self::Array(items),
            Open::Object { members, .. } => Self::Object(members),
        }
    }
}

/// A number as serde_json reads it, whatever its features are; null if it does not.
fn number(text: &str) -> Value {
    // Small integers, the common case. `-0` is a float to serde_json.
    let small = |digits: &str| digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit());
    if small(text)
        && let Ok(integer) = text.parse::<u64>()
    {
        return Value::from(integer);
    }
    serde_json::from_str::<Number>(text).map_or(Value::Null, Value::Number)
}
