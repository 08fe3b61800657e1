//! Text completions, whose text is in `choices[].text`. Log probabilities are parallel lists; everything else is as in chats.

use std::sync::Arc;

use super::openai_chat;
use crate::{
    CompletionKind,
    chunk::{Element, some_text},
    node::Node,
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
    if element.update.content.is_none() {
        element.update.content = some_text(text.fragment());
    }
}
