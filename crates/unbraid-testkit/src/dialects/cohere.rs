//! Cohere: each event adds to one lane or call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Answer, Call, Choice, Stream, arguments, entries, is_error, merge, reason,
    responses::{is_object, unrepeated},
    text,
};
use crate::reference::lenient::{is_high_half, split_halves};

/// C14: the halves of characters at the end of the plan and of the thinking.
type Halves = [String; 2];

/// D13: the call whose start had its arguments, which fragments replace, and these arguments.
#[derive(Default)]
struct Initial {
    held: Option<(usize, String)>,
    /// What fragments may repeat, after the end of the call.
    ahead: BTreeMap<usize, String>,
}

impl Initial {
    /// Holds the complete arguments of a start.
    fn hold(&mut self, at: usize, call: &mut Call) {
        if is_object(&call.arguments) {
            self.held = Some((at, std::mem::take(&mut call.arguments)));
        }
    }

    /// No fragment has replaced them before the end of this call, or of any.
    fn flush(&mut self, at: Option<usize>, choice: &mut Choice) {
        let held = self
            .held
            .take_if(|(held, _)| at.is_none_or(|at| *held == at));
        if let Some((at, whole)) = held {
            self.ahead.insert(at, split_halves(&whole));
            choice.calls[at].arguments += &whole;
        }
    }

    fn add(&mut self, at: usize, call: &mut Call, piece: &str) {
        let is_held = self.held.as_ref().is_some_and(|(held, _)| *held == at);
        if is_held && piece.trim().is_empty() {
            return; // white space replaces nothing
        }
        self.held = self.held.take().filter(|_| !is_held);
        call.arguments += &unrepeated(self.ahead.entry(at).or_default(), piece);
    }
}

pub(super) fn read(stream: &Stream) -> Answer {
    let mut answer = Answer::default();
    let mut choice = Choice::default();
    // The index of each call, and whether its start is missing.
    let mut indexes: Vec<(i64, bool)> = Vec::new();
    let mut initial = Initial::default();
    let mut halves = Halves::default();
    let mut started = false;
    // A11: the id of the start, and whether it had content, or any has followed.
    let (mut head, mut has_content) = (None, false);
    for wire in &stream.values {
        let value = &wire.value;
        let is_message = !text(value, "message").is_empty() && !value["type"].is_string();
        if is_error(wire) || is_message {
            answer.error = true;
            break;
        }
        let kind = super::kind_of(value, &wire.name);
        let message = &value["delta"]["message"];
        started = true;
        has_content |= [
            "content-start",
            "content-delta",
            "tool-plan-delta",
            "citation-start",
        ]
        .contains(&kind)
            || ["tool-call-start", "tool-call-delta"].contains(&kind);
        match kind {
            "message-start" => {
                if let Some(first) = &head {
                    let is_same = super::is_set(first) && *first == value["id"];
                    if has_content && !is_same {
                        answer.malformed = true;
                        break;
                    }
                    continue;
                }
                head = Some(value["id"].clone());
                has_content |= ["content", "tool_plan", "tool_calls", "citations"]
                    .iter()
                    .any(|key| super::is_set(&message[*key]));
                read_message(&mut choice, &mut halves, message);
            }
            "content-start" | "content-delta" => {
                contents(&mut choice, &mut halves, &message["content"])
            }
            "tool-plan-delta" => think(&mut choice, &mut halves[0], text(message, "tool_plan")),
            "tool-call-start" => {
                let index = value["index"].as_i64().unwrap_or_default();
                for entry in entries(&message["tool_calls"]) {
                    let at = indexes.iter().rposition(|(known, _)| *known == index);
                    let new = call(entry);
                    match at {
                        Some(at) if indexes[at].1 => {
                            indexes[at].1 = false;
                            let arguments = std::mem::take(&mut choice.calls[at].arguments);
                            let first = new.arguments.clone();
                            choice.calls[at] = Call { arguments, ..new };
                            initial.add(at, &mut choice.calls[at], &first);
                        }
                        Some(at) if new.id.is_some() && choice.calls[at].id == new.id => {
                            let known = &mut choice.calls[at];
                            if known.name.is_empty() {
                                known.name = new.name;
                            }
                            let is_held =
                                initial.held.as_ref().is_some_and(|(held, _)| *held == at);
                            if known.arguments.is_empty() && !is_held {
                                known.arguments = new.arguments;
                                initial.hold(at, known);
                            }
                        }
                        _ => {
                            initial.flush(None, &mut choice);
                            indexes.push((index, false));
                            choice.calls.push(new);
                            let at = choice.calls.len() - 1;
                            initial.hold(at, &mut choice.calls[at]);
                        }
                    }
                }
            }
            "tool-call-delta" => {
                let index = value["index"].as_i64().unwrap_or_default();
                let at = indexes.iter().rposition(|(known, _)| *known == index);
                for entry in entries(&message["tool_calls"]) {
                    match at {
                        Some(at) => {
                            let piece = arguments(&entry["function"]["arguments"]);
                            initial.add(at, &mut choice.calls[at], &piece);
                        }
                        None => {
                            initial.flush(None, &mut choice);
                            let new = call(entry); // A08
                            indexes.push((index, new.id.is_none() && new.name.is_empty()));
                            choice.calls.push(new);
                            let at = choice.calls.len() - 1;
                            initial.hold(at, &mut choice.calls[at]);
                        }
                    }
                }
            }
            "citation-start" => {
                for citation in entries(&message["citations"]) {
                    choice.list("annotations", citation.clone());
                }
            }
            "tool-call-end" => {
                let index = value["index"].as_i64().unwrap_or_default();
                if let Some(at) = indexes.iter().rposition(|(known, _)| *known == index) {
                    initial.flush(Some(at), &mut choice);
                }
            }
            "message-end" => {
                initial.flush(None, &mut choice);
                end(&mut answer, &mut choice, &value["delta"]);
                break;
            }
            // D06: no value of another dialect.
            "" if super::identify(wire) != Some("cohere") => {}
            "" => {
                initial.flush(None, &mut choice);
                read_message(&mut choice, &mut halves, &value["message"]);
                end(&mut answer, &mut choice, value);
                break;
            }
            _ => {}
        }
    }
    initial.flush(None, &mut choice);
    choice.reasoning += &halves.concat();
    if started {
        answer.choices.insert(0, choice);
    }
    answer
}

