//! Recognizes the dialect of a stream by one of its values (D02), and the formats that are not read.

use super::{Dialect, wire_event::WireEvent};
use crate::{BodyFormat, node::Node};

/// The dialect that a value identifies; `None` for a ping, an error, and any other value.
pub(crate) fn identify(event: &WireEvent<'_, '_>) -> Option<Dialect> {
    let node = event.node;
    if node
        .get("choices")
        .is_some_and(|node| node.as_array().is_some())
        || is_chunk_object(node)
    {
        return Some(Dialect::Chat); // first, because gateways add the fields of other dialects to chunks (D04)
    }
    let kind = event.kind();
    let kind = kind.as_deref().unwrap_or_default();
    if kind.starts_with("response.") || is_text(node, "object", "response") {
        Some(Dialect::Responses)
    } else if is_anthropic(kind, node) {
        Some(Dialect::Anthropic)
    } else if is_cohere(kind, node) {
        Some(Dialect::Cohere)
    } else if is_gemini(node) || node.get("response").is_some_and(is_gemini) {
        Some(Dialect::Gemini)
    } else if is_ollama(node) {
        Some(Dialect::Ollama)
    } else if is_converse(kind, node) || is_bedrock_body(node) || is_invoke_chunk(kind, node) {
        Some(Dialect::Bedrock)
    } else {
        None
    }
}

/// Whether the `object` of a value is that of a chunk, or of a response that was not streamed. It says what a value without
/// `choices` is, whatever a gateway adds to it.
fn is_chunk_object(node: &Node<'_>) -> bool {
    let object = node.get("object").and_then(Node::as_str);
    object.is_some_and(|object| {
        object.text.starts_with("chat.completion") || object.text == "text_completion"
    })
}

/// Whether a value has a type or a key of a dialect that no other value has by chance.
pub(crate) fn is_unmistakable(event: &WireEvent<'_, '_>) -> bool {
    let kind = event.kind();
    let kind = kind.as_deref().unwrap_or_default();
    let has_candidates = |node: &Node<'_>| has(node, "candidates");
    event.node.get("choices").is_some_and(is_choices)
        || is_chunk_object(event.node)
        || counts_tokens(event.node)
        || has_candidates(event.node)
        || event.node.get("response").is_some_and(has_candidates)
        || is_ollama_line(event.node)
        || kind.starts_with("response.")
        || is_text(event.node, "object", "response")
        || is_anthropic(kind, event.node)
        || TYPES.contains(&kind)
        || is_converse(kind, event.node)
}

/// Whether the value of `choices` is a list, or the object that Lua and PHP write in its place (E22).
fn is_choices(node: &Node<'_>) -> bool {
    node.as_array().is_some() || node.as_object().is_some()
}

/// Whether a value has the usage of chat or text completions, whatever a gateway adds to it.
pub(crate) fn counts_tokens(node: &Node<'_>) -> bool {
    let usage = node.get("usage");
    let has = |key: &str| usage.is_some_and(|usage| usage.get(key).is_some_and(Node::is_set));
    has("prompt_tokens") || has("completion_tokens")
}

/// The format of a value that no dialect reads, by the key that identifies it.
pub(crate) fn unsupported(event: &WireEvent<'_, '_>) -> Option<BodyFormat> {
    let node = event.node;
    let kind = event.kind();
    let kind = kind.as_deref().unwrap_or_default();
    let has = |key: &str| node.get(key).is_some();
    if let Some(kind) = node.get("event_type").and_then(Node::as_str) {
        // Cohere's types have no dot: `text-generation`.
        Some(
            if has("interaction") || has("interaction_id") || kind.text.contains('.') {
                BodyFormat::GeminiInteractions
            } else {
                BodyFormat::CohereV1
            },
        )
    } else if kind == "completion" && has("completion") {
        Some(BodyFormat::AnthropicCompletion)
    } else if kind.starts_with("conversation.response.") || kind.starts_with("message.output.") {
        Some(BodyFormat::MistralConversations)
    } else if kind.starts_with("interaction.") || has("interaction") {
        Some(BodyFormat::GeminiInteractions)
    } else if matches!(
        kind,
        "stream-start"
            | "start-step"
            | "text-start"
            | "text-delta"
            | "reasoning-start"
            | "tool-input-start"
    ) || (kind == "start" && has("messageId"))
    {
        Some(BodyFormat::AiSdk)
    } else if kind.starts_with("session.") || has("serverContent") || has("setupComplete") {
        Some(BodyFormat::Realtime)
    } else {
        None
    }
}

