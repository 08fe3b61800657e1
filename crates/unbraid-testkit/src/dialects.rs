//! Slow, simple readers of the dialects without `choices`. Tests compare their results with those of the library.
//!
//! Each reader has the whole stream as a list of values, and answers one question after another. It shares no code with
//! the library. The ids in the comments (A07, P10, …) are those of `docs/edge-cases.md`.

mod anthropic;
mod bedrock;
mod cohere;
mod gemini;
mod messages;
mod ollama;
mod responses;
mod values;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::reference::{fault, lenient::join_halves};

pub use messages::message;
pub use values::{Stream, WireValue};

/// The result of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The name of the dialect.
    pub dialect: &'static str,
    /// The choices by their index.
    pub choices: BTreeMap<u32, Choice>,
    /// The last value of each field of the usage; null if there is none.
    pub usage: Value,
    /// Whether the server reported an error that ended the stream.
    pub error: bool,
    /// Whether the stream ended because it is malformed.
    pub malformed: bool,
    /// How many values could not be read.
    pub lost: usize,
    /// What guardrails of Bedrock did after the end, by its name.
    pub guardrail: BTreeMap<String, Value>,
}

/// One choice of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The text.
    pub content: String,
    /// The reasoning.
    pub reasoning: String,
    /// The refusal.
    pub refusal: String,
    /// The calls in order of appearance.
    pub calls: Vec<Call>,
    /// The raw finish reason.
    pub finish_reason: Option<String>,
    /// How it ended: `finished`, `done_without_finish`, `interrupted` or `server_error`.
    pub end: &'static str,
    /// The entries of `annotations`, `images`, `reasoning_details` and `content_parts`.
    pub lists: BTreeMap<&'static str, Vec<Value>>,
    /// What guardrails of Bedrock did, by its name.
    pub guardrail: BTreeMap<String, Value>,
}

/// A call that the client answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The id.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// Whether the input is free text.
    pub custom: bool,
    /// The raw arguments.
    pub arguments: String,
}

impl Choice {
    fn list(&mut self, name: &'static str, entry: Value) {
        self.lists.entry(name).or_default().push(entry);
    }

    /// Calls without arguments have an empty object of them, unless the answer was cut (D14).
    fn fill_calls(&mut self) {
        if self.finish_reason.as_deref().is_none_or(is_cut) {
            return;
        }
        let calls = self.calls.iter_mut();
        for call in calls.filter(|call| call.arguments.is_empty() && !call.custom) {
            call.arguments = "{}".to_owned();
        }
    }
}

/// Reads a whole stream; `None` if no value identifies a dialect without `choices`.
pub fn accumulate(bytes: &[u8]) -> Option<Answer> {
    let stream = values::read(bytes);
    let dialect = if stream.is_binary {
        "bedrock"
    } else {
        stream.values.iter().find_map(identify)?
    };
    let mut answer = match dialect {
        "anthropic" => anthropic::read(&stream),
        "responses" => responses::read(&stream),
        "gemini" => gemini::read(&stream),
        "ollama" => ollama::read(&stream),
        "cohere" => cohere::read(&stream),
        "bedrock" => bedrock::read(&stream),
        _ => return None,
    };
    answer.dialect = dialect;
    answer.lost = stream.lost;
    answer.malformed |= stream.is_broken;
    for choice in answer.choices.values_mut() {
        for part in [
            &mut choice.content,
            &mut choice.reasoning,
            &mut choice.refusal,
        ] {
            *part = join_halves(part); // C14
        }
        for call in &mut choice.calls {
            call.arguments = join_halves(&call.arguments);
        }
    }
    for choice in answer
        .choices
        .values_mut()
        .filter(|choice| choice.end.is_empty())
    {
        choice.end = match &choice.finish_reason {
            Some(_) => "finished",
            None if answer.error => "server_error",
            None if stream.done => "done_without_finish",
            None => "interrupted",
        };
    }
    Some(answer)
}

/// The dialect that the value of an event with this name identifies.
pub(crate) fn identify_value(value: &Value, name: &str) -> Option<&'static str> {
    identify(&WireValue {
        name: name.to_owned(),
        value: value.clone(),
    })
}