/// A piece of the plan or of the thinking. The half of a character at its end waits for the next piece of the same text.
fn think(choice: &mut Choice, half: &mut String, piece: &str) {
    if piece.is_empty() {
        return;
    }
    choice.reasoning += &std::mem::take(half);
    let text = piece.strip_suffix(is_high_half).unwrap_or(piece);
    choice.reasoning += text;
    piece[text.len()..].clone_into(half);
}

fn read_message(choice: &mut Choice, halves: &mut Halves, message: &Value) {
    think(choice, &mut halves[0], text(message, "tool_plan"));
    contents(choice, halves, &message["content"]);
    choice
        .calls
        .extend(entries(&message["tool_calls"]).into_iter().map(call));
    for citation in entries(&message["citations"]) {
        choice.list("annotations", citation.clone());
    }
}

fn contents(choice: &mut Choice, halves: &mut Halves, content: &Value) {
    choice.content += content.as_str().unwrap_or_default();
    for part in entries(content) {
        think(choice, &mut halves[1], text(part, "thinking"));
        choice.content += text(part, "text");
    }
}

fn call(entry: &Value) -> Call {
    Call {
        id: entry["id"].as_str().map(str::to_owned),
        name: text(&entry["function"], "name").to_owned(),
        custom: false,
        // A start may have a placeholder.
        arguments: Some(arguments(&entry["function"]["arguments"]))
            .filter(|first| first.trim() != "{}")
            .unwrap_or_default(),
    }
}

fn end(answer: &mut Answer, choice: &mut Choice, value: &Value) {
    choice.finish_reason = reason(&value["finish_reason"]);
    merge(&mut answer.usage, &value["usage"]);
    choice.fill_calls();
    if super::is_present(&value["error"]) {
        choice.end = "server_error"; // H06
    } else if choice.finish_reason.is_none() {
        choice.end = "done_without_finish";
    }
}
