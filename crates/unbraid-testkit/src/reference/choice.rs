//! One choice, assembled from its elements.

use serde_json::{Map, Value, json};

use super::fault;
use super::lenient::{is_high_half, join_halves};
use super::status::{self, Cut};
use super::text;
use super::think;
use super::tools::{FunctionCall, ToolCall, Tools};
use crate::fixture::SplitThink;

/// Everything received for one choice, before and after its finish.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The text.
    pub content: String,
    /// The reasoning.
    pub reasoning: String,
    /// Where the reasoning was: `field NAME`, `parts`, `details` or `tags`.
    pub reasoning_source: Option<String>,
    /// The refusal.
    pub refusal: String,
    /// Whether any of the text was sent as a text completion.
    pub text_completion: bool,
    /// The first role.
    pub role: Option<String>,
    /// The first finish reason, raw; a number or an object as its JSON (F13).
    pub finish_reason: Option<String>,
    /// The calls in order of appearance.
    pub tool_calls: Vec<ToolCall>,
    /// The legacy call, unless it only repeats a tool call (T37).
    pub function_call: Option<FunctionCall>,
    /// The number of log probabilities of content tokens.
    pub logprobs_content_len: usize,
    /// The number of log probabilities of refusal tokens.
    pub logprobs_refusal_len: usize,
    /// The number of log probabilities of a text completion (M2).
    pub logprobs_tokens_len: usize,
    /// The error inside the choice, which ends this choice alone (F12).
    pub error: Option<Value>,
    /// Whether its finish reason was in the chunk of the error that ended the stream (X4).
    pub failed_with_stream: bool,
    /// How it ended: `finished`, `done_without_finish`, `interrupted` or `server_error`.
    pub end: &'static str,
    /// How many deltas had text, or arguments of a call. Each one costs at least one token (U15).
    pub(super) text_deltas: u64,
    tools: Tools,
    /// Whether reasoning was sent under one of `REASONING_KEYS`, so that details only repeat it (R4).
    has_reasoning_key: bool,
    split_think: SplitThink,
    /// Whether a message was read in place of a delta, and nothing else has brought text or calls (E21).
    only_messages: bool,
    /// Reasoning with its own field name, each fragment with the length of the content before it.
    thoughts: Vec<(usize, String)>,
}

impl Choice {
    pub(super) fn new(split_think: SplitThink) -> Self {
        Self {
            split_think,
            ..Self::default()
        }
    }

    pub(super) fn apply(&mut self, element: &Value, reasoning_keys: Option<&[String]>) {
        let delta = element["delta"].as_object();
        if element.get("text").is_some() && delta.is_none_or(Map::is_empty) {
            let fields = beside_text(element, reasoning_keys);
            if !fields.is_empty() {
                let mut element = element.clone();
                element["delta"] = Value::Object(fields);
                return self.apply(&element, reasoning_keys);
            }
        }
        let was_empty = !self.has_payload();
        let delta = self.delta(element);
        let is_message = element
            .get("message")
            .is_some_and(|message| std::ptr::eq(message, delta));
        let further = element
            .get("message")
            .filter(|_| self.only_messages && !has_payload_field(delta));
        let texts_before = self.text_len();
        let texts_so_far = self.texts().map(str::len);
        let arguments = has_arguments(delta);
        self.role = self
            .role
            .take()
            .or_else(|| text(delta, "role").map(str::to_owned));
        self.reason(delta, reasoning_keys);
        let before = self.content.len();
        self.content(delta.get("content"));
        // C19: if both contain text, the delta counts.
        if self.content.len() == before {
            let thoughts = self.reasoning.len();
            self.content(element.get("text"));
            self.text_completion |= self.content.len() > before || self.reasoning.len() > thoughts;
        }
        self.refusal
            .push_str(&joined(delta, "refusal").unwrap_or_default());
        self.text_deltas += u64::from(arguments || self.text_len() > texts_before);
        self.note_text(&texts_so_far);
        self.tools.delta(delta);
        if was_empty {
            self.only_messages = is_message && self.has_payload();
        } else if has_payload_field(delta) {
            self.only_messages = false;
        }
        // The calls of a message count also after deltas, if no delta had one (E21).
        let after_deltas =
            !was_empty && !has_payload_field(delta) && !self.only_messages && self.tools.is_empty();
        if let Some(message) = element.get("message").filter(|_| after_deltas) {
            self.tools.delta(message);
        }
        let repeats = further.is_some_and(|message| self.further_message(message, reasoning_keys));
        if !repeats {
            self.logprobs(element);
        }
        if let (None, Some(reason)) = (&self.finish_reason, finish_reason(element)) {
            self.tools.finish_reason(&reason);
            self.finish_reason = Some(reason);
        }
        let error = element
            .get("error")
            .filter(|error| fault::is_failure(error));
        self.error = self.error.take().or_else(|| error.cloned());
    }

