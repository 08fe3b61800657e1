//! Parses text to nodes without recursion: deeply nested input needs heap, not stack.

use std::borrow::Cow;

use memchr::memchr2;

use crate::limits::MAX_VALUES;

use super::{
    JsonString, Node, NodeError, Value, number, string::StringDecoder, unique::unique, write,
};

/// Dropping a node is recursive. At this depth it fits the smallest stacks in use.
const MAX_DEPTH: usize = 512;

#[derive(Debug)]
pub(crate) struct Reader<'a> {
    input: &'a str,
    pos: usize,
    max_depth: usize,
    values: usize,
    open: Vec<OpenContainer<'a>>,
    /// Whether everything read so far is allowed by the grammar of JSON.
    is_json: bool,
}

/// An array or object that is not closed yet.
#[derive(Debug)]
struct OpenContainer<'a> {
    start: usize,
    items: Items<'a>,
    clean: bool,
    /// The nesting of the containers inside this one.
    height: usize,
}

#[derive(Debug)]
enum Items<'a> {
    Array(Vec<Node<'a>>),
    /// `key` is the key whose value follows.
    Object {
        key: Cow<'a, str>,
        fields: Vec<(Cow<'a, str>, Node<'a>)>,
    },
}

#[derive(Debug)]
enum ParseStep<'a> {
    /// A value begins here.
    Value,
    /// A value of this nesting has ended.
    Ended(Node<'a>, usize),
}

impl<'a> Reader<'a> {
    pub(crate) fn new(input: &'a str, max_depth: usize) -> Self {
        Self {
            input,
            pos: 0,
            max_depth: max_depth.min(MAX_DEPTH),
            values: 0,
            open: Vec::new(),
            is_json: true,
        }
    }

