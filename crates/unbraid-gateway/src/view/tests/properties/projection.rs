//! What a view shows of a log, written without the code under test.

use serde_json::{Value, json};
use unbraid_log::{End, Seq};

use super::producer::{Logged, Producer, indices};
use crate::view::{Part, Target};

pub(super) type Shown = (u64, Option<String>, Value);

fn value(data: &str) -> Value {
    serde_json::from_str(data).unwrap_or_else(|_| data.into())
}

/// Keeps the role and one part of an entry. Returns whether a view of the part shows it.
fn keep_part(entry: &mut Value, part: Part) -> bool {
    let has_reason = !entry["finish_reason"].is_null();
    let name = match part {
        Part::Content => "content",
        Part::Reasoning => "reasoning_content",
        Part::Refusal => "refusal",
        Part::ToolCall(_) => "tool_calls",
    };
    let delta = entry["delta"].as_object_mut().unwrap();
    delta.retain(|key, _| key == "role" || key == name);
    if let (Part::ToolCall(call), Some(Value::Array(calls))) = (part, delta.get_mut(name)) {
        calls.retain(|entry| entry["index"] == call);
        if calls.is_empty() {
            delta.remove(name);
        }
    }
    has_reason || !delta.is_empty()
}

/// The events of a view, written without the code under test.
pub(super) fn projection(producer: &Producer, target: Target) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut error = None;
    let mut has_reason = false;
    let last = |seq: Seq, end: End, error: &Option<(Seq, String)>| -> Shown {
        match (end, error) {
            (End::ServerError, Some((seq, payload))) => (seq.0, None, value(payload)),
            _ if end.is_error() => (seq.0, None, json!({ "error": end.as_str() })),
            _ => (seq.0, None, json!("[DONE]")),
        }
    };
    for logged in &producer.log {
        match (logged, target) {
            (Logged::Data(seq, name, data), Target::Combined) => {
                shown.push((seq.0, name.map(str::to_owned), value(data)));
            }
            (
                Logged::Data(seq, _, data),
                Target::Choice {
                    index,
                    keep_index,
                    part,
                },
            ) => {
                if indices(data).contains(&index.0) {
                    let mut chunk = value(data);
                    let entries = chunk["choices"].as_array_mut().unwrap();
                    entries.retain(|entry| entry["index"] == index.0);
                    has_reason |= !entries[0]["finish_reason"].is_null();
                    if !keep_index {
                        entries[0]["index"] = json!(0);
                    }
                    if part.is_none_or(|part| keep_part(&mut entries[0], part)) {
                        shown.push((seq.0, None, chunk));
                    }
                }
            }
            (Logged::Error(seq, payload), Target::Combined) => {
                shown.push((seq.0, None, value(payload)));
                return shown;
            }
            (Logged::Error(seq, payload), Target::Choice { .. }) => {
                error = Some((*seq, payload.clone()))
            }
            (Logged::ChoiceEnd(seq, choice, end), Target::Choice { index, .. })
                if *choice == index.0 =>
            {
                shown.push(last(*seq, *end, &error));
                return shown;
            }
            (Logged::ChoiceEnd(..), _) => {}
        }
    }
    if let Some((seq, end)) = producer.end {
        // A finish reason stays, even if the log does not contain the end of its choice.
        let end = if has_reason { End::Finished } else { end };
        shown.push(last(seq, end, &error));
    }
    shown
}

/// Parses the events of a view, and keeps of the gateway's own errors only the code, which the projection has.
pub(super) fn parse(text: &str) -> Vec<Shown> {
    let events = text.split_terminator("\n\n").map(|event| {
        let mut shown: (Option<u64>, Option<String>, Vec<&str>) = (None, None, Vec::new());
        for line in event.lines() {
            let (field, rest) = line.split_once(": ").unwrap();
            match field {
                "id" => shown.0 = rest.parse().ok(),
                "event" => shown.1 = Some(rest.to_owned()),
                "data" => shown.2.push(rest),
                "retry" => assert_eq!(rest, "1000"),
                _ => panic!("{line}"),
            }
        }
        assert!(!shown.2.is_empty(), "an event without data: {event}");
        let mut data = value(&shown.2.join("\n"));
        if data["error"]["type"] == "stream_error" {
            data = json!({ "error": data["error"]["code"] });
        }
        (shown.0.expect("every event has an id"), shown.1, data)
    });
    events.collect()
}
