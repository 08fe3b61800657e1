//! Aggregates a stream to the response that the server would have sent without streaming.

use std::{
    borrow::Cow,
    fmt::{self, Write},
    sync::Arc,
};

use serde_json::{Value, json};

use crate::{
    CallKind, CompletionKind, Message, Metadata, ReasoningSource, ToolCall, Transcript, Usage,
    chunk::LOGPROB_LISTS,
    json_text::{Fields, Json, ObjectWriter},
    limits::MAX_FIELDS,
    transcript::{Level, raw_pairs},
};

/// Builds the non-streaming response: `id, object, created, model, choices, usage`, then the other fields of the
/// envelope.
///
/// - Choices are sorted by index.
/// - `finish_reason` is the raw text of the first finish reason, and `arguments` is the raw text of the arguments.
///   Nothing is derived or repaired.
/// - Absent fields are `null`. A legacy function call is only in `function_call`. `audio` is present only if the
///   choice has audio (M11).
/// - Late text, which arrived after the end of its choice, is included (F6).
/// - Unknown fields are in the object in which the stream had them: the envelope, the choice, its message (for fields
///   of deltas), or a call.
///
/// A number that a [`Value`] has no room for becomes the nearest `f64`, or null beyond the range of `f64`;
/// [`aggregate_json`] keeps each number as the server wrote it.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n");
/// demux.feed(b"data: [DONE]\n\n");
/// let response = demux.aggregate();
/// assert_eq!(response["choices"][0]["message"]["content"], "Hi");
/// assert_eq!(response["choices"][0]["finish_reason"], "stop");
/// ```
#[must_use]
pub fn aggregate<'t>(
    metadata: &Metadata,
    usage: &Usage,
    choices: impl IntoIterator<Item = &'t Transcript>,
) -> Value {
    let mut response = head(metadata);
    let choices = sorted(choices).into_iter().map(|transcript| {
        let message = transcript.message();
        choice(transcript, &message).into_value()
    });
    response.push(("choices".into(), Json::Value(choices.collect())));
    response.push(("usage".into(), usage.raw_part()));
    add_unknown_fields(&mut response, metadata.extra.iter());
    Json::Object(response).into_value()
}

/// Builds the same response as one line of JSON text. Numbers that the server sent (in usage, log probabilities and
/// unknown fields) keep their exact digits.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}],\"request\":12345678901234567890123}\n\n");
/// assert_eq!(demux.aggregate()["request"], 1.2345678901234568e22);
/// assert!(demux.aggregate_json().ends_with(r#","request":12345678901234567890123}"#));
/// ```
#[must_use]
pub fn aggregate_json<'t>(
    metadata: &Metadata,
    usage: &Usage,
    choices: impl IntoIterator<Item = &'t Transcript>,
) -> String {
    let mut text = String::new();
    let _infallible = write_aggregate(metadata, usage, choices, &[], &mut text);
    text
}

/// Writes [`aggregate_json`], followed by `more` fields of JSON text, which replace unknown fields of the same names. No more
/// than one choice's message is in memory, and no copy of its log probabilities.
///
/// Each write holds whole tokens or parts of one string.
#[doc(hidden)]
pub fn write_aggregate<'t>(
    metadata: &Metadata,
    usage: &Usage,
    choices: impl IntoIterator<Item = &'t Transcript>,
    more: &[(&str, &str)],
    out: &mut dyn Write,
) -> fmt::Result {
    let choices = sorted(choices);
    let choices = choices.into_iter().map(|transcript| {
        move |out: &mut dyn Write| choice(transcript, &transcript.message()).write(out)
    });
    write_response(metadata, usage, choices, more, out)
}

/// Returns one choice of [`aggregate_json`].
#[doc(hidden)]
#[must_use]
pub fn choice_json(transcript: &Transcript) -> String {
    choice(transcript, &transcript.message()).into_text()
}

/// Builds the text of [`write_aggregate`] from choices that were serialized one by one, in the order of their indices.
#[doc(hidden)]
#[must_use]
pub fn aggregate_of(
    metadata: &Metadata,
    usage: &Usage,
    choices: Vec<String>,
    more: &[(&str, &str)],
) -> String {
    let mut text = String::new();
    let choices = choices
        .into_iter()
        .map(|choice| move |out: &mut dyn Write| out.write_str(&choice));
    let _infallible = write_response(metadata, usage, choices, more, &mut text);
    text
}

fn sorted<'t>(choices: impl IntoIterator<Item = &'t Transcript>) -> Vec<&'t Transcript> {
    let mut transcripts: Vec<&Transcript> = choices.into_iter().collect();
    transcripts.sort_by_key(|transcript| transcript.index());
    transcripts
}