    /// Whether the input is JSON by its grammar, and not merely tolerated.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    pub(crate) fn used(&self) -> usize {
        self.pos
    }

    pub(crate) fn value(&mut self) -> Result<Node<'a>, NodeError> {
        let mut step = ParseStep::Value;
        loop {
            step = match step {
                ParseStep::Value => self.start_value()?,
                ParseStep::Ended(node, height) => match self.open.pop() {
                    None => return Ok(node),
                    Some(parent) => self.continue_container(parent, node, height)?,
                },
            };
        }
    }

    pub(crate) fn end(&mut self) -> Result<(), NodeError> {
        self.skip_space();
        if self.pos == self.input.len() {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn start_value(&mut self) -> Result<ParseStep<'a>, NodeError> {
        self.skip_space();
        let start = self.pos;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(NodeError::TooMany { offset: start });
        }
        let (value, clean) = match self.peek() {
            Some(b'[') => return self.enter(Items::Array(Vec::new())),
            Some(b'{') => {
                return self.enter(Items::Object {
                    key: Cow::default(),
                    fields: Vec::new(),
                });
            }
            Some(b'"') => self
                .string()
                .map(|(string, clean)| (Value::String(string), clean))?,
            Some(b'n') => self.word("null", Value::Null, true)?,
            Some(b't') => self.word("true", Value::Bool(true), true)?,
            Some(b'f') => self.word("false", Value::Bool(false), true)?,
            Some(b'N') => self.word("NaN", Value::Number("NaN"), false)?,
            Some(b'I') => self.word("Infinity", Value::Number("Infinity"), false)?,
            Some(b'-') if self.rest().starts_with("-I") => {
                self.word("-Infinity", Value::Number("-Infinity"), false)?
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.unexpected()),
        };
        Ok(ParseStep::Ended(
            Node {
                value,
                raw: self.since(start),
                clean,
            },
            0,
        ))
    }

    fn enter(&mut self, items: Items<'a>) -> Result<ParseStep<'a>, NodeError> {
        if self.open.len() >= self.max_depth {
            return Err(NodeError::TooDeep { offset: self.pos });
        }
        let mut open = OpenContainer {
            start: self.pos,
            items,
            clean: true,
            height: 0,
        };
        self.pos += 1;
        self.skip_space();
        if self.peek() == Some(open.closer()) {
            return Ok(self.close(open));
        }
        self.read_key(&mut open)?;
        self.open.push(open);
        Ok(ParseStep::Value)
    }

    fn continue_container(
        &mut self,
        mut parent: OpenContainer<'a>,
        node: Node<'a>,
        height: usize,
    ) -> Result<ParseStep<'a>, NodeError> {
        parent.add(node, height);
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.pos += 1;
                self.read_key(&mut parent)?;
                self.open.push(parent);
                Ok(ParseStep::Value)
            }
            Some(byte) if byte == parent.closer() => Ok(self.close(parent)),
            _ => Err(self.unexpected()),
        }
    }

    fn close(&mut self, open: OpenContainer<'a>) -> ParseStep<'a> {
        self.pos += 1;
        let height = open.height + 1;
        let clean = open.clean && height <= write::SERDE_DEPTH;
        let value = match open.items {
            Items::Array(items) => Value::Array(items),
            Items::Object { fields, .. } => Value::Object(unique(fields)),
        };
        ParseStep::Ended(
            Node {
                value,
                raw: self.since(open.start),
                clean,
            },
            height,
        )
    }

    /// Reads the key and the colon before the next value of an object. An array has neither.
    fn read_key(&mut self, open: &mut OpenContainer<'a>) -> Result<(), NodeError> {
        let Items::Object { key, fields } = &mut open.items else {
            return Ok(());
        };
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let (string, clean) = self.string()?;
        *key = match string {
            JsonString {
                text,
                low: None,
                high: None,
            } => text,
            string => Cow::Owned(string.to_cow().into_owned()),
        };
        // `serde_json` gives its private name a meaning if it is the first key.
        open.clean &= clean && !(fields.is_empty() && *key == write::SERDE_KEY);
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.pos += 1;
        Ok(())
    }

    fn word(
        &mut self,
        word: &str,
        value: Value<'a>,
        clean: bool,
    ) -> Result<(Value<'a>, bool), NodeError> {
        let matched = word
            .bytes()
            .zip(self.rest().bytes())
            .take_while(|(ours, theirs)| ours == theirs)
            .count();
        self.pos += matched;
        self.is_json &= clean; // the words that are not clean are not JSON either
        if matched == word.len() {
            Ok((value, clean))
        } else {
            Err(self.unexpected())
        }
    }

    fn number(&mut self) -> Result<(Value<'a>, bool), NodeError> {
        let start = self.pos;
        let len = number::len(self.rest());
        self.pos += len.unwrap_or_else(|offset| offset);
        if len.is_err() {
            return Err(self.unexpected());
        }
        Ok((Value::Number(self.since(start)), true))
    }

    /// Reads a string, and returns whether it is clean.
    fn string(&mut self) -> Result<(JsonString<'a>, bool), NodeError> {
        let mut decoder = StringDecoder::new();
        self.pos += 1;
        loop {
            let rest = self.rest();
            let end = memchr2(b'"', b'\\', rest.as_bytes());
            let Some((run, _)) = end.and_then(|end| rest.split_at_checked(end)) else {
                return Err(NodeError::Truncated {
                    offset: self.input.len(),
                });
            };
            decoder.push_run(run);
            self.pos += run.len();
            let is_end = self.peek() == Some(b'"');
            self.pos += 1;
            if is_end {
                self.is_json &= decoder.is_json();
                return Ok(decoder.finish());
            }
            self.pos += decoder.push_escape(self.rest());
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.input.as_bytes().get(self.pos).copied()
    }

    fn rest(&self) -> &'a str {
        self.input.get(self.pos..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'a str {
        self.input.get(start..self.pos).unwrap_or_default()
    }

    fn unexpected(&self) -> NodeError {
        let offset = self.pos;
        if offset < self.input.len() {
            NodeError::Syntax { offset }
        } else {
            NodeError::Truncated { offset }
        }
    }
}

impl<'a> OpenContainer<'a> {
    fn closer(&self) -> u8 {
        match self.items {
            Items::Array(_) => b']',
            Items::Object { .. } => b'}',
        }
    }

    fn add(&mut self, node: Node<'a>, height: usize) {
        self.clean &= node.clean;
        self.height = self.height.max(height);
        match &mut self.items {
            Items::Array(items) => items.push(node),
            Items::Object { key, fields } => fields.push((std::mem::take(key), node)),
        }
    }
}
