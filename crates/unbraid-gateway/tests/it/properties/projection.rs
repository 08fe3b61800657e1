//! What a view shows of a log, written without the code under test.

use futures::StreamExt;
use serde_json::{Value, json};
use unbraid_log::{End, Event, LogStatus, LogStore, Seq, StreamId};

use super::Target;

/// An event of a view: its id, its name, and its data.
pub(super) type Shown = (u64, Option<String>, Value);

/// A log that was sealed.
pub(super) struct Log {
    events: Vec<(u64, Logged)>,
    end: (u64, End),
}

enum Logged {
    Data(Option<String>, String),
    ChoiceEnd(u32, End),
    Error(String),
}

impl Log {
    /// Reads a log as another gateway would.
    pub(super) async fn read(store: &dyn LogStore, id: &str) -> Self {
        let id = id.parse::<StreamId>().unwrap();
        let mut records = store.read(&id, Seq::START);
        let (mut events, mut parts, mut next) = (Vec::new(), Vec::new(), 1);
        while let Some(record) = records.next().await {
            for (seq, event) in record.unwrap().events() {
                assert_eq!(seq.0, next, "the log is contiguous");
                next += 1;
                parts.extend_from_slice(event.payload().unwrap_or_default());
                if matches!(event, Event::Part { .. }) {
                    continue;
                }
                let data = String::from_utf8(std::mem::take(&mut parts)).unwrap();
                let logged = match event {
                    Event::ChoiceEnd { choice, end, .. } => Logged::ChoiceEnd(choice.0, end),
                    Event::Error { .. } => Logged::Error(data),
                    event => Logged::Data(event.name().map(str::to_owned), data),
                };
                events.push((seq.0, logged));
            }
        }
        let Ok(LogStatus::Ended { end, .. }) = store.status(&id).await else {
            panic!("the log is sealed");
        };
        Self {
            events,
            end: (next, end.end),
        }
    }

    pub(super) fn project(&self, target: &Target) -> Vec<Shown> {
        match target.choice {
            None => self.combined(),
            Some(index) => self.choice(index, target),
        }
    }

    fn combined(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        for (seq, logged) in &self.events {
            match logged {
                Logged::Data(name, data) => shown.push((*seq, name.clone(), value(data))),
                Logged::ChoiceEnd(..) => {}
                Logged::Error(data) => {
                    shown.push((*seq, None, value(data)));
                    return shown;
                }
            }
        }
        shown.push(last(self.end, None));
        shown
    }

    fn choice(&self, index: u32, target: &Target) -> Vec<Shown> {
        let mut shown = Vec::new();
        let (mut error, mut has_reason) = (None, false);
        for (seq, logged) in &self.events {
            match logged {
                Logged::Data(_, data) => {
                    let mut chunk = value(data);
                    let Some(entries) = chunk["choices"].as_array_mut() else {
                        continue;
                    };
                    entries.retain(|entry| entry["index"] == index);
                    let Some(entry) = entries.first_mut() else {
                        continue;
                    };
                    has_reason |= !entry["finish_reason"].is_null();
                    if !target.keeps_index {
                        entry["index"] = json!(0);
                    }
                    if target.part.is_none_or(|part| keep_part(entry, part)) {
                        shown.push((*seq, None, chunk));
                    }
                }
                Logged::ChoiceEnd(choice, end) if *choice == index => {
                    shown.push(last((*seq, *end), error));
                    return shown;
                }
                Logged::ChoiceEnd(..) => {}
                Logged::Error(data) => error = Some((*seq, data.as_str())),
            }
        }
        let (seq, end) = self.end;
        let end = if has_reason { End::Finished } else { end };
        shown.push(last((seq, end), error));
        shown
    }
}

/// The terminal event of a view.
fn last((seq, end): (u64, End), error: Option<(u64, &str)>) -> Shown {
    match error {
        Some((seq, data)) if end == End::ServerError => (seq, None, value(data)),
        _ if end.is_error() => (seq, None, json!({ "error": end.as_str() })),
        _ => (seq, None, json!("[DONE]")),
    }
}

/// Keeps the role and one part of an entry. Returns whether a view of the part shows it.
fn keep_part(entry: &mut Value, part: &str) -> bool {
    let has_reason = !entry["finish_reason"].is_null();
    let name = match part {
        "reasoning" => "reasoning_content",
        "tool_calls.0" => "tool_calls",
        name => name,
    };
    let delta = entry["delta"].as_object_mut().unwrap();
    delta.retain(|key, _| key == "role" || key == name);
    has_reason || !delta.is_empty()
}

pub(super) fn value(data: &str) -> Value {
    serde_json::from_str(data).unwrap_or_else(|_| data.into())
}
