//! What the final output has beyond the stream (P10).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Item, Reader, lane_of, list_of};
use crate::dialects::{Call, entries, text};

impl Reader {
    /// P10: only what is missing entirely.
    pub(super) fn final_output(&mut self, streamed: &BTreeMap<&'static str, bool>, body: &Value) {
        let missing = |lane: &str| !streamed.get(lane).copied().unwrap_or(false);
        let outputs = entries(&body["output"]);
        self.streamed_calls = self.choice.calls.len();
        for item in outputs.clone() {
            self.items.push(Item::default());
            let at = self.items.len() - 1;
            match text(item, "type") {
                "message" => {
                    for (part, content) in (0..).zip(entries(&item["content"])) {
                        let (lane, key) = lane_of(content);
                        if missing(lane) {
                            self.complete((at, lane, part), text(content, key));
                        }
                        if missing("annotations") {
                            for annotation in entries(&content["annotations"]) {
                                self.choice.list("annotations", annotation.clone());
                            }
                        }
                    }
                    if missing("phases") {
                        self.phase(at, item);
                    }
                }
                "reasoning" => {
                    if missing("reasoning") {
                        self.whole_reasoning(at, item);
                    }
                    if missing("reasoning_details") {
                        self.details(item);
                    }
                }
                kind @ ("function_call" | "custom_tool_call") => {
                    let known = self.streamed_call(&outputs, item);
                    let known = known.and_then(|at| self.choice.calls.get_mut(at));
                    match known {
                        Some(call) => {
                            // A call whose item was not streamed has neither.
                            if call.name.is_empty() && call.id.is_none() {
                                call.custom = kind == "custom_tool_call";
                            }
                            if call.arguments.is_empty() {
                                call.arguments =
                                    [text(item, "arguments"), text(item, "input")].concat();
                            }
                            if call.name.is_empty() {
                                text(item, "name").clone_into(&mut call.name);
                            }
                            let id = item["call_id"].as_str().map(str::to_owned);
                            call.id = call.id.take().or(id);
                        }
                        None => {
                            self.header(at, item, kind == "custom_tool_call");
                            self.whole_call(at, item);
                        }
                    }
                }
                kind => {
                    if missing(list_of(kind)) {
                        self.choice.list(list_of(kind), item.clone());
                    }
                }
            }
        }
    }

    /// The streamed call that a call of the final output is: that with its `call_id`; else one with its item's id, or with its
    /// name and arguments, which the output has not otherwise. What it is goes to `self.used`.
    fn streamed_call(&mut self, outputs: &[&Value], item: &Value) -> Option<usize> {
        let id = item["call_id"].as_str()?;
        let calls = &self.choice.calls[..self.streamed_calls];
        if let Some(at) = calls.iter().position(|call| call.id.as_deref() == Some(id)) {
            return Some(at);
        }
        let whole = [text(item, "arguments"), text(item, "input")].concat();
        let in_output = |call: &Call| {
            outputs
                .iter()
                .any(|other| call.id.as_deref().is_some_and(|id| other["call_id"] == id))
        };
        let at = (0..calls.len()).find(|at| {
            let call = &calls[*at];
            let mut items = self.items.iter();
            let streamed = items.find(|item| item.call == Some(*at));
            let has_item_id = streamed.is_some_and(|streamed| {
                !streamed.id.is_empty() && item["id"] == streamed.id.as_str()
            });
            let is_equal = if call.arguments.is_empty() {
                !call.name.is_empty() && call.name == text(item, "name")
            } else {
                call.arguments == whole && (call.name.is_empty() || call.name == text(item, "name"))
            };
            !in_output(call) && !self.used.contains(at) && (has_item_id || is_equal)
        })?;
        self.used.push(at);
        Some(at)
    }
}
