//! What the whole stream adds up to: the response that the server would have sent without streaming.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use crate::{
    CallKind, CompletionKind, Message, Metadata, ToolCall, Transcript, Usage,
    json_text::{Fields, Json},
    limits::MAX_FIELDS,
    transcript::{Level, raw_pairs},
};

/// The non-streaming response: `id, object, created, model, choices, usage`, then the envelope's other fields.
///
/// Choices are sorted by index. `finish_reason` is the raw text of the first one, `arguments` the raw text as it came;
/// nothing is derived or repaired. What did not come is `null`. A legacy function call stands in `function_call` only.
/// Late text (behind a choice's end) is part of it (F6). `audio` is there only if audio came (M11). Fields that we do not know
/// stand where they stood in the stream: in the envelope, in the choice, in its message (those of its deltas), in a call (T40).
///
/// A number that a [`Value`] has no room for is the nearest `f64`, or null beyond the largest of them;
/// [`aggregate_json`] prints each number as it came.
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
    let choices = sorted(choices).into_iter().map(choice).collect();
    response(metadata, usage, choices).into_value()
}

/// The same response as JSON text, in one line, in which what the server sent of its own accord (usage, log
/// probabilities, unknown fields) stands digit by digit as it came.
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
    let choices = sorted(choices).into_iter().map(choice).collect();
    response(metadata, usage, choices).into_text()
}

/// One choice of [`aggregate_json`].
#[doc(hidden)]
#[must_use]
pub fn choice_json(transcript: &Transcript) -> String {
    choice(transcript).into_text()
}

/// [`aggregate_json`] of choices that were printed one by one, in the order of their indices.
#[doc(hidden)]
#[must_use]
pub fn aggregate_of(metadata: &Metadata, usage: &Usage, choices: Vec<String>) -> String {
    let choices = choices.into_iter().map(|text| Json::Raw(text.into()));
    response(metadata, usage, choices.collect()).into_text()
}

fn sorted<'t>(choices: impl IntoIterator<Item = &'t Transcript>) -> Vec<&'t Transcript> {
    let mut transcripts: Vec<&Transcript> = choices.into_iter().collect();
    transcripts.sort_by_key(|transcript| transcript.index());
    transcripts
}

fn response<'t>(metadata: &'t Metadata, usage: &Usage, choices: Vec<Json<'t>>) -> Json<'t> {
    let mut response = head(metadata);
    response.push(("choices".into(), Json::List(choices)));
    response.push(("usage".into(), usage.raw_part()));
    fill_in(&mut response, metadata.extra.iter());
    Json::Object(response)
}

/// The fields of a response beside its choices and its usage.
pub(crate) fn envelope(metadata: &Metadata) -> Fields<'_> {
    let mut envelope = head(metadata);
    fill_in(&mut envelope, metadata.extra.iter());
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

fn choice(transcript: &Transcript) -> Json<'static> {
    let answer = transcript.message();
    let mut choice = Json::fields(json!({ "index": transcript.index().0 }));
    choice.push(match transcript.kind() {
        CompletionKind::Chat => ("message".into(), message(&answer)),
        CompletionKind::Text => ("text".into(), Json::Value(answer.content.as_str().into())),
    });
    let reason = transcript.finish_reason().map(|reason| reason.as_str());
    choice.push(("finish_reason".into(), Json::Value(reason.into())));
    choice.push(("logprobs".into(), logprobs(transcript)));
    fill_in(&mut choice, transcript.fields(Level::Choice).iter());
    if transcript.kind() == CompletionKind::Text {
        fill_in(&mut choice, answer.extra.iter());
    }
    Json::Object(choice)
}

/// What stood in the deltas stands in the message, in the choice what stood beside them (C20).
pub(crate) fn message(answer: &Message) -> Json<'static> {
    let mut message = Json::fields(json!({
        "role": answer.role.as_deref(),
        "content": some(&answer.content),
        "refusal": some(&answer.refusal),
        "reasoning": some(&answer.reasoning),
    }));
    message.push(("tool_calls".into(), tool_calls(&answer.tool_calls)));
    let mut calls = answer.tool_calls.iter();
    let legacy = calls.find(|call| call.kind == CallKind::LegacyFunction);
    let legacy = legacy.map_or(Json::Value(Value::Null), function_call);
    message.push(("function_call".into(), legacy));
    if let Some(audio) = &answer.audio {
        message.push(("audio".into(), Json::Value(audio.to_value())));
    }
    fill_in(&mut message, answer.extra.iter());
    Json::Object(message)
}

/// Fields that we do not know, where no field of ours has the name.
fn fill_in<'f>(object: &mut Fields<'_>, fields: impl Iterator<Item = &'f (Arc<str>, Arc<str>)>) {
    for (key, raw) in fields {
        if !object.iter().any(|(name, _)| *name == **key) {
            let raw = Json::Raw(Cow::Owned(raw.to_string()));
            object.push((Cow::Owned(key.to_string()), raw));
        }
    }
}

fn some(text: &str) -> Option<&str> {
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
    let entry = match call.kind {
        CallKind::Custom => {
            json!({ "id": call.id.as_deref(), "type": "custom", "custom": { "name": *call.name, "input": call.arguments } })
        }
        CallKind::Function | CallKind::LegacyFunction => {
            json!({ "id": call.id.as_deref(), "type": "function", "function": { "name": *call.name, "arguments": call.arguments } })
        }
    };
    let mut entry = Json::fields(entry);
    fill_in(&mut entry, call.extra.iter());
    Json::Object(entry)
}

pub(crate) fn function_call(call: &ToolCall) -> Json<'static> {
    Json::Value(json!({ "name": *call.name, "arguments": call.arguments }))
}

/// M2, M6: lists are concatenated, other values are the last ones.
fn logprobs(transcript: &Transcript) -> Json<'static> {
    let mut whole: Fields<'static> = Vec::new();
    for raw in transcript.logprobs() {
        let mut fields: Vec<(Cow<'_, str>, &str)> = Vec::new();
        for (key, raw) in raw_pairs(raw) {
            // Of equal keys within one object the last value counts (E26).
            let has_room = fields.len() < MAX_FIELDS;
            match fields.iter_mut().find(|(known, _)| *known == key) {
                Some((_, value)) => *value = raw,
                None if has_room => fields.push((key, raw)),
                None => {}
            }
        }
        for (key, raw) in fields {
            let is_list = raw.starts_with('[');
            let has_room = whole.len() < MAX_FIELDS;
            match whole.iter_mut().find(|(known, _)| *known == key) {
                Some((_, Json::Joined(lists))) if is_list => lists.push(raw.to_owned().into()),
                Some(_) if raw == "null" => {}
                Some((_, value)) => *value = last(raw, is_list),
                None if has_room => {
                    whole.push((Cow::Owned(key.into_owned()), last(raw, is_list)));
                }
                None => {}
            }
        }
    }
    if whole.is_empty() {
        Json::Value(Value::Null)
    } else {
        Json::Object(whole)
    }
}

fn last(raw: &str, is_list: bool) -> Json<'static> {
    let raw = Cow::Owned(raw.to_owned());
    if is_list {
        Json::Joined(vec![raw])
    } else {
        Json::Raw(raw)
    }
}

#[cfg(test)]
mod tests;
