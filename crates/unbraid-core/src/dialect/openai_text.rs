//! Text completions, whose text is in `choices[].text`. Log probabilities are parallel lists; everything else is as in chats.

use std::sync::Arc;

use super::{openai_chat, parts::content};
use crate::{
    CompletionKind,
    chunk::{Element, ReasoningOrigin, put_field, some_text},
    node::{Node, Value},
};

/// The fields that an entry with a `text` has beside it where a chat has them in its delta, apart from those of reasoning
/// (C19). OpenRouter sends reasoning so, and `ChunkEncoder` all of them.
const BESIDE_TEXT: [&str; 4] = [
    "refusal",
    "tool_calls",
    "function_call",
    "reasoning_details",
];

/// Whether a field of an entry with a `text` is one that a chat has in its delta.
pub(crate) fn is_beside_text(key: &str, is_reasoning_key: impl FnOnce() -> bool) -> bool {
    BESIDE_TEXT.contains(&key) || is_reasoning_key()
}

/// The same with the names of reasoning fields.
pub(super) fn is_field_beside_text(key: &str, reasoning_keys: &[Arc<str>]) -> bool {
    is_beside_text(key, || reasoning_keys.iter().any(|name| **name == *key))
}

/// Whether an entry has one of these fields, other than null.
pub(super) fn has_field_beside(entry: &Node<'_>, reasoning_keys: &[Arc<str>]) -> bool {
    let mut fields = entry.as_object().unwrap_or_default().iter();
    fields.any(|(key, value)| !value.is_null() && is_field_beside_text(key, reasoning_keys))
}

/// Reads what an entry has beside its `text`.
pub(super) fn fields_beside<'a>(
    entry: &Node<'a>,
    element: &mut Element<'a>,
    reasoning_keys: &[Arc<str>],
) {
    let fields = entry.as_object().unwrap_or_default().iter();
    let beside = fields.filter(|(key, _)| is_field_beside_text(key, reasoning_keys));
    openai_chat::read_fields(beside, element, reasoning_keys);
}

/// Reads `text`, which counts if the delta has no content. Some servers send the same text in both (C19).
pub(super) fn text<'a>(text: &Node<'a>, has_delta: bool, element: &mut Element<'a>) {
    if !has_delta {
        element.update.kind = CompletionKind::Text;
    }
    if element.update.content.is_some() {
        return;
    }
    match text.value {
        Value::Null | Value::String(_) => element.update.content = some_text(text.fragment()),
        // As content of a chat, which some servers put here (C11).
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            parts(text, element);
        }
    }
}

/// Reads a text that is a list of parts. Reasoning under a name of its own takes precedence.
fn parts<'a>(text: &Node<'a>, element: &mut Element<'a>) {
    let mut read = Element::default();
    content(text, &mut read);
    element.update.content = read.update.content;
    if element.update.reasoning.is_none() && read.update.reasoning.is_some() {
        element.update.reasoning = read.update.reasoning;
        element.reasoning_origin = Some(ReasoningOrigin::ContentParts);
    }
    element.has_unexpected_type |= read.has_unexpected_type;
    element.replaced_half |= read.replaced_half;
    for (key, raw) in read.fields {
        put_field(&mut element.fields, key, raw);
    }
}