fn write_response(
    metadata: &Metadata,
    usage: &Usage,
    choices: impl Iterator<Item = impl FnOnce(&mut dyn Write) -> fmt::Result>,
    more: &[(&str, &str)],
    out: &mut dyn Write,
) -> fmt::Result {
    let mut fields = head(metadata);
    let known = fields.len();
    // Unknown fields of these names are left out, too.
    let reserved = ["choices", "usage"];
    let reserved = reserved.into_iter().chain(more.iter().map(|(key, _)| *key));
    fields.extend(reserved.map(|key| (key.into(), Json::Value(Value::Null))));
    let in_use = fields.len();
    add_unknown_fields(&mut fields, metadata.extra.iter());
    let unknown = fields.split_off(in_use);
    fields.truncate(known);

    let mut response = ObjectWriter::begin(out)?;
    for (key, field) in fields {
        field.write(response.key(&key)?)?;
    }
    let list = response.key("choices")?;
    list.write_char('[')?;
    for (position, choice) in choices.enumerate() {
        if position > 0 {
            list.write_char(',')?;
        }
        choice(list)?;
    }
    list.write_char(']')?;
    usage.raw_part().write(response.key("usage")?)?;
    for (key, field) in unknown {
        field.write(response.key(&key)?)?;
    }
    for (key, text) in more {
        response.key(key)?.write_str(text)?;
    }
    response.end()
}

/// The fields of a response beside its choices and its usage.
pub(crate) fn envelope(metadata: &Metadata) -> Fields<'_> {
    let mut envelope = head(metadata);
    add_unknown_fields(&mut envelope, metadata.extra.iter());
    envelope
}

fn head(metadata: &Metadata) -> Fields<'_> {
    let object = match metadata.kind.unwrap_or_default() {
        CompletionKind::Chat => "chat.completion",
        CompletionKind::Text => "text_completion",
    };
    Json::fields(json!({
        "id": metadata.id.as_deref(),
        "object": object,
        "created": metadata.created,
        "model": metadata.model.as_deref(),
    }))
}

fn choice<'t>(transcript: &'t Transcript, message: &'t Message) -> Json<'t> {
    let fields = transcript.fields(Level::Choice);
    let mut choice = Json::fields(json!({ "index": transcript.index().0 }));
    match transcript.kind() {
        CompletionKind::Chat => choice.push(("message".into(), message_json(message))),
        CompletionKind::Text => {
            choice.push(("text".into(), Json::Value(message.content.as_str().into())));
            choice.extend(beside_text(message, &fields));
        }
    }
    let reason = transcript.finish_reason().map(|reason| reason.as_str());
    choice.push(("finish_reason".into(), Json::Value(reason.into())));
    choice.push(("logprobs".into(), logprobs(transcript)));
    // A field of another dialect that was not read as a reason says nothing about the end.
    let beside_text = match transcript.kind() {
        CompletionKind::Chat => &[],
        CompletionKind::Text => &*message.extra,
    };
    let unknown = fields.iter().chain(beside_text);
    add_unknown_fields(
        &mut choice,
        unknown.filter(|(key, _)| &**key != "finish_reason"),
    );
    Json::Object(choice)
}

/// What a text completion has beside its text, as `ChunkEncoder` writes it: calls after a text, for example.
fn beside_text(message: &Message, unknown: &[(Arc<str>, Arc<str>)]) -> Fields<'static> {
    let reasoning = reasoning_name(message, unknown.iter().chain(&message.extra));
    let names = ["refusal", reasoning, "tool_calls", "function_call", "audio"];
    let mut fields = message_fields(message, reasoning);
    fields.retain(|(name, field)| {
        names.contains(&&**name) && !matches!(field, Json::Value(Value::Null))
    });
    fields
}

/// The message contains the fields of the deltas, and the choice those beside the deltas (C20).
pub(crate) fn message_json(message: &Message) -> Json<'static> {
    let reasoning = reasoning_name(message, message.extra.iter());
    Json::Object(message_fields(message, reasoning))
}

/// The fields of a message, with its reasoning under this name.
fn message_fields(message: &Message, reasoning: &str) -> Fields<'static> {
    let mut object = Json::fields(json!({
        "role": message.role.as_deref(),
        "content": non_empty(&message.content),
        "refusal": non_empty(&message.refusal),
        (reasoning): non_empty(&message.reasoning),
    }));
    object.push(("tool_calls".into(), tool_calls(&message.tool_calls)));
    let mut calls = message.tool_calls.iter();
    let legacy = calls.find(|call| call.kind == CallKind::LegacyFunction);
    let legacy = legacy.map_or(Json::Value(Value::Null), function_call);
    object.push(("function_call".into(), legacy));
    if let Some(audio) = &message.audio {
        object.push(("audio".into(), Json::Value(audio.to_value())));
    }
    add_unknown_fields(&mut object, message.extra.iter());
    object
}

/// The name of the reasoning. It is the server's own if one of the unknown fields is `reasoning`, because other names were configured
/// (R5).
fn reasoning_name<'m, 'f>(
    message: &'m Message,
    mut unknown: impl Iterator<Item = &'f (Arc<str>, Arc<str>)>,
) -> &'m str {
    const NAME: &str = "reasoning";
    match &message.reasoning_source {
        Some(ReasoningSource::Field(own)) if unknown.any(|(key, _)| &**key == NAME) => own,
        _ => NAME,
    }
}

