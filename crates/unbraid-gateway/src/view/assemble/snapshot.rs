//! A snapshot: everything so far as one valid chunk, which a reader puts in place of what it shows.

use serde_json::{Value, json, value::RawValue};
use unbraid_core::{
    CallIndex, CallKind, ChoiceEnd, CompletionKind, Demux, Message, ReasoningSource, Transcript,
    internal::{aggregate_of, choice_json},
};
use unbraid_log::Seq;

use super::{
    assemble,
    halves::{Halves, legacy_call},
};
use crate::view::{
    Target,
    chunk::{CallNumbers, Cuts, Rewritten, Selection, kind_of, object_of, only_choice},
    shared::StreamView,
};

/// The members of an object in their order, each as it was written.
type Members = Vec<(String, Box<RawValue>)>;

/// The chunk of everything up to a number, as a view contains it.
pub(in crate::view) fn snapshot(view: &StreamView, target: Target, upto: Seq) -> Vec<u8> {
    let demux = assemble(view, Target::Combined, upto);
    let metadata = demux.metadata();
    let kind = metadata
        .kind
        .unwrap_or_else(|| kind_of(&view.meta().endpoint));
    let object = object_of(kind);
    let mut transcripts: Vec<&Transcript> = demux.choices().collect();
    transcripts.sort_by_key(|transcript| transcript.index());
    let choices = transcripts.into_iter();
    let choices: Vec<String> = choices.filter_map(|choice| entry(&demux, choice)).collect();
    let known = [
        ("id", json!(metadata.id.as_deref().unwrap_or_default())),
        ("object", json!(object)),
        (
            "created",
            json!(metadata.created.unwrap_or(view.meta().created)),
        ),
        (
            "model",
            json!(metadata.model.as_deref().or(view.meta().model.as_deref())),
        ),
    ];
    let known = known.map(|(name, value)| (name.to_owned(), value.to_string()));
    let rest = [
        ("choices".to_owned(), format!("[{}]", choices.join(","))),
        (
            "unbraid".to_owned(),
            json!({ "snapshot": true, "seq": upto }).to_string(),
        ),
    ];
    let others = other_fields(&demux, target);
    select(
        object_text(known.into_iter().chain(others).chain(rest)),
        target,
        kind,
    )
}

/// The fields around the choices so far: the fingerprint, the tier and the like, and in the combined view the usage, whose event
/// has no choice.
fn other_fields(demux: &Demux, target: Target) -> Vec<(String, String)> {
    const KNOWN: [&str; 6] = ["id", "object", "created", "model", "choices", "unbraid"];
    let response = aggregate_of(demux.metadata(), &demux.usage(), Vec::new(), &[]);
    let fields = members(&response).unwrap_or_default().into_iter();
    let is_kept = |name: &str, raw: &str| {
        let is_of_view = name != "usage" || target == Target::Combined;
        raw != "null" && is_of_view && !KNOWN.contains(&name)
    };
    fields
        .filter(|(name, raw)| is_kept(name, raw.get()))
        .map(|(name, raw)| (name, raw.get().to_owned()))
        .collect()
}

/// Cuts the snapshot as any other chunk, except that it is never left out.
fn select(chunk: String, target: Target, kind: CompletionKind) -> Vec<u8> {
    let Target::Choice {
        index,
        keep_index,
        part,
    } = target
    else {
        return chunk.into_bytes();
    };
    let selection = Selection {
        choice: index.0,
        keep_index,
        is_only_choice: false,
        part,
        kind,
        is_always_shown: true,
    };
    let chunk = chunk.into_bytes();
    let chunk = only_choice(&chunk, index).unwrap_or(chunk);
    let cuts = Cuts::find(&chunk, false);
    let mut calls = CallNumbers::default();
    match cuts.apply(&chunk, selection, &mut calls) {
        Rewritten::Changed(data) => data,
        Rewritten::Pieces(before, index, after) => [before, index.as_bytes(), after].concat(),
        Rewritten::Unchanged(_) | Rewritten::LeftOut => chunk,
    }
}

/// One choice as an entry of a response without streaming. Its reasoning has the name that the server gives it, as in the
/// events: a client that repeats the message in its next request may have to repeat that field, too.
pub(super) fn response_choice(transcript: &Transcript) -> String {
    let text = choice_text(transcript);
    let message = transcript.message();
    if message.reasoning.is_empty() {
        return text;
    }
    let in_choice = |name: String, raw: &str| named(name, raw, &message);
    let in_message = |name: String, raw: &str| {
        let message = (name == "message").then(|| with_members(raw, in_choice));
        (name, message.flatten().unwrap_or_else(|| raw.to_owned()))
    };
    let changed = match transcript.kind() {
        CompletionKind::Text => with_members(&text, in_choice),
        _ => with_members(&text, in_message),
    };
    changed.unwrap_or(text)
}