    /// Whether the element brings text, a call, log probabilities or an error.
    pub(super) fn gains(&self, element: &Value, reasoning_keys: Option<&[String]>) -> bool {
        let mut after = self.clone();
        after.apply(element, reasoning_keys);
        after.role.clone_from(&self.role);
        after.finish_reason.clone_from(&self.finish_reason);
        after != *self || element.get("delta").is_some_and(has_unknown_field)
    }

    /// The delta, or the message of a server that sends one instead while the choice is empty (E21, E27).
    fn delta<'a>(&self, element: &'a Value) -> &'a Value {
        let delta = element.get("delta").unwrap_or(&Value::Null);
        if has_payload_field(delta) || self.has_payload() {
            return delta;
        }
        element.get("message").unwrap_or(delta)
    }

    /// Reads another message of a server that sends no deltas. A text that begins with the one so far repeats it, and only its
    /// rest is new; any other text is the next piece (E21). True if anything was repeated.
    fn further_message(&mut self, message: &Value, reasoning_keys: Option<&[String]>) -> bool {
        let mut alone = Self::new(self.split_think);
        alone.apply(&json!({ "delta": message }), reasoning_keys);
        let texts_so_far = self.texts().map(str::len);
        let mut repeats = false;
        let mut merge = |known: &mut String, text: &str| {
            // The repeated text has the whole character.
            let whole = known.trim_end_matches(is_high_half);
            if !whole.is_empty() && text.starts_with(whole) {
                repeats = true;
                text.clone_into(known);
            } else {
                known.push_str(text);
            }
        };
        let mut reasoning = self.reasoning.clone();
        merge(&mut reasoning, &alone.reasoning);
        merge(&mut self.content, &alone.content);
        merge(&mut self.refusal, &alone.refusal);
        let thought = reasoning.strip_prefix(&self.reasoning).unwrap_or_default();
        if let (Some(source), false) = (alone.reasoning_source, thought.is_empty()) {
            self.think(thought, &source);
        }
        self.reasoning = reasoning;
        self.text_deltas += alone.text_deltas;
        self.note_text(&texts_so_far);
        repeats | self.tools.further_message(message)
    }

    fn texts(&self) -> [&str; 3] {
        [&self.content, &self.reasoning, &self.refusal]
    }

    fn text_len(&self) -> usize {
        self.texts().iter().map(|text| text.len()).sum()
    }

    /// Text other than white space after these lengths follows the calls so far.
    fn note_text(&mut self, lengths: &[usize; 3]) {
        let new = self.texts().into_iter().zip(lengths);
        if new
            .into_iter()
            .any(|(text, len)| !text[*len..].trim().is_empty())
        {
            self.tools.text_follows();
        }
    }

    fn has_payload(&self) -> bool {
        self.texts().iter().any(|text| !text.is_empty()) || !self.tools.is_empty()
    }

    fn content(&mut self, content: Option<&Value>) {
        match content {
            Some(Value::String(part)) => self.content.push_str(part),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.part(part)),
            _ => {}
        }
    }

    /// One part of a content array (C11): text, or thinking, which is a string or an array of text parts.
    fn part(&mut self, part: &Value) {
        match text(part, "type") {
            Some("text") => self
                .content
                .push_str(text(part, "text").unwrap_or_default()),
            Some("thinking" | "reasoning") => {
                match part.get("thinking").or_else(|| part.get("summary")) {
                    Some(Value::String(thought)) => self.think(thought, "parts"),
                    Some(Value::Array(thoughts)) => {
                        thoughts
                            .iter()
                            .filter_map(|thought| text(thought, "text"))
                            .for_each(|thought| self.think(thought, "parts"));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Adds the reasoning under the first key that has text (R3). Details count only while no key had any text in this
    /// choice (R4).
    fn reason(&mut self, delta: &Value, keys: Option<&[String]>) {
        let names: Vec<&str> = match keys {
            Some(keys) => keys.iter().map(String::as_str).collect(),
            None => REASONING_KEYS.to_vec(),
        };
        let mut texts = names.iter().map(|name| (name, joined(delta, name)));
        if let Some((name, Some(part))) = texts.find(|(_, part)| part.is_some()) {
            self.has_reasoning_key = true;
            self.think(&part, &format!("field {name}"));
        } else if let (false, Some(Value::Array(details))) =
            (self.has_reasoning_key, delta.get("reasoning_details"))
        {
            // A part of Gemini is kept there for its signature.
            let is_part = |detail: &&Value| detail.get("thoughtSignature").is_some();
            let parts = details
                .iter()
                .filter(|detail| !is_part(detail))
                .filter_map(|detail| text(detail, "text").or_else(|| text(detail, "summary")));
            parts.for_each(|part| self.think(part, "details"));
        }
    }

    /// The first source counts, except that text replaces details.
    fn think(&mut self, thought: &str, source: &str) {
        if self
            .reasoning_source
            .as_deref()
            .is_none_or(|known| known == "details")
        {
            self.reasoning_source = Some(source.to_owned());
        }
        self.reasoning.push_str(thought);
        self.thoughts.push((self.content.len(), thought.to_owned()));
    }

    fn logprobs(&mut self, element: &Value) {
        let len = |key| element.pointer(key).map_or(0, list_len);
        self.logprobs_content_len += len("/logprobs/content");
        // M6: the number of the only token of the delta.
        let has_text = text(&element["delta"], "content").is_some();
        self.logprobs_content_len += usize::from(has_text && element["logprobs"].is_number());
        self.logprobs_refusal_len += len("/logprobs/refusal");
        self.logprobs_tokens_len += len("/logprobs/tokens");
    }

    /// Joins surrogate halves, decides how the choice ended, and finishes the calls.
    pub(super) fn finish(&mut self, stream_end: &'static str) {
        if self.split_think != SplitThink::Never {
            (self.reasoning, self.content) =
                think::separate(&self.content, &self.thoughts, self.split_think);
            if self.thoughts.is_empty() && !self.reasoning.is_empty() {
                self.reasoning_source = Some("tags".to_owned());
            }
        }
        for part in [&mut self.content, &mut self.reasoning, &mut self.refusal] {
            *part = join_halves(part);
        }
        self.end = match &self.finish_reason {
            _ if self.error.is_some() || self.failed_with_stream => "server_error",
            Some(_) => "finished",
            None => stream_end,
        };
        let reason = self.finish_reason.as_deref().unwrap_or_default();
        let cut = match self.end {
            "finished" if status::is_length(reason) => Cut::Last,
            "finished" if !status::is_cut(reason) => Cut::None,
            _ => Cut::Any,
        };
        (self.tool_calls, self.function_call) = std::mem::take(&mut self.tools).finish(cut);
    }
}

/// How many entries a list has, or what is sent in its place: an object with the positions as keys (E22).
fn list_len(list: &Value) -> usize {
    let is_position = |key: &String| key.bytes().all(|byte| byte.is_ascii_digit());
    match list {
        Value::Array(entries) => entries.len(),
        Value::Object(fields) if fields.keys().all(is_position) => fields.len(),
        _ => 0,
    }
}

/// The text of a field: a string, a list of parts, or one part (C11).
fn joined(object: &Value, key: &str) -> Option<String> {
    let of_part = |part: &Value| {
        let fields = ["text", "thinking", "content"].into_iter();
        let text = part
            .as_str()
            .or_else(|| fields.filter_map(|key| text(part, key)).next());
        text.unwrap_or_default().to_owned()
    };
    let text = match object.get(key)? {
        Value::Array(parts) => parts.iter().map(of_part).collect(),
        part => of_part(part),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// The finish reason; null, as a word too, and `""` count as absent (F1).
pub(super) fn finish_reason(element: &Value) -> Option<String> {
    match element.get("finish_reason")? {
        Value::Null | Value::Bool(false) => None,
        Value::String(reason) => {
            Some(reason.clone()).filter(|reason| !["", "null", "None"].contains(&&**reason))
        }
        // Lua and PHP write null so.
        Value::Object(fields) if fields.is_empty() => None,
        Value::Array(entries) if entries.is_empty() => None,
        other => Some(other.to_string()),
    }
}

/// Whether a tool call or the legacy call gets a fragment of its arguments.
fn has_arguments(delta: &Value) -> bool {
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten();
    let bodies = calls.flat_map(|call| [call.get("function"), call.get("custom")]);
    let mut bodies = bodies.chain([delta.get("function_call")]).flatten();
    let filled = |value: &Value| !matches!(value, Value::Null) && value != "";
    bodies.any(|body| {
        let keys = ["arguments", "input"];
        keys.iter().any(|key| body.get(*key).is_some_and(filled))
    })
}

fn has_payload_field(delta: &Value) -> bool {
    let is_payload = |value: &Value| !matches!(value, Value::Null) && value != "";
    delta
        .as_object()
        .is_some_and(|fields| fields.values().any(is_payload))
}

/// What an entry of a text completion has beside its text, where a chat has it in its delta (C19).
fn beside_text(element: &Value, keys: Option<&[String]>) -> Map<String, Value> {
    let names = [
        "refusal",
        "tool_calls",
        "function_call",
        "reasoning_details",
    ];
    let is_reasoning = |key: &String| match keys {
        Some(keys) => keys.contains(key),
        None => REASONING_KEYS.contains(&&**key),
    };
    let fields = element.as_object().into_iter().flatten();
    let beside = fields
        .filter(|(key, value)| !value.is_null() && (names.contains(&&***key) || is_reasoning(key)));
    beside
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether a chunk is one of a text completion.
pub(super) fn is_text_chunk(chunk: &Value) -> bool {
    let entries = chunk["choices"].as_array();
    let has_text = |entry: &Value| entry.get("text").is_some() && is_without_delta(entry);
    chunk["object"] == "text_completion" || entries.into_iter().flatten().any(has_text)
}

/// A chunk of a text completion, with the empty texts that the server has left out (C19).
pub(super) fn with_texts(chunk: &Value, keys: Option<&[String]>) -> Value {
    let mut chunk = chunk.clone();
    let entries = chunk.get_mut("choices").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        let is_left_out = entry.get("text").is_none()
            && is_without_delta(entry)
            && !entry.get("message").is_some_and(fault::is_present)
            && !beside_text(entry, keys).is_empty();
        if let Some(entry) = entry.as_object_mut().filter(|_| is_left_out) {
            entry.insert("text".to_owned(), "".into());
        }
    }
    chunk
}

fn is_without_delta(entry: &Value) -> bool {
    entry["delta"].as_object().is_none_or(Map::is_empty)
}

/// Whether a delta has a field that belongs to the message and has no text (C20).
fn has_unknown_field(delta: &Value) -> bool {
    let known = ["role", "content", "refusal", "tool_calls", "function_call"];
    let padding = ["obfuscation", "nonce", "p"];
    let names = known.into_iter().chain(padding).chain(REASONING_KEYS);
    let names: Vec<&str> = names.collect();
    delta.as_object().is_some_and(|fields| {
        let mut fields = fields.iter();
        fields.any(|(key, value)| !value.is_null() && !names.contains(&&**key))
    })
}

/// The field names of reasoning, in the order of their priority (R3, R5).
const REASONING_KEYS: [&str; 6] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "thinking_content",
    "thought",
];