/// The dialect that a value identifies (D02).
fn identify(value: &WireValue) -> Option<&'static str> {
    let WireValue { name, value } = value;
    let has = |key: &str| !value[key].is_null();
    let kind = kind_of(value, name);
    let is_gemini = |value: &Value| {
        ["candidates", "promptFeedback", "usageMetadata"]
            .iter()
            .any(|key| !value[*key].is_null())
    };
    let cohere = [
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
    let converse = |key: &str| {
        key.starts_with("contentBlock") || key == "messageStart" || key == "messageStop"
    };
    let has_converse = || {
        let fields = value.as_object();
        fields.is_some_and(|fields| fields.keys().any(|key| converse(key)))
    };
    let is_invoke_payload = || {
        let mut fields = value.as_object().into_iter().flatten();
        value["bytes"].is_string() && fields.all(|(key, _)| key == "bytes" || key == "p")
    };
    let is_ollama = || {
        let has_part = has("message") || has("response");
        value["done"].is_boolean() || (has("created_at") && has_part)
    };
    let is_cohere_body =
        || value["finish_reason"].is_string() && value["message"].is_object() && !is_ollama();
    // S16: of the fields of a ping, only those decide that no ping has by chance.
    let is_ping = matches!(kind, "ping" | "keepalive");
    let object = value["object"].as_str().unwrap_or_default();
    let is_chunk = object.starts_with("chat.completion") || object == "text_completion";
    let is_certain = value["choices"].is_array()
        || value["choices"].is_object()
        || is_chunk
        || has("candidates")
        || !value["response"]["candidates"].is_null()
        || (value["message"].is_object() && value["done"].is_boolean())
        || object == "response"
        || has_converse();
    if is_ping && !is_certain {
        return None;
    }
    if value["choices"].is_array() || is_chunk {
        Some("chat")
    } else if kind.starts_with("response.") || value["object"] == "response" {
        Some("responses")
    } else if ["message_start", "message_delta", "message_stop"].contains(&kind)
        || kind.starts_with("content_block_")
        || (kind == "message" && has("content") && value.get("stop_reason").is_some())
    {
        Some("anthropic")
    } else if cohere.contains(&kind) || is_cohere_body() {
        Some("cohere")
    } else if is_gemini(value) || is_gemini(&value["response"]) {
        Some("gemini")
    } else if is_ollama() {
        Some("ollama")
    } else if converse(kind)
        || has_converse()
        || (has("stopReason") && has("output"))
        || (value.get("stopReason").is_some() && value["output"]["message"].is_object())
        || value["chunk"]["bytes"].is_string()
        || (kind == "chunk" && value["bytes"].is_string())
        || (["", "message", "data"].contains(&kind) && is_invoke_payload())
        || bedrock::is_body(value)
    {
        Some("bedrock")
    } else {
        None
    }
}

/// The type of a value, or the name of its event in place of a type that is missing or empty (D09).
fn kind_of<'v>(value: &'v Value, name: &'v str) -> &'v str {
    let own = value["type"].as_str().filter(|kind| !kind.is_empty());
    own.unwrap_or(name)
}

/// Whether a value is an error of the stream.
fn is_error(value: &WireValue) -> bool {
    let error = &value.value["error"];
    let is_set = !error.is_null() && *error != "" && *error != Value::Bool(false);
    let is_error = value.name == "error" || value.value["type"] == "error" || is_set;
    is_error || fault::in_value(&value.value, &value.name).is_some()
}

/// The text of a field; empty if there is none.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Adds the fields of a usage object: the last value that is not null counts, and objects are merged (A15).
fn merge(usage: &mut Value, more: &Value) {
    match (usage, more) {
        (Value::Object(usage), Value::Object(more)) => {
            for (key, value) in more.iter().filter(|(_, value)| !value.is_null()) {
                match usage.get_mut(key) {
                    Some(known) if known.is_object() && value.is_object() => merge(known, value),
                    _ => drop(usage.insert(key.clone(), without_nulls(value))),
                }
            }
        }
        (usage, more) if more.is_object() => *usage = without_nulls(more),
        _ => {}
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(k, v)| (k.clone(), without_nulls(v))).collect())
        }
        other => other.clone(),
    }
}

/// The entries of a list, or one entry in its place.
fn entries(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(_) => vec![value],
        _ => Vec::new(),
    }
}

/// Arguments as text: an object is its JSON, and an empty one is none yet.
fn arguments(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// Whether an answer with this finish reason was cut.
fn is_cut(reason: &str) -> bool {
    let reasons = [
        "max_tokens",
        "max_output_tokens",
        "model_context_window_exceeded",
        "refusal",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "error",
        "timeout",
        "length",
    ];
    reasons.contains(&reason.to_lowercase().as_str())
}

/// A finish reason.
fn reason(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(reason) if reason.is_empty() => None,
        Value::String(reason) => Some(reason.clone()),
        Value::Array(_) | Value::Object(_) if !is_set(value) => None, // F1
        other => Some(other.to_string()),
    }
}

/// Whether a value is neither null, false, zero nor empty.
pub(crate) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(value) => *value,
        Value::Number(_) => value.as_u64() != Some(0),
    }
}

/// Gateways that serialize every field send null, false, `""` or an object of these in place of an error (X3).
pub(crate) fn is_present(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(is_present),
        value => is_set(value),
    }
}