/// Whether a key has a value. Gateways that serialize every field send null for those of other providers.
fn has(node: &Node<'_>, key: &str) -> bool {
    node.get(key).is_some_and(|value| !value.is_null())
}

fn is_text(node: &Node<'_>, key: &str, text: &str) -> bool {
    let value = node.get(key).and_then(Node::as_str);
    value.is_some_and(|value| value.text == text)
}

fn is_anthropic(kind: &str, node: &Node<'_>) -> bool {
    kind.starts_with("content_block_")
        || matches!(kind, "message_start" | "message_delta" | "message_stop")
        || (kind == "message" && has(node, "content") && node.get("stop_reason").is_some())
}

fn is_cohere(kind: &str, node: &Node<'_>) -> bool {
    let message = node.get("message").and_then(Node::as_object);
    let reason = node.get("finish_reason");
    // An answer that was cut has null. Lines of Ollama have `done`, and in some gateways a reason, too.
    let is_reason = |reason: &Node<'_>| reason.is_null() || reason.as_str().is_some();
    let is_body = message.is_some() && reason.is_some_and(is_reason) && !is_ollama(node);
    TYPES.contains(&kind) || is_body
}

/// The types of Cohere's events, but for `debug`, which is too common a word.
const TYPES: [&str; 11] = [
    "message-start",
    "content-start",
    "content-delta",
    "content-end",
    "tool-plan-delta",
    "tool-call-start",
    "tool-call-delta",
    "tool-call-end",
    "citation-start",
    "citation-end",
    "message-end",
];

fn is_gemini(node: &Node<'_>) -> bool {
    ["candidates", "promptFeedback", "usageMetadata"]
        .iter()
        .any(|key| has(node, key))
}

fn is_ollama(node: &Node<'_>) -> bool {
    node.get("done").and_then(Node::as_bool).is_some()
        || (has(node, "created_at") && (has(node, "message") || has(node, "response")))
}

/// Whether a value has both the message and the `done` of Ollama's lines.
fn is_ollama_line(node: &Node<'_>) -> bool {
    let message = node.get("message").and_then(Node::as_object);
    message.is_some() && node.get("done").and_then(Node::as_bool).is_some()
}

/// The answer of Converse, or of Llama or Titan, without streaming. Those of other models have no field of their own.
fn is_bedrock_body(node: &Node<'_>) -> bool {
    let message = node.get("output").and_then(|output| output.get("message"));
    (node.get("stopReason").is_some() && message.is_some())
        || (has(node, "stopReason") && has(node, "output"))
        || (has(node, "generation") && has(node, "generation_token_count"))
        || (has(node, "results") && has(node, "inputTextTokenCount"))
}

/// A chunk of `InvokeModel` as JSON: the only member, as SDKs have it, or the data of an event with this name (B16). Proxies drop
/// the name (D09).
fn is_invoke_chunk(kind: &str, node: &Node<'_>) -> bool {
    let has_bytes = |node: &Node<'_>| node.get("bytes").and_then(Node::as_str).is_some();
    node.get("chunk").is_some_and(has_bytes)
        || (kind == "chunk" && has_bytes(node))
        || (says_nothing(kind) && is_invoke_payload(node))
}

/// Whether a name is missing, or one that gateways give to every event.
pub(super) fn says_nothing(name: &str) -> bool {
    matches!(name, "" | "message" | "data")
}

/// Whether a value has nothing but the bytes of a chunk of `InvokeModel`, and their padding.
pub(super) fn is_invoke_payload(node: &Node<'_>) -> bool {
    let fields = node.as_object().unwrap_or_default();
    let mut others = fields.iter().map(|(key, _)| &**key);
    node.get("bytes").and_then(Node::as_str).is_some()
        && others.all(|key| matches!(key, "bytes" | "p"))
}

fn is_converse(kind: &str, node: &Node<'_>) -> bool {
    let mut fields = node.as_object().unwrap_or_default().iter();
    is_converse_type(kind) || fields.any(|(key, value)| is_converse_type(key) && !value.is_null())
}

fn is_converse_type(name: &str) -> bool {
    name.starts_with("contentBlock") || matches!(name, "messageStart" | "messageStop")
}
