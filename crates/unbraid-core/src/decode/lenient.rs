//! Any other chunk, field by field: one bad field never costs the other choices of its chunk.

use std::{borrow::Cow, sync::Arc};

use super::{
    chunk::{Chunk, is_padding, put},
    node::{Node, Value},
};
use crate::{Warning, dialect, limits::MAX_ENTRIES};

/// The chunk in a JSON value, whatever it lacks.
pub(super) fn chunk<'a>(node: &Node<'a>, at: u64, reasoning: &[Arc<str>]) -> Chunk<'a> {
    let mut chunk = Chunk::default();
    for (key, value) in node.as_object().unwrap_or_default() {
        if key == "choices" {
            chunk.has_choices = true;
            choices(&mut chunk, value, at, reasoning);
        } else {
            field(&mut chunk, key, value, at);
        }
    }
    chunk.error = error(node, &chunk);
    chunk.format = chunk.recognise();
    chunk
}

/// E18: some servers send a fraction of a second.
fn seconds(value: &Node<'_>) -> Option<u64> {
    let fraction = || value.as_f64_lenient().filter(|s| *s >= 0.0);
    value
        .as_u64_lenient()
        .or_else(|| fraction().map(|s| s as u64))
}

#[expect(clippy::ptr_arg, reason = "the key is kept, and most keys borrow")]
fn field<'a>(chunk: &mut Chunk<'a>, key: &Cow<'a, str>, value: &Node<'a>, at: u64) {
    match &**key {
        "id" => chunk.id = value.text(),
        "created" => chunk.created = seconds(value),
        "model" => chunk.model = value.text(),
        "usage" => {
            // U6: the envelope's own comes first. Null takes nothing back that came in another place (U2).
            chunk.usage = object(value).or_else(|| chunk.usage.take());
            if !value.clean || !value.is_in_range() {
                let told = "what is no number in the usage was read as null";
                chunk.warnings.push(Warning::new("U9", at, told));
            }
        }
        "object" => chunk.object = value.text(),
        "error" => {}
        "x_groq" if !value.is_null() => {
            // U6: the second place; the envelope's own comes first.
            if let Some(usage) = value.get("usage").and_then(object) {
                chunk.usage.get_or_insert(usage);
            }
            put(&mut chunk.extra, key.clone(), value.to_json());
        }
        key_name if value.is_null() || is_padding(key_name) => {}
        _ => put(&mut chunk.extra, key.clone(), value.to_json()),
    }
}

/// An object's JSON; anything else is no usage.
pub(crate) fn object<'a>(node: &Node<'a>) -> Option<Cow<'a, str>> {
    matches!(node.value, Value::Object(_)).then(|| node.to_json())
}

fn choices<'a>(chunk: &mut Chunk<'a>, value: &Node<'a>, at: u64, reasoning: &[Arc<str>]) {
    let elements = match &value.value {
        Value::Array(elements) => elements.as_slice(),
        Value::Object(_) => std::slice::from_ref(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    };
    chunk.elements.clear();
    if elements.len() > MAX_ENTRIES {
        let told = format!(
            "{} entries in one chunk; those beyond {MAX_ENTRIES} were skipped",
            elements.len()
        );
        chunk.warnings.push(Warning::new("E11", at, told));
    }
    for node in elements.iter().take(MAX_ENTRIES) {
        match dialect::element(node, at, reasoning) {
            Some(element) => chunk.elements.push(element),
            None => chunk.warnings.push(Warning::new(
                "E11",
                at,
                "a choice without a usable index was skipped",
            )),
        }
    }
}

/// The error that the object reports, if it does (X1 to X8). With choices beside it only the error itself, else all of it (X9).
fn error<'a>(node: &Node<'a>, chunk: &Chunk<'a>) -> Option<Cow<'a, str>> {
    if let Some(error) = node.get("error").filter(|error| says_something(error)) {
        return Some(if chunk.elements.is_empty() {
            node.to_json()
        } else {
            error.to_json()
        });
    }
    if !chunk.elements.is_empty() {
        return None;
    }
    let text = |key: &str| node.get(key).is_some_and(says_something);
    let code = |node: &Node<'_>, key: &str| {
        node.get(key)
            .and_then(Node::as_i64_lenient)
            .is_some_and(|code| code != 0)
    };
    let reported = node
        .get("object")
        .and_then(Node::text)
        .is_some_and(|object| object == "error")
        || text("error_message")
        || text("detail")
        || ((text("msg") || text("message")) && code(node, "code"))
        || node
            .get("base_resp")
            .is_some_and(|base| code(base, "status_code"))
        || node.get("success").and_then(Node::as_bool) == Some(false);
    reported.then(|| node.to_json())
}

/// X3: gateways that serialise every field send an empty error with good chunks.
pub(crate) fn says_something(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(raw) => *raw != "0",
        Value::Bool(true) => true,
    }
}
