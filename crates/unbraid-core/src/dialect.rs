//! The dialects: how each provider's values become updates.
//!
//! The values of chat and text completions have `choices`. Both differ only in the field that holds a choice's text, and
//! some servers mix them, so each entry is read by the fields that it has ([`element`]). Every other dialect implements
//! [`DialectReader`], in a module of its own.

mod anthropic;
mod bedrock;
mod blocks;
mod calls;
mod cohere;
mod continuation;
mod fault;
mod gemini;
mod identify;
mod lane;
mod name;
mod object;
mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_text;
mod parts;
mod reader;
mod responses;
mod seen;
mod time;
mod wire_event;

pub(crate) use continuation::{Continuation, Place};
pub(crate) use fault::{is_error, is_error_in_ping, is_failure, reported};
pub(crate) use identify::{counts_tokens, identify, is_unmistakable, unsupported};
pub use name::{Dialect, UnknownDialect};
pub(crate) use reader::{DialectReader, Output, WireEvent, raw};
pub use time::rfc3339;

use std::{borrow::Cow, sync::Arc};

use crate::{
    CompletionKind, Warning,
    chunk::{
        CONTENT_PARTS, Element, TEXT_COMPLETION, has_tokens, is_padding, put_field, some_reason,
        usage_json,
    },
    limits::MAX_ENTRIES,
    node::{Node, Value},
};

/// The reader of a dialect; `None` for the dialects with `choices`.
pub(crate) fn reader(dialect: Dialect) -> Option<Box<dyn DialectReader>> {
    match dialect {
        Dialect::Anthropic => Some(Box::<anthropic::Anthropic>::default()),
        Dialect::Gemini => Some(Box::<gemini::Gemini>::default()),
        Dialect::Ollama => Some(Box::<ollama::Ollama>::default()),
        Dialect::Cohere => Some(Box::<cohere::Cohere>::default()),
        Dialect::Responses => Some(Box::<responses::Responses>::default()),
        Dialect::Bedrock => Some(Box::<bedrock::Bedrock>::default()),
        Dialect::Chat | Dialect::Text => None,
    }
}

/// Keeps a value of an unknown type among the parts of the answer (D16).
fn keep_unknown<'a>(choice: u32, node: &Node<'a>, output: &mut Output<'a>) {
    output.warn(
        "D16",
        "an event of an unknown type was kept as a part of the answer",
    );
    output.entry(choice, CONTENT_PARTS, &raw(node));
}

/// Reads one entry of `choices`, in a stream of text completions or of chats; `None` if its index is invalid (E11).
pub(crate) fn element<'a>(
    node: &Node<'a>,
    event_index: u64,
    reasoning_keys: &[Arc<str>],
    is_text_stream: bool,
) -> Option<Element<'a>> {
    let fields = node.as_object()?;
    let mut element = Element {
        index: index(node)?,
        ..Element::default()
    };
    let mut logprob = None;
    let is_text = has_fields_beside_text(node, is_text_stream, reasoning_keys);
    for (key, value) in fields {
        match &**key {
            "index" | "delta" | "message" | "text" => {}
            _ if is_text && openai_text::is_field_beside_text(key, reasoning_keys) => {}
            "logprobs" if let Value::Number(raw) = value.value => {
                logprob = Some(raw).filter(|_| value.clean);
            }
            "finish_reason" => element.update.finish_reason = finish_reason(value),
            "logprobs" => {
                element.update.logprobs = value.object_json().filter(|raw| has_tokens(raw));
                if !value.clean {
                    element.update.warnings.push(Warning::new(
                        "M8",
                        event_index,
                        "invalid log probabilities were read as null",
                    ));
                }
            }
            "usage" => element.update.usage = usage_json(value),
            "error" => element.update.error = is_failure(value).then(|| value.to_json()),
            key_name if value.is_null() || is_padding(key_name) => {}
            _ => put_field(&mut element.update.metadata, key.clone(), value.to_json()),
        }
    }
    read_message(node, is_text, &mut element, reasoning_keys);
    if let (Some(raw), Some(content)) = (logprob, &element.update.content) {
        // M6: Together sends the number of the delta's only token.
        let token = serde_json::Value::from(&*content.text);
        let list = format!(r#"{{"content":[{{"token":{token},"logprob":{raw}}}]}}"#);
        element.update.logprobs = Some(Cow::Owned(list));
    }
    if element.has_unexpected_type {
        let message = "content or a delta of an unexpected type was kept as raw JSON";
        element
            .update
            .warnings
            .push(Warning::new("C11", event_index, message));
    }
    if element.replaced_half || (!node.clean && holds_lone_half(node)) {
        let warning = Warning::new("C14", event_index, "half a surrogate pair was replaced");
        element.update.warnings.push(warning);
    }
    Some(element)
}

