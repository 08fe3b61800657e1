//! A provider's object that arrives in pieces: a thinking block with its signature, a server's tool call.

use std::borrow::Cow;

use serde_json::Value;

use super::reader::raw;
use crate::{Fragment, limits::MAX_FIELDS, node::Node};

/// The fields of an object, some of which grow.
#[derive(Default)]
pub(crate) struct Object {
    fields: Vec<(String, Field)>,
    /// How many bytes the fields have.
    bytes: usize,
}

enum Field {
    /// The JSON of a complete value.
    Raw(String),
    /// A text that grows, and the first half of a character at its end.
    Text(String, Option<u16>),
    /// JSON text in pieces, which becomes a value, and the first half of a character at its end.
    Json(String, Option<u16>),
    /// The entries of a list.
    List(Vec<String>),
}

impl Object {
    /// An object with the fields of its start.
    pub(crate) fn new(node: &Node<'_>) -> Self {
        let mut object = Self::default();
        for (key, value) in node.as_object().unwrap_or_default() {
            object.set(key, raw(value));
        }
        object
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// How many bytes it keeps.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets a field to a JSON value.
    pub(crate) fn set<'t>(&mut self, key: &str, raw: impl Into<Cow<'t, str>>) {
        let raw = raw.into().into_owned();
        self.bytes += raw.len();
        if let Some(field) = self.field(key) {
            let old = std::mem::replace(field, Field::Raw(raw));
            self.bytes = self.bytes.saturating_sub(old.bytes());
        }
    }

    /// Appends to a text.
    pub(crate) fn append(&mut self, key: &str, fragment: &Fragment<'_>) {
        self.bytes += fragment.len();
        let Some(field) = self.field(key) else {
            return;
        };
        if !matches!(field, Field::Text(..)) {
            *field = Field::Text(field.text(), None);
        }
        if let Field::Text(text, high) = field {
            fragment.append_to(text, high);
        }
    }

    /// Appends to the JSON text of a value. The value of the start is a placeholder.
    pub(crate) fn append_json(&mut self, key: &str, piece: &Fragment<'_>) {
        if piece.is_empty() {
            return; // A05: the first piece says nothing about a value that the start has
        }
        self.bytes += piece.len();
        if let Some(field) = self.field(key) {
            if !matches!(field, Field::Json(..)) {
                *field = Field::Json(String::new(), None);
            }
            if let Field::Json(json, high) = field {
                piece.append_to(json, high);
            }
        }
    }

    /// Adds an entry to a list.
    pub(crate) fn push<'t>(&mut self, key: &str, raw: impl Into<Cow<'t, str>>) {
        let raw = raw.into().into_owned();
        self.bytes += raw.len() + size_of::<String>();
        if let Some(field) = self.field(key) {
            match field {
                Field::List(list) => list.push(raw),
                Field::Raw(_) | Field::Text(..) | Field::Json(..) => {
                    *field = Field::List(vec![raw]);
                }
            }
        }
    }

    /// Whether a field has a value other than null and empty text.
    pub(crate) fn has(&self, key: &str) -> bool {
        let field = self.fields.iter().find(|(known, _)| known == key);
        field.is_some_and(|(_, field)| match field {
            Field::Raw(raw) => !matches!(raw.as_str(), "null" | "\"\""),
            Field::Text(text, high) => !text.is_empty() || high.is_some(),
            Field::Json(json, high) => !json.is_empty() || high.is_some(),
            Field::List(list) => !list.is_empty(),
        })
    }

    /// The fields with their JSON.
    pub(crate) fn into_fields(self) -> impl Iterator<Item = (String, String)> {
        let fields = self.fields.into_iter();
        fields.map(|(key, field)| {
            let json = field.json().into_owned();
            (key, json)
        })
    }

    /// The object as JSON.
    pub(crate) fn to_json(&self) -> String {
        let fields = self.fields.iter().map(|(key, field)| {
            let key = Value::from(key.as_str());
            format!("{key}:{}", field.json())
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }

    fn field(&mut self, key: &str) -> Option<&mut Field> {
        if let Some(at) = self.fields.iter().position(|(known, _)| known == key) {
            return self.fields.get_mut(at).map(|(_, field)| field);
        }
        if self.fields.len() >= MAX_FIELDS {
            return None;
        }
        self.bytes += key.len();
        self.fields
            .push((key.to_owned(), Field::Raw("null".to_owned())));
        self.fields.last_mut().map(|(_, field)| field)
    }
}

impl Field {
    fn bytes(&self) -> usize {
        match self {
            Self::Raw(text) | Self::Text(text, _) | Self::Json(text, _) => text.len(),
            Self::List(list) => list.iter().map(String::len).sum(),
        }
    }

    /// The text of a string; empty for any other value.
    fn text(&self) -> String {
        match self {
            Self::Raw(raw) => serde_json::from_str(raw).unwrap_or_default(),
            Self::Text(text, _) => text.clone(),
            Self::Json(..) | Self::List(_) => String::new(),
        }
    }

    fn json(&self) -> Cow<'_, str> {
        match self {
            Self::Raw(raw) => Cow::Borrowed(raw),
            Self::Text(text, high) => Cow::Owned(Value::from(with_lone(text, *high)).to_string()),
            // Without any piece the value was empty, and cut JSON is kept as text.
            Self::Json(json, None) if json.trim().is_empty() => Cow::Borrowed("{}"),
            Self::Json(json, high) => {
                match serde_json::from_str::<&serde_json::value::RawValue>(json) {
                    Ok(value) if high.is_none() => crate::node::compact(value.get()),
                    _ => Cow::Owned(Value::from(with_lone(json, *high)).to_string()),
                }
            }
            Self::List(list) => Cow::Owned(format!("[{}]", list.join(","))),
        }
    }
}

/// A text with what stands for the half of a character at its end.
fn with_lone(text: &str, high: Option<u16>) -> String {
    let lone = high.map(|_| char::REPLACEMENT_CHARACTER);
    text.chars().chain(lone).collect()
}