/// Adds the unknown fields whose names are not in use. Null stands for a field that is absent.
pub(crate) fn add_unknown_fields<'f>(
    object: &mut Fields<'_>,
    fields: impl Iterator<Item = &'f (Arc<str>, Arc<str>)>,
) {
    for (key, raw) in fields {
        let raw = || Json::Raw(Cow::Owned(raw.to_string()));
        match object.iter_mut().find(|(name, _)| *name == **key) {
            Some((_, value @ Json::Value(Value::Null))) => *value = raw(),
            Some(_) => {}
            None => object.push((Cow::Owned(key.to_string()), raw())),
        }
    }
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn tool_calls(calls: &[ToolCall]) -> Json<'static> {
    let calls: Vec<Json<'_>> = calls
        .iter()
        .filter(|call| call.kind != CallKind::LegacyFunction)
        .map(tool_call)
        .collect();
    if calls.is_empty() {
        Json::Value(Value::Null)
    } else {
        Json::List(calls)
    }
}

pub(crate) fn tool_call(call: &ToolCall) -> Json<'static> {
    // The type of a tool that the server runs.
    let kind = call.extra.iter().find(|(key, _)| &**key == "type");
    let kind: Value = kind
        .and_then(|(_, raw)| serde_json::from_str(raw).ok())
        .unwrap_or_else(|| call.kind.as_str().into());
    let entry = match call.kind {
        CallKind::Custom => {
            json!({ "id": call.id.as_deref(), "type": "custom", "custom": { "name": *call.name, "input": call.arguments } })
        }
        CallKind::Function | CallKind::LegacyFunction => {
            json!({ "id": call.id.as_deref(), "type": kind, "function": { "name": *call.name, "arguments": call.arguments } })
        }
    };
    let mut entry = Json::fields(entry);
    add_unknown_fields(&mut entry, call.extra.iter());
    Json::Object(entry)
}

pub(crate) fn function_call(call: &ToolCall) -> Json<'static> {
    Json::Value(json!({ "name": *call.name, "arguments": call.arguments }))
}

/// Merges log probabilities: lists are concatenated, and so is Cohere's text of them; of other values the last one counts
/// (M2, M6).
fn logprobs(transcript: &Transcript) -> Json<'_> {
    let mut merged: Fields<'_> = Vec::new();
    for raw in transcript.logprobs() {
        let mut fields: Vec<(Cow<'_, str>, &str)> = Vec::new();
        for (key, raw) in raw_pairs(raw) {
            // The last of equal keys in one object counts (E26).
            let has_room = fields.len() < MAX_FIELDS;
            match fields.iter_mut().find(|(known, _)| *known == key) {
                Some((_, value)) => *value = raw,
                None if has_room => fields.push((key, raw)),
                None => {}
            }
        }
        for (key, raw) in fields {
            let has_room = merged.len() < MAX_FIELDS;
            let known = merged.iter_mut().find(|(known, _)| *known == key);
            match (known.map(|(_, value)| value), list_of(&key, raw)) {
                (Some(Json::Joined(lists)), Some(list)) => lists.push(list),
                (Some(Json::Raw(text)), None) if is_text(text) && is_text(raw) => {
                    let text = text.to_mut();
                    text.pop();
                    text.push_str(raw.get(1..).unwrap_or_default());
                }
                (Some(_), None) if raw == "null" => {}
                (Some(value), list) => *value = list_or_raw(list, raw),
                (None, list) if has_room => merged.push((key, list_or_raw(list, raw))),
                (None, _) => {}
            }
        }
    }
    if merged.is_empty() {
        Json::Value(Value::Null)
    } else {
        Json::Object(merged)
    }
}

fn is_text(raw: &str) -> bool {
    raw.starts_with('"')
}

fn list_or_raw<'r>(list: Option<Cow<'r, str>>, raw: &'r str) -> Json<'r> {
    match list {
        Some(list) => Json::Joined(vec![list]),
        None => Json::Raw(Cow::Borrowed(raw)),
    }
}

/// A value as a list, which some servers write as an object with the positions as keys (E22).
fn list_of<'r>(key: &str, raw: &'r str) -> Option<Cow<'r, str>> {
    /// Lists beside those that have the tokens.
    const LISTS: [&str; 3] = ["token_logprobs", "top_logprobs", "text_offset"];
    let is_list = || LISTS.contains(&key) || LOGPROB_LISTS.contains(&key);
    if raw.starts_with('[') {
        return Some(raw.into());
    }
    if !raw.starts_with('{') || !is_list() {
        return None;
    }
    let entries = raw_pairs(raw).into_iter();
    let entries = entries.map(|(key, entry)| Some((key.parse::<u64>().ok()?, entry)));
    let mut entries = entries.collect::<Option<Vec<_>>>()?;
    entries.sort_by_key(|(position, _)| *position);
    let entries: Vec<&str> = entries.into_iter().map(|(_, entry)| entry).collect();
    Some(format!("[{}]", entries.join(",")).into())
}

#[cfg(test)]
mod tests;