/// Whether a string contains half a surrogate pair that no other delta can complete (C14).
fn holds_lone_half(node: &Node<'_>) -> bool {
    match &node.value {
        Value::String(string) => {
            let replacement = char::REPLACEMENT_CHARACTER;
            !node.clean && string.text.contains(replacement) && !node.raw.contains(replacement)
        }
        Value::Array(items) => items.iter().any(holds_lone_half),
        Value::Object(fields) => fields.iter().any(|(_, value)| holds_lone_half(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The choice index of an entry: `None` if it is invalid, `Some(None)` if it is missing.
pub(crate) fn index(node: &Node<'_>) -> Option<Option<u32>> {
    match node.get("index") {
        None => Some(None),
        Some(index) if index.is_null() || index.text().is_some_and(|text| text.is_empty()) => {
            Some(None)
        }
        Some(index) => {
            // A numeric string is its number (E10), but `1.0` is not an index (E11).
            let parsed = match &index.value {
                Value::Number(raw) => raw.parse().ok(),
                Value::String(text) => text.to_cow().trim().parse().ok(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            };
            parsed.map(Some)
        }
    }
}

/// The finish reason. An empty string, `false` and `null`, as a word too, are absent (F1), and so are `{}` and `[]`, with which Lua
/// and PHP write null; any other type is kept as its JSON text (F13).
fn finish_reason<'a>(value: &Node<'a>) -> Option<Cow<'a, str>> {
    match &value.value {
        Value::Null | Value::Bool(false) => None,
        Value::String(_) => some_reason(value.text()),
        Value::Array(_) | Value::Object(_) if !value.is_set() => None,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_json())
        }
    }
}

/// The delta of an entry, of any type. PHP writes an empty object as a list (E22).
fn present_delta<'n, 'a>(node: &'n Node<'a>) -> Option<&'n Node<'a>> {
    let is_absent =
        |delta: &Node<'_>| delta.is_null() || delta.as_array().is_some_and(<[_]>::is_empty);
    node.get("delta").filter(|delta| !is_absent(delta))
}

/// Whether an entry has no delta, or one that says nothing.
fn is_without_delta(node: &Node<'_>) -> bool {
    let fields = present_delta(node).and_then(Node::as_object);
    fields.is_none_or(<[_]>::is_empty)
}

/// Whether a chunk is known to be one of a text completion.
pub(crate) fn is_text_chunk(chunk: &Node<'_>) -> bool {
    let object = chunk.get("object").and_then(Node::text);
    let mut entries = chunk
        .get("choices")
        .into_iter()
        .flat_map(Node::entries)
        .take(MAX_ENTRIES);
    object.as_deref() == Some(TEXT_COMPLETION)
        || entries.any(|entry| entry.get("text").is_some() && is_without_delta(entry))
}

/// Whether an entry has beside its `text` what a delta has (C19). A text completion may also omit an empty `text`.
fn has_fields_beside_text(
    node: &Node<'_>,
    is_text_stream: bool,
    reasoning_keys: &[Arc<str>],
) -> bool {
    let is_without_text = || {
        is_text_stream
            && !node.get("message").is_some_and(Node::is_set)
            && openai_text::has_field_beside(node, reasoning_keys)
    };
    is_without_delta(node) && (node.get("text").is_some() || is_without_text())
}

/// Reads the message of an entry: the delta, the text, or a full message in place of both (C19, E21, E22).
fn read_message<'a>(
    node: &Node<'a>,
    is_text: bool,
    element: &mut Element<'a>,
    reasoning_keys: &[Arc<str>],
) {
    let present = present_delta(node);
    let delta = present.filter(|delta| delta.as_object().is_some());
    match (delta, present) {
        (Some(delta), _) => openai_chat::delta(delta, element, reasoning_keys),
        (None, Some(unexpected)) => {
            element.has_unexpected_type = true;
            put_field(
                &mut element.update.metadata,
                Cow::Borrowed("delta"),
                unexpected.to_json(),
            );
        }
        (None, None) => {}
    }
    if is_text {
        openai_text::fields_beside(node, element, reasoning_keys);
    }
    match node.get("text") {
        Some(text) => openai_text::text(text, delta.is_some(), element),
        None if is_text && delta.is_none() => element.update.kind = CompletionKind::Text,
        None => {}
    }
    let message = node.get("message").filter(|message| message.is_set());
    if let Some(message) = message
        .filter(|_| !element.update.has_payload() && element.update.kind == CompletionKind::Chat)
    {
        let mut full_message = Element::default();
        openai_chat::delta(message, &mut full_message, reasoning_keys);
        full_message.update.is_full_message = full_message.update.has_payload();
        openai_chat::merge_message(full_message, element);
    }
}
