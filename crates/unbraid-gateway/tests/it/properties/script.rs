//! A random answer of an upstream, cut into random reads.

use std::{fmt::Write, time::Duration};

use serde_json::{Value, json};
use unbraid_testkit::cut::{Rng, random_cuts};

use crate::support::{Step, sse};

/// How the upstream's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    Done,
    /// Cleanly, but without `[DONE]`.
    End,
    /// In the middle of an event.
    Cut,
    /// With an error event.
    Error,
    /// Not at all: the stream has to be cancelled.
    Hang,
}

pub(super) struct Script {
    pub(super) n: u32,
    pub(super) close: Close,
    /// The data of each event that a client gets, with its name.
    pub(super) events: Vec<(Option<String>, String)>,
    pub(super) steps: Vec<Step>,
}

impl Script {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let n = 1 + rng.below(3) as u32;
        let all = [
            Close::Done,
            Close::Done,
            Close::End,
            Close::Cut,
            Close::Error,
            Close::Hang,
        ];
        let close = all[rng.below(all.len())];
        let mut open: Vec<u32> = (0..n).collect();
        let mut events = Vec::new();
        for number in 0..rng.below(40) {
            events.push(event(rng, number, &mut open));
        }
        if close == Close::Error {
            events.push((None, r#"{"error":{"message":"overloaded"}}"#.to_owned()));
        }
        let steps = steps(rng, &events, close);
        Self {
            n,
            close,
            events,
            steps,
        }
    }
}

impl Script {
    /// Whether several choices appear, if several were requested.
    pub(super) fn shows_support_of_n(&self) -> bool {
        let appears = |index: &u32| {
            self.events.iter().any(|(_, data)| {
                let chunk: Value = serde_json::from_str(data).unwrap();
                let entries = chunk["choices"].as_array();
                entries.is_some_and(|entries| entries.iter().any(|entry| entry["index"] == *index))
            })
        };
        self.n == 1 || (0..self.n).filter(appears).count() > 1
    }
}

fn event(rng: &mut Rng, number: usize, open: &mut Vec<u32>) -> (Option<String>, String) {
    let Some(choice) = open.get(rng.below(open.len())).copied() else {
        return (None, chunk(&[]).to_string());
    };
    let text = |length: usize| json!({ "content": format!("w{number} {}", "x".repeat(length)) });
    let entry =
        |index: u32, delta: Value| json!({ "index": index, "delta": delta, "finish_reason": null });
    let entries = match rng.below(12) {
        0 => vec![entry(choice, json!({ "role": "assistant", "content": "" }))],
        1 => vec![entry(
            choice,
            json!({ "reasoning_content": format!("r{number} ") }),
        )],
        2 => {
            let call = json!({ "index": 0, "id": "call", "function": { "name": "f", "arguments": format!("{number} ") } });
            vec![entry(choice, json!({ "tool_calls": [call] }))]
        }
        3 => {
            let all = open.iter();
            all.map(|index| entry(*index, text(rng.below(5)))).collect()
        }
        4 => {
            open.retain(|index| *index != choice);
            vec![json!({ "index": choice, "delta": {}, "finish_reason": "stop" })]
        }
        5 => {
            return (
                None,
                json!({ "id": "c", "choices": [], "usage": { "total_tokens": number } })
                    .to_string(),
            );
        }
        6 => return (Some("note".into()), json!({ "note": number }).to_string()),
        7 if rng.chance(0.2) => vec![entry(choice, text(150_000))],
        _ => vec![entry(choice, text(rng.below(30)))],
    };
    (None, chunk(&entries).to_string())
}

fn chunk(entries: &[Value]) -> Value {
    json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": entries })
}

/// The body in random reads, with random pauses.
fn steps(rng: &mut Rng, events: &[(Option<String>, String)], close: Close) -> Vec<Step> {
    let mut wire = String::new();
    for (name, data) in events {
        if rng.chance(0.1) {
            wire.push_str(": a comment\n");
        }
        if let Some(name) = name {
            let _infallible = writeln!(wire, "event: {name}");
        }
        let line_end = if rng.chance(0.2) { "\r\n" } else { "\n" };
        let _infallible = write!(wire, "data: {data}{line_end}{line_end}");
    }
    match close {
        Close::Done => wire.push_str("data: [DONE]\n\n"),
        Close::Cut => wire.push_str("data: {\"choices\":[{\"index\":0,\"del"),
        Close::End | Close::Error | Close::Hang => {}
    }
    let mut steps = vec![sse()];
    for read in random_cuts(wire.as_bytes(), rng.next_u64(), 50 + wire.len() / 25) {
        // An empty chunk would end the body.
        if !read.is_empty() {
            steps.push(Step::Bytes(read.to_vec()));
        }
        if rng.chance(0.5) {
            steps.push(Step::Sleep(Duration::from_millis(1)));
        }
    }
    steps.push(match close {
        Close::Done | Close::End | Close::Error => Step::End,
        Close::Cut => Step::Cut,
        Close::Hang => Step::Hang,
    });
    steps
}