/// One choice as an entry of a response, with the error that ended it alone, as its event has it.
fn choice_text(transcript: &Transcript) -> String {
    let mut text = choice_json(transcript);
    if let Some(ChoiceEnd::ServerError(error)) = transcript.end()
        && text.pop() == Some('}')
    {
        for part in [",\"error\":", &error.body_json(), "}"] {
            text.push_str(part);
        }
    }
    text
}

/// An object with its members changed; `None` for another value.
fn with_members(raw: &str, change: impl Fn(String, &str) -> (String, String)) -> Option<String> {
    let members = members(raw)?.into_iter();
    Some(object_text(
        members.map(|(name, value)| change(name, value.get())),
    ))
}

/// One choice as an entry of a chunk.
fn entry(demux: &Demux, transcript: &Transcript) -> Option<String> {
    let message = transcript.message();
    let halves = &Halves::of(demux, transcript, &message);
    let is_text = transcript.kind() == CompletionKind::Text;
    let choice: Members = members(&choice_text(transcript))?;
    let fields = choice.into_iter().filter_map(|(name, value)| {
        let raw = value.get();
        Some(match name.as_str() {
            "message" => ("delta".to_owned(), delta(&message, raw, halves)?),
            // A chunk of a running choice has a reason, too.
            "finish_reason" => (name, raw.to_owned()),
            _ if is_text => field(name, raw, &message, halves)?,
            _ if raw == "null" => return None,
            _ => (name, raw.to_owned()),
        })
    });
    let mut fields: Vec<(String, String)> = fields.collect();
    if is_text {
        let alone = halves.alone(&message);
        fields.extend(alone.map(|(name, raw)| named(name.to_owned(), &raw, &message)));
    }
    Some(object_text(fields))
}

/// The message as a delta: calls get their index, and reasoning has the name that the server gives it.
fn delta(message: &Message, raw: &str, halves: &Halves) -> Option<String> {
    let fields = members(raw)?.into_iter();
    let fields = fields.filter_map(|(name, value)| field(name, value.get(), message, halves));
    Some(object_text(fields))
}

/// A field of a message as one of a delta.
fn field(name: String, raw: &str, message: &Message, halves: &Halves) -> Option<(String, String)> {
    let raw = halves.complete(&name, raw);
    Some(match name.as_str() {
        _ if raw == "null" => return None,
        "tool_calls" => (name, calls(message, &raw, halves)?),
        "function_call" => {
            let call = legacy_call(message);
            let raw = call.and_then(|call| called(&raw, call, halves));
            (name, raw?)
        }
        _ => named(name, &raw, message),
    })
}

/// A field under the name that the server gives it.
fn named(name: String, raw: &str, message: &Message) -> (String, String) {
    let name = match name.as_str() {
        "reasoning" => reasoning_key(message),
        _ => name,
    };
    (name, raw.to_owned())
}

/// What is called, with the half of a character at the end of its arguments.
fn called(raw: &str, call: CallIndex, halves: &Halves) -> Option<String> {
    with_members(raw, |name, raw| {
        let raw = halves.complete_call(call, &name, raw).into_owned();
        (name, raw)
    })
}

fn reasoning_key(message: &Message) -> String {
    match &message.reasoning_source {
        Some(ReasoningSource::Field(name)) => name.to_string(),
        _ => "reasoning_content".to_owned(),
    }
}

fn calls(message: &Message, raw: &str, halves: &Halves) -> Option<String> {
    let entries: Vec<Box<RawValue>> = serde_json::from_str(raw).ok()?;
    let calls = message
        .tool_calls
        .iter()
        .filter(|call| call.kind != CallKind::LegacyFunction);
    let entries = entries.iter().zip(calls).filter_map(|(entry, call)| {
        let index = call.wire_index.unwrap_or_else(|| call.call_index.0.into());
        let index = ("index".to_owned(), index.to_string());
        let rest = members(entry.get())?;
        let rest = rest.into_iter().map(|(name, value)| {
            let called = match name.as_str() {
                "function" | "custom" => called(value.get(), call.call_index, halves),
                _ => None,
            };
            (name, called.unwrap_or_else(|| value.get().to_owned()))
        });
        Some(object_text(std::iter::once(index).chain(rest)))
    });
    Some(format!("[{}]", entries.collect::<Vec<_>>().join(",")))
}

/// The members of an object; `None` for another value.
fn members(raw: &str) -> Option<Members> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Members;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<Members, M::Error> {
            let mut members = Members::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    serde::Deserializer::deserialize_map(&mut deserializer, Visitor).ok()
}

/// An object of members that are JSON text.
fn object_text<N: AsRef<str>>(members: impl IntoIterator<Item = (N, String)>) -> String {
    let members = members.into_iter().map(|(name, value)| {
        let name = Value::from(name.as_ref());
        format!("{name}:{value}")
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
