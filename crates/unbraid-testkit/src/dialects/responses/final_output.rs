//! What the final output has beyond the stream (P10).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Item, Reader, citations, lane_of, list_of};
use crate::{
    dialects::{Call, entries, is_set, text},
    reference::lenient::split_halves,
};

/// What an item of the final output is.
#[derive(Clone, Copy)]
enum Source {
    /// A streamed item, by its place.
    Streamed(usize),
    /// An item that was not streamed.
    New,
    /// One of the streamed ones, or none.
    Unknown,
}

/// An entry with what is set in a later value of its item. Of a message only the phase is an entry.
fn with_later(mut entry: Value, later: &Value) -> Value {
    let fields = later.as_object().into_iter().flatten();
    for (key, value) in fields.filter(|(_, value)| is_set(value) && later["type"] != "message") {
        entry[key] = value.clone();
    }
    entry
}

impl Reader {
    /// P10: only what is missing entirely.
    pub(super) fn final_output(&mut self, streamed: &BTreeMap<&'static str, bool>, body: &Value) {
        let missing = |lane: &str| !streamed.get(lane).copied().unwrap_or(false);
        let outputs = entries(&body["output"]);
        self.streamed_calls = self.choice.calls.len();
        let sources = self.sources(&outputs);
        let mut waiting = self.take_waiting(&sources);
        for (item, source) in outputs.iter().copied().zip(sources) {
            if let Source::Streamed(known) = source
                && let Some((list, entry)) = waiting.remove(&known)
            {
                self.choice.list(list, with_later(entry, item));
            }
            self.items.push(Item::default());
            let at = self.items.len() - 1;
            match text(item, "type") {
                "message" => {
                    for (part, content) in (0..).zip(entries(&item["content"])) {
                        let (lane, key) = lane_of(content);
                        if missing(lane) {
                            self.complete((at, lane, part), text(content, key));
                        }
                    }
                    let whole = citations::of(item);
                    match source {
                        Source::Streamed(known) => self.complete_citations(known, None, &whole),
                        Source::Unknown if !missing("annotations") => {}
                        Source::New | Source::Unknown => self.complete_citations(at, None, &whole),
                    }
                    if missing("phases") {
                        self.phase(at, item);
                    }
                }
                "reasoning" => {
                    if missing("reasoning") {
                        self.whole_reasoning(at, item);
                    }
                    self.last_entry(at, source, missing("reasoning_details"), item);
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
                    self.last_entry(at, source, missing(list_of(kind)), item);
                }
            }
        }
    }

    /// Takes the entries of these items that waited for the output, in which they have their places.
    fn take_waiting(&mut self, sources: &[Source]) -> BTreeMap<usize, (&'static str, Value)> {
        let mut waiting = BTreeMap::new();
        let mut gone: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
        for source in sources {
            if let Source::Streamed(at) = *source
                && let Some((list, place, true)) = self.items[at].kept
            {
                waiting.insert(at, (list, self.choice.lists[list][place].clone()));
                gone.entry(list).or_default().push(place);
                self.items[at].kept = Some((list, place, false));
            }
        }
        for (list, places) in gone {
            let entries = (0..).zip(std::mem::take(self.choice.lists.entry(list).or_default()));
            let left = entries.filter(|(place, _)| !places.contains(place));
            self.choice
                .lists
                .insert(list, left.map(|(_, entry)| entry).collect());
        }
        // Nothing later replaces an entry.
        self.held.clear();
        waiting
    }

    fn last_entry(&mut self, at: usize, source: Source, is_list_missing: bool, item: &Value) {
        match source {
            Source::Streamed(known) => {
                self.started.retain(|(started, ..)| *started != known);
                self.keep_last(known, item);
            }
            Source::Unknown if !is_list_missing => {}
            Source::New | Source::Unknown => self.keep_last(at, item),
        }
    }

    /// Which streamed item each one is: by its id, else by its place among those of its type, unless some are missing.
    fn sources(&self, outputs: &[&Value]) -> Vec<Source> {
        let mut sources = vec![Source::Unknown; outputs.len()];
        let mut kinds: Vec<&str> = outputs.iter().map(|item| text(item, "type")).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let lane = match kind {
                "message" | "reasoning" => kind,
                _ => "other",
            };
            let is_own = |item: &&Item| item.lane == lane && (lane != "other" || item.kind == kind);
            let items = (0..).zip(&self.items).filter(|(_, item)| is_own(item));
            let mut streamed: Vec<(usize, &Item)> = items.collect();
            let all = (0..)
                .zip(outputs)
                .filter(|(_, item)| text(item, "type") == kind);
            let mut rest: Vec<usize> = Vec::new();
            for (at, item) in all {
                let is_it = |(_, known): &(usize, &Item)| {
                    !known.id.is_empty() && item["id"] == known.id.as_str()
                };
                match streamed.iter().position(is_it) {
                    Some(found) => sources[at] = Source::Streamed(streamed.remove(found).0),
                    None => rest.push(at),
                }
            }
            streamed.sort_by_key(|(_, item)| item.index);
            let ended = streamed.iter().filter(|(_, item)| item.is_done).count();
            let are_all = rest.len() >= streamed.len();
            for (place, at) in rest.into_iter().enumerate() {
                sources[at] = match streamed.get(place) {
                    Some((known, _)) if are_all => Source::Streamed(*known),
                    None => Source::New,
                    Some(_) if place >= ended => Source::New,
                    Some(_) => Source::Unknown,
                };
            }
        }
        sources
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
                split_halves(&call.arguments) == split_halves(&whole)
                    && (call.name.is_empty() || call.name == text(item, "name"))
            };
            !in_output(call) && !self.used.contains(at) && (has_item_id || is_equal)
        })?;
        self.used.push(at);
        Some(at)
    }
}
