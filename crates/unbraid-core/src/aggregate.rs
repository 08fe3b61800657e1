//! What the whole stream adds up to: the response that the server would have sent without streaming.

use serde_json::{Map, Value, json};

use crate::{
    Call, CallKind, Message, Metadata, Shape, Transcript, Usage, report::parsed, transcript::Level,
};

/// The non-streaming response: `id, object, created, model, choices, usage`, then the envelope's other fields.
///
/// Choices are sorted by index. `finish_reason` is the raw text of the first one, `arguments` the raw text as it came;
/// nothing is derived or repaired. What did not come is `null`. A legacy function call stands in `function_call` only.
/// Late text (behind a choice's end) is part of it (F6). `audio` is there only if audio came (M11). Fields that we do not know
/// stand where they stood in the stream: in the envelope, in the choice, in its message (those of its deltas), in a call (T40).
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Options};
///
/// let mut demux = Demux::new(Options::default());
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
    let mut transcripts: Vec<&Transcript> = choices.into_iter().collect();
    transcripts.sort_by_key(|transcript| transcript.index());
    let object = match metadata.shape.unwrap_or_default() {
        Shape::Chat => "chat.completion",
        Shape::Text => "text_completion",
    };
    let choices: Vec<Value> = transcripts.into_iter().map(choice).collect();
    let mut response = json!({
        "id": metadata.id.as_deref(),
        "object": object,
        "created": metadata.created,
        "model": metadata.model.as_deref(),
        "choices": choices,
        "usage": usage.raw,
    });
    fill_in(&mut response, metadata.extra.iter());
    response
}

fn choice(transcript: &Transcript) -> Value {
    let answer = transcript.message();
    let index = transcript.index().0;
    let mut choice = match transcript.shape() {
        Shape::Chat => json!({ "index": index, "message": message(&answer) }),
        Shape::Text => json!({ "index": index, "text": answer.content }),
    };
    let rest = json!({ "finish_reason": transcript.finish_reason().map(|reason| reason.as_str()), "logprobs": logprobs(transcript) });
    if let (Value::Object(choice), Value::Object(rest)) = (&mut choice, rest) {
        choice.extend(rest);
    }
    fill_in(&mut choice, transcript.fields(Level::Choice).iter());
    if transcript.shape() == Shape::Text {
        fill_in(&mut choice, answer.extra.iter());
    }
    choice
}

/// What stood in the deltas stands in the message, in the choice what stood beside them (C20).
fn message(answer: &Message) -> Value {
    let mut message = json!({
        "role": answer.role.as_deref(),
        "content": some(&answer.content),
        "refusal": some(&answer.refusal),
        "reasoning": some(&answer.reasoning),
        "tool_calls": tool_calls(&answer.tool_calls),
        "function_call": function_call(&answer.tool_calls),
    });
    if let (Value::Object(fields), Some(audio)) = (&mut message, &answer.audio) {
        fields.insert("audio".into(), audio.to_json());
    }
    fill_in(&mut message, answer.extra.iter());
    message
}

/// Fields that we do not know, where no field of ours has the name.
fn fill_in<'f, S: AsRef<str> + 'f>(object: &mut Value, fields: impl Iterator<Item = &'f (S, S)>) {
    if let Value::Object(object) = object {
        for (key, raw) in fields {
            object
                .entry(key.as_ref())
                .or_insert_with(|| parsed(raw.as_ref()));
        }
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn tool_calls(calls: &[Call]) -> Option<Vec<Value>> {
    let calls: Vec<Value> = calls
        .iter()
        .filter(|call| call.kind != CallKind::LegacyFunction)
        .map(tool_call)
        .collect();
    (!calls.is_empty()).then_some(calls)
}

fn tool_call(call: &Call) -> Value {
    let mut entry = match call.kind {
        CallKind::Custom => {
            json!({ "id": call.id.as_deref(), "type": "custom", "custom": { "name": *call.name, "input": call.arguments } })
        }
        CallKind::Function | CallKind::LegacyFunction => {
            json!({ "id": call.id.as_deref(), "type": "function", "function": { "name": *call.name, "arguments": call.arguments } })
        }
    };
    fill_in(&mut entry, call.extra.iter());
    entry
}

fn function_call(calls: &[Call]) -> Option<Value> {
    let call = calls
        .iter()
        .find(|call| call.kind == CallKind::LegacyFunction)?;
    Some(json!({ "name": *call.name, "arguments": call.arguments }))
}

/// M2, M6: lists are concatenated, other values are the last ones.
fn logprobs(transcript: &Transcript) -> Value {
    let mut whole = Map::new();
    for raw in transcript.logprobs() {
        let Value::Object(fields) = parsed(raw) else {
            continue;
        };
        for (key, value) in fields {
            match (whole.get_mut(&key), value) {
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (Some(_), Value::Null) => {}
                (_, value) => {
                    whole.insert(key, value);
                }
            }
        }
    }
    if whole.is_empty() {
        Value::Null
    } else {
        Value::Object(whole)
    }
}

#[cfg(test)]
mod tests;
