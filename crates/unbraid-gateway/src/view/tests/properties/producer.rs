//! A producer that follows a script.

use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, Demux, Event as CoreEvent};
use unbraid_log::{End, Event, Seq};

use super::{Close, Item};
use crate::view::{StreamView, tests::script::Script};

/// An event of the log, as the test remembers it.
#[derive(Debug, Clone)]
pub(super) enum Logged {
    Data(Seq, Option<&'static str>, String),
    ChoiceEnd(Seq, u32, End),
    Error(Seq, String),
}

/// A producer as the gateway has one: the core decides when a choice ends.
pub(super) struct Producer {
    pub(super) script: Script,
    demux: Demux,
    items: std::vec::IntoIter<Item>,
    close: Close,
    over: Vec<u32>,
    pub(super) log: Vec<Logged>,
    pub(super) end: Option<(Seq, End)>,
}

impl Producer {
    pub(super) fn new(n: u32, items: Vec<Item>, close: Close) -> Self {
        let script = Script::new(n);
        let config = StreamView::core_config(script.view.meta());
        Self {
            script,
            demux: Demux::new(config),
            items: items.into_iter(),
            close,
            over: Vec::new(),
            log: Vec::new(),
            end: None,
        }
    }

    pub(super) fn step(&mut self) {
        match self.items.next() {
            Some(item) => self.item(item),
            None if self.end.is_none() => self.close(),
            None => {}
        }
    }

    fn item(&mut self, item: Item) {
        let is_open = |choice: &u32| !self.over.contains(choice);
        let entry = |choice: u32, delta: Value| json!({ "index": choice, "delta": delta, "finish_reason": null });
        let entries: Vec<Value> = match item {
            Item::Text(choices) => choices
                .into_iter()
                .filter(is_open)
                .map(|choice| {
                    entry(
                        choice,
                        json!({ "role": "assistant", "content": "x, \"y\"" }),
                    )
                })
                .collect(),
            Item::Reasoning(choice) if is_open(&choice) => {
                vec![entry(choice, json!({ "reasoning_content": "hm" }))]
            }
            Item::Call(choice, call) if is_open(&choice) => {
                let call = json!({ "index": call, "id": format!("id{call}"), "function": { "name": "f", "arguments": "1" } });
                vec![entry(choice, json!({ "tool_calls": [call] }))]
            }
            Item::Finish(choice) if is_open(&choice) => {
                self.over.push(choice);
                vec![json!({ "index": choice, "delta": {}, "finish_reason": "stop" })]
            }
            Item::Usage => {
                return self.chunk(
                    None,
                    json!({ "choices": [], "usage": { "total_tokens": 1 } }),
                );
            }
            Item::Named => return self.chunk(Some("note"), json!({ "note": 1 })),
            Item::Long(choice) if is_open(&choice) => {
                vec![entry(choice, json!({ "content": "z".repeat(530_000) }))]
            }
            Item::Cancel(choice) if is_open(&choice) => return self.cancel(choice),
            Item::Reasoning(_)
            | Item::Call(..)
            | Item::Finish(_)
            | Item::Long(_)
            | Item::Cancel(_) => vec![],
        };
        self.chunk(
            None,
            json!({ "id": "c", "choices": entries, "usage": null }),
        );
    }

    fn chunk(&mut self, name: Option<&'static str>, payload: Value) {
        let payload = payload.to_string();
        let choices = indices(&payload);
        self.feed(&payload);
        let choices: Vec<ChoiceIndex> = choices.into_iter().map(ChoiceIndex).collect();
        let event = Event::Chunk {
            choices: choices[..].into(),
            name,
            payload: payload.as_bytes(),
        };
        let seq = self.script.push(&event);
        self.log.push(Logged::Data(seq, name, payload));
        self.ends();
    }

    fn cancel(&mut self, choice: u32) {
        self.over.push(choice);
        let chunk =
            json!({ "choices": [{ "index": choice, "delta": {}, "finish_reason": "cancelled" }] });
        let seq = self.script.synthetic(choice, &chunk.to_string());
        self.log.push(Logged::Data(seq, None, chunk.to_string()));
        self.demux.cancel(ChoiceIndex(choice));
        let seq = self.script.choice_end(choice, End::Cancelled);
        self.log
            .push(Logged::ChoiceEnd(seq, choice, End::Cancelled));
        while self.demux.next_event().is_some() {}
    }

    fn feed(&mut self, payload: &str) {
        self.demux.feed(format!("data: {payload}\n\n").as_bytes());
    }

    /// Logs the ends that the core has decided.
    fn ends(&mut self) {
        let mut ends = Vec::new();
        while let Some(event) = self.demux.next_event() {
            if let (Some(choice), CoreEvent::End(end)) = (event.choice, &event.event) {
                ends.push((choice.0, End::from(end)));
            }
        }
        let known: Vec<u32> = self
            .log
            .iter()
            .filter_map(|logged| match logged {
                Logged::ChoiceEnd(_, choice, _) => Some(*choice),
                _ => None,
            })
            .collect();
        for (choice, end) in ends
            .into_iter()
            .filter(|(choice, _)| !known.contains(choice))
        {
            let seq = self.script.choice_end(choice, end);
            self.log.push(Logged::ChoiceEnd(seq, choice, end));
        }
    }

    fn close(&mut self) {
        let end = match self.close {
            Close::Done => {
                self.feed("[DONE]");
                End::Finished
            }
            Close::Cut => {
                self.demux.finish();
                End::Interrupted
            }
            Close::Error => {
                let payload = r#"{"error":{"message":"overloaded"}}"#;
                let seq = self.script.error(None, payload);
                self.log.push(Logged::Error(seq, payload.to_owned()));
                self.feed(payload);
                End::ServerError
            }
            Close::Lost => End::ProducerLost,
        };
        if !matches!(self.close, Close::Lost) {
            self.ends();
        }
        self.end = Some((self.script.view.journal().tail().next(), end));
        self.script.seal(end);
    }
}

pub(super) fn indices(payload: &str) -> Vec<u32> {
    let chunk: Value = serde_json::from_str(payload).unwrap();
    let entries = chunk["choices"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| u32::try_from(entry["index"].as_u64()?).ok())
        .collect()
}
