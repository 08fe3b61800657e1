//! Reads any chunk field by field, so that a bad field never costs the other choices of its chunk.
//!
//! This is the last path, so it does not decline: a field that it cannot use is kept as raw JSON, warned about, or absent.

use std::{borrow::Cow, sync::Arc};

use crate::{
    Warning,
    chunk::{Chunk, is_padding, is_padding_of_p, put_field, usage_json},
    dialect::{self, WireEvent},
    limits::MAX_ENTRIES,
    node::Node,
};

/// The chunk in a JSON value of an event with this name. Missing and unusable fields stay empty.
pub(super) fn chunk<'a>(
    node: &Node<'a>,
    name: Option<&[u8]>,
    event_index: u64,
    reasoning_keys: &[Arc<str>],
    is_text_stream: bool,
) -> Chunk<'a> {
    let mut chunk = Chunk::default();
    // Before the choices, since the fields of the chunk may come after them.
    let is_text = is_text_stream || dialect::is_text_chunk(node);
    for (key, value) in node.as_object().unwrap_or_default() {
        if key == "choices" {
            chunk.has_choices = true;
            choices(&mut chunk, value, event_index, reasoning_keys, is_text);
        } else {
            field(&mut chunk, key, value, event_index);
        }
    }
    // After the fields: whether a name means an error depends on whether there are choices.
    chunk.error = reported_error(node, name, &chunk);
    chunk.format = chunk.recognise();
    chunk
}

/// The time in seconds. Some servers send fractions of a second (E18).
fn seconds(value: &Node<'_>) -> Option<u64> {
    let fraction = || value.as_f64_lenient().filter(|seconds| *seconds >= 0.0);
    value
        .as_u64_lenient()
        .or_else(|| fraction().map(|seconds| seconds as u64))
}

#[expect(clippy::ptr_arg, reason = "the key is kept, and most keys borrow")]
fn field<'a>(chunk: &mut Chunk<'a>, key: &Cow<'a, str>, value: &Node<'a>, event_index: u64) {
    match &**key {
        "id" => chunk.id = value.text(),
        "created" => chunk.created = seconds(value),
        "model" => chunk.model = value.text(),
        "usage" => {
            // U6: usage in the envelope takes precedence. A null does not remove usage from another place (U2).
            chunk.usage = usage_json(value).or_else(|| chunk.usage.take());
            if !value.clean || !value.is_in_range() {
                let message = "invalid values in the usage were replaced";
                chunk
                    .warnings
                    .push(Warning::new("U9", event_index, message));
            }
        }
        "object" => chunk.object = value.text(),
        "error" => {}
        "x_groq" if !value.is_null() => {
            // U6: usage in the envelope takes precedence over this field.
            if let Some(usage) = value.get("usage").and_then(usage_json) {
                chunk.usage.get_or_insert(usage);
            }
            put_field(&mut chunk.extra, key.clone(), value.to_json());
        }
        key_name if value.is_null() || is_padding(key_name) => {}
        "p" if is_padding_of_p(&value.to_json()) => {}
        _ => put_field(&mut chunk.extra, key.clone(), value.to_json()),
    }
}

fn choices<'a>(
    chunk: &mut Chunk<'a>,
    value: &Node<'a>,
    event_index: u64,
    reasoning_keys: &[Arc<str>],
    is_text: bool,
) {
    // The last of two `choices` keys counts (E26).
    chunk.elements.clear();
    let count = value.entries().count();
    if count > MAX_ENTRIES {
        let message =
            format!("{count} entries in one chunk; those beyond {MAX_ENTRIES} were skipped");
        chunk
            .warnings
            .push(Warning::new("E11", event_index, message));
    }
    for node in value.entries().take(MAX_ENTRIES) {
        match dialect::element(node, event_index, reasoning_keys, is_text) {
            Some(element) => chunk.elements.push(element),
            // Only this entry is dropped; its siblings stay.
            None => chunk.warnings.push(Warning::new(
                "E11",
                event_index,
                "a choice without a usable index was skipped",
            )),
        }
    }
}

/// The error that the object reports, if any (X1 to X8): the error alone if the object also has choices, otherwise the whole
/// object (X9).
fn reported_error<'a>(
    node: &Node<'a>,
    name: Option<&[u8]>,
    chunk: &Chunk<'a>,
) -> Option<Cow<'a, str>> {
    if let Some(error) = dialect::reported(node) {
        return Some(if chunk.elements.is_empty() {
            node.to_json()
        } else {
            error.to_json()
        });
    }
    // Why Groq has stopped early, beside a usual chunk.
    let groq = node.get("x_groq").and_then(|groq| groq.get("error"));
    if let Some(error) = groq.filter(|error| dialect::is_failure(error)) {
        return Some(error.to_json());
    }
    // Beside choices, these names may be ordinary unknown fields.
    if !chunk.elements.is_empty() {
        return None;
    }
    dialect::is_error(&WireEvent::new(name, node)).then(|| node.to_json())
}
