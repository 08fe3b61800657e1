//! Whose JSON this is: how one entry of `choices` is read, field by field.
//!
//! The two dialects of today differ in where a choice keeps its text, and servers mix them, so the entry itself
//! decides. A provider whose chunks look otherwise is served from outside, by a stream of [`Update`](crate::Update)s.

pub(crate) mod openai_chat;
pub(crate) mod openai_text;
mod parts;

use std::{borrow::Cow, sync::Arc};

use crate::{
    CompletionKind, Warning,
    decode::{
        chunk::{Element, has_tokens, is_padding, put},
        lenient::{object, says_something},
        node::{Node, Value},
    },
};

/// One entry of `choices`; `None` if it has an index that is no index (E11).
pub(crate) fn element<'a>(node: &Node<'a>, at: u64, reasoning: &[Arc<str>]) -> Option<Element<'a>> {
    let fields = node.as_object()?;
    let mut element = Element {
        index: index(node)?,
        ..Element::default()
    };
    for (key, value) in fields {
        match &**key {
            "index" | "delta" | "message" | "text" => {}
            "finish_reason" => element.update.finish_reason = finish_reason(value),
            "logprobs" => {
                element.update.logprobs = object(value).filter(|raw| has_tokens(raw));
                if !value.clean {
                    element.update.warnings.push(Warning::new(
                        "M8",
                        at,
                        "log probabilities that are no numbers were read as null",
                    ));
                }
            }
            "usage" => element.update.usage = object(value),
            "error" => element.update.error = says_something(value).then(|| value.to_json()),
            key_name if value.is_null() || is_padding(key_name) => {}
            _ => put(&mut element.update.metadata, key.clone(), value.to_json()),
        }
    }
    read_message(node, &mut element, reasoning);
    if element.odd {
        let told = "content or a delta of a type that is none; it was kept as it came";
        element.update.warnings.push(Warning::new("C11", at, told));
    }
    if element.lost_half || (!node.clean && holds_lone_half(node)) {
        let warning = Warning::new("C14", at, "half a surrogate pair was replaced");
        element.update.warnings.push(warning);
    }
    Some(element)
}

/// C14: half a character inside of a string, which no other delta can complete.
fn holds_lone_half(node: &Node<'_>) -> bool {
    match &node.value {
        Value::String(wide) => {
            let mark = char::REPLACEMENT_CHARACTER;
            !node.clean && wide.text.contains(mark) && !node.raw.contains(mark)
        }
        Value::Array(items) => items.iter().any(holds_lone_half),
        Value::Object(fields) => fields.iter().any(|(_, value)| holds_lone_half(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `None` for an index that cannot be one, `Some(None)` for a missing one.
pub(crate) fn index(node: &Node<'_>) -> Option<Option<u32>> {
    match node.get("index") {
        None => Some(None),
        Some(index) if index.is_null() || index.text().is_some_and(|text| text.is_empty()) => {
            Some(None)
        }
        Some(index) => {
            // E10: a numeric string is its number; E11: 1.0 is not.
            let whole = match &index.value {
                Value::Number(raw) => raw.parse().ok(),
                Value::String(text) => text.to_cow().trim().parse().ok(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            };
            whole.map(Some)
        }
    }
}

/// F1, F13: "" and null are absent, anything else is its text.
fn finish_reason<'a>(value: &Node<'a>) -> Option<Cow<'a, str>> {
    match &value.value {
        Value::Null => None,
        Value::String(_) => value.text().filter(|text| !text.is_empty()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_json())
        }
    }
}

/// Which part of the entry is its message: the delta, the text, or a whole message in place of both (C19, E21, E22).
fn read_message<'a>(node: &Node<'a>, element: &mut Element<'a>, reasoning: &[Arc<str>]) {
    let given = node.get("delta").filter(|delta| !delta.is_null());
    let delta = given.filter(|delta| delta.as_object().is_some());
    match (delta, given) {
        (Some(delta), _) => openai_chat::delta(delta, element, reasoning),
        (None, Some(odd)) => {
            element.odd = true;
            put(
                &mut element.update.metadata,
                Cow::Borrowed("delta"),
                odd.to_json(),
            );
        }
        (None, None) => {}
    }
    if let Some(text) = node.get("text") {
        openai_text::text(text, delta.is_some(), element);
    }
    let message = node
        .get("message")
        .filter(|message| says_something(message));
    if let Some(message) = message
        .filter(|_| !element.update.has_payload() && element.update.kind == CompletionKind::Chat)
    {
        let mut whole = Element::default();
        openai_chat::delta(message, &mut whole, reasoning);
        whole.update.is_full_message = whole.update.has_payload();
        openai_chat::merge(whole, element);
    }
}
