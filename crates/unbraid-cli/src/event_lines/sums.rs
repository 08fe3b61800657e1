//! Sums of deltas, so that a consumer of the `done` events need not add them up.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};
use unbraid_core::{CallIndex, ChoiceIndex, Event, Message, Sequenced};

use crate::{json, report::request_error};

/// A completed call: its choice and its call index.
pub(super) type CallDone = (ChoiceIndex, CallIndex);

/// The sums of the deltas of each open choice.
#[derive(Default)]
pub(super) struct Sums(BTreeMap<ChoiceIndex, ChoiceSums>);

#[derive(Default)]
struct ChoiceSums {
    reasoning: String,
    content: String,
    refusal: String,
    /// By call index.
    calls: BTreeMap<CallIndex, CallSums>,
    /// Whether the calls have the ids and names that arrived after their start events.
    calls_updated: bool,
}

/// A call as the sum of its events.
#[derive(Default)]
struct CallSums {
    id: Option<Arc<str>>,
    name: Arc<str>,
    arguments: String,
}

impl Sums {
    /// Adds an event and converts it to JSON. A completed call is returned, and its JSON still lacks the sums.
    pub(super) fn add<T: AsRef<str>>(&mut self, event: &Sequenced<T>) -> (Value, Option<CallDone>) {
        let mut object = json::value(event);
        request_error::add_to_event(&event.event, &mut object);
        let Some(index) = event.choice else {
            return (object, None);
        };
        let sums = self.0.entry(index).or_default();
        match &event.event {
            Event::Reasoning(delta) => sums.reasoning.push_str(delta.as_ref()),
            Event::Content(delta) => sums.content.push_str(delta.as_ref()),
            Event::Refusal(delta) => sums.refusal.push_str(delta.as_ref()),
            Event::ReasoningDone => insert_text(&mut object, "reasoning", &mut sums.reasoning),
            Event::ContentDone => insert_text(&mut object, "content", &mut sums.content),
            Event::RefusalDone => insert_text(&mut object, "refusal", &mut sums.refusal),
            Event::ToolCallStart {
                call_index,
                id,
                name,
                ..
            } => {
                let call = sums.calls.entry(*call_index).or_default();
                call.id = id.as_ref().map(|id| Arc::from(id.as_ref()));
                call.name = name.as_ref().into();
            }
            Event::ToolCallArguments { call_index, text } => {
                let call = sums.calls.entry(*call_index).or_default();
                call.arguments.push_str(text.as_ref());
            }
            Event::ToolCallDone { call_index, .. } => return (object, Some((index, *call_index))),
            Event::End(_) => {
                self.0.remove(&index); // the last event of a choice
            }
            _ => {}
        }
        (object, None)
    }

    /// Inserts the sums of a completed call into the JSON of its event. `message` is the choice's message at this point.
    pub(super) fn insert_call(
        &mut self,
        (index, call_index): CallDone,
        message: impl FnOnce() -> Option<Message>,
        fields: &mut Map<String, Value>,
    ) {
        let sums = self.0.entry(index).or_default();
        // The calls of a choice complete in a row, so one message serves all of them.
        if !sums.calls_updated
            && let Some(message) = message()
        {
            sums.update_calls(message);
        }
        let call = sums.calls.remove(&call_index).unwrap_or_default();
        fields.insert("id".into(), json!(call.id.as_deref()));
        fields.insert("name".into(), json!(*call.name));
        fields.insert("arguments".into(), call.arguments.into());
    }
}

impl ChoiceSums {
    /// Takes over the final ids and names: an id may arrive after the start event (T12).
    fn update_calls(&mut self, message: Message) {
        self.calls_updated = true;
        // The message omits a legacy call that repeats another one (T37). Its calls then have other positions than the
        // events, and cannot be matched by position.
        if message.tool_calls.len() == self.calls.len() {
            for (call, known) in self.calls.values_mut().zip(message.tool_calls) {
                call.id = known.id;
                call.name = known.name;
            }
        }
    }
}

/// Moves the sum of a text into the event that completes it.
fn insert_text(object: &mut Value, key: &str, text: &mut String) {
    if let Value::Object(fields) = object {
        fields.insert(key.into(), std::mem::take(text).into());
    }
}
