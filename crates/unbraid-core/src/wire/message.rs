//! Messages, calls and audio.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use super::without_nulls;
use crate::{
    Audio, CallIndex, CallKind, FinishReason, Message, ReasoningSource, ToolCall, aggregate,
    chunk::CONTENT_PARTS, config, json_text::Json, transcript::raw_pairs,
};

/// The text of the reason, unchanged.
impl Serialize for FinishReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The `audio` of a message that is not streamed: its bytes as base64.
impl Serialize for Audio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        without_nulls(Json::Value(self.to_value())).serialize(serializer)
    }
}

/// The message of a response that is not streamed, which is also how a request repeats it.
///
/// Unknown fields keep every digit of their numbers, but only if `serde_json` writes text: through
/// [`to_value`](serde_json::to_value) a number becomes what a [`Value`](serde_json::Value) holds, and one beyond `f64` is
/// an error.
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        without_nulls(aggregate::message_json(self)).serialize(serializer)
    }
}

/// An entry of `tool_calls`; a legacy function call is the object under `function_call`.
impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = match self.kind {
            CallKind::LegacyFunction => aggregate::function_call(self),
            _ => aggregate::tool_call(self),
        };
        without_nulls(json).serialize(serializer)
    }
}

/// A message as [`Serialize`] writes it, or as a server sent it; only from JSON, through `serde_json`.
///
/// What the wire does not have is lost: [`status`](ToolCall::status) is `None` and
/// [`wire_index`](ToolCall::wire_index) is, too, unless the entry has an `index`; calls are numbered in their order, the
/// legacy function call last; audio that was not base64 is not among the bytes.
impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        message(raw.get()).map_err(D::Error::custom)
    }
}

/// A call as [`Serialize`] writes it, or as a server sent it; only from JSON, through `serde_json`.
///
/// [`call_index`](ToolCall::call_index) is 0 and [`status`](ToolCall::status) is `None`.
impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        tool_call(raw.get()).map_err(D::Error::custom)
    }
}

fn message(raw: &str) -> Result<Message, &'static str> {
    if !raw.starts_with('{') {
        return Err("a message is not an object");
    }
    let mut message = Message::default();
    for (key, raw) in raw_pairs(raw) {
        match &*key {
            "role" => message.role = text(raw)?.map(Arc::from),
            "content" => content(raw, &mut message)?,
            "refusal" => message.refusal = text(raw)?.unwrap_or_default(),
            "tool_calls" => tool_calls(raw, &mut message.tool_calls)?,
            "function_call" if raw != "null" => {
                let mut call = tool_call(raw)?;
                call.kind = CallKind::LegacyFunction;
                push_call(call, &mut message.tool_calls);
            }
            "audio" if raw.starts_with('{') => {
                let audio = message.audio.get_or_insert_default();
                if !audio.absorb(raw) {
                    return Err("the data of an audio is not base64");
                }
            }
            "function_call" => {}
            _ if raw.starts_with('"') && is_reasoning(&key) && message.reasoning.is_empty() => {
                message.reasoning = text(raw)?.unwrap_or_default();
                let is_some = !message.reasoning.is_empty();
                message.reasoning_source = is_some.then(|| ReasoningSource::Field(Arc::from(key)));
            }
            _ => message.extra.push((Arc::from(key), raw.into())),
        }
    }
    Ok(message)
}

fn is_reasoning(key: &str) -> bool {
    config::default_reasoning_keys()
        .iter()
        .any(|name| **name == *key)
}

/// A text, or a list of parts: those of text are joined, and the others are kept as they are.
fn content(raw: &str, message: &mut Message) -> Result<(), &'static str> {
    if !raw.starts_with('[') {
        message.content = text(raw)?.unwrap_or_default();
        return Ok(());
    }
    let mut others = Vec::new();
    for part in list(raw)? {
        let part_text = raw_pairs(part).into_iter().find(|(key, _)| *key == "text");
        match part_text.and_then(|(_, raw)| text(raw).ok().flatten()) {
            Some(text) => message.content.push_str(&text),
            None => others.push(part),
        }
    }
    if !others.is_empty() {
        let raw = format!("[{}]", others.join(","));
        message.extra.push((CONTENT_PARTS.into(), raw.into()));
    }
    Ok(())
}

fn tool_calls(raw: &str, calls: &mut Vec<ToolCall>) -> Result<(), &'static str> {
    if raw == "null" {
        return Ok(());
    }
    for entry in list(raw)? {
        push_call(tool_call(entry)?, calls);
    }
    Ok(())
}

fn push_call(mut call: ToolCall, calls: &mut Vec<ToolCall>) {
    call.call_index = CallIndex(u32::try_from(calls.len()).unwrap_or(u32::MAX));
    calls.push(call);
}

fn tool_call(raw: &str) -> Result<ToolCall, &'static str> {
    if !raw.starts_with('{') {
        return Err("a tool call is not an object");
    }
    let mut call = ToolCall::empty();
    for (key, raw) in raw_pairs(raw) {
        match &*key {
            "id" => call.id = text(raw)?.map(Arc::from),
            "index" => call.wire_index = raw.parse().ok(),
            "type" if raw == "\"custom\"" => call.kind = CallKind::Custom,
            "type" if matches!(raw, "\"function\"" | "\"\"" | "null") => {}
            "function" | "custom" => {
                for (key, raw) in raw_pairs(raw) {
                    name_or_arguments(&key, raw, &mut call)?;
                }
            }
            "name" | "arguments" => {
                call.kind = CallKind::LegacyFunction;
                name_or_arguments(&key, raw, &mut call)?;
            }
            _ => call.extra.push((Arc::from(key), raw.into())),
        }
    }
    Ok(call)
}

/// Some servers send arguments as an object in place of its text.
fn name_or_arguments(key: &str, raw: &str, call: &mut ToolCall) -> Result<(), &'static str> {
    match key {
        "name" => call.name = text(raw)?.unwrap_or_default().into(),
        "arguments" | "input" if raw.starts_with('"') => {
            call.arguments = text(raw)?.unwrap_or_default();
        }
        "arguments" | "input" if raw != "null" => raw.clone_into(&mut call.arguments),
        _ => {}
    }
    Ok(())
}

fn text(raw: &str) -> Result<Option<String>, &'static str> {
    serde_json::from_str(raw).map_err(|_| "a field that holds text is of another type")
}

fn list(raw: &str) -> Result<Vec<&str>, &'static str> {
    let items: Vec<&RawValue> =
        serde_json::from_str(raw).map_err(|_| "a field that holds a list is of another type")?;
    Ok(items.into_iter().map(RawValue::get).collect())
}

impl ToolCall {
    /// A function call of which nothing is known.
    fn empty() -> Self {
        Self {
            call_index: CallIndex::default(),
            wire_index: None,
            id: None,
            name: "".into(),
            kind: CallKind::Function,
            arguments: String::new(),
            status: None,
            extra: Vec::new(),
            without_id: false,
        }
    }
}
