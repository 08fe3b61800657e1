//! Responses: the texts of each item from its fragments, or from the first complete value if there are none.

mod citations;
mod final_output;
mod items;
mod kept;
mod parts;
mod start;
mod texts;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::items::Item;
pub(super) use self::{start::is_object, texts::unrepeated};
use super::{
    Answer, Call, Choice, Stream, arguments, entries, is_present, is_set, merge, reason, text,
};

/// One text in order of appearance: of an item and a part, in a lane.
type TextKey = (usize, &'static str, i64);

#[derive(Default)]
struct Reader {
    /// The items: their index, or their id.
    items: Vec<Item>,
    /// The pieces of text in order of arrival.
    pieces: Vec<(TextKey, String)>,
    choice: Choice,
    /// Whether the response has begun with the event for it.
    has_begun: bool,
    phases: bool,
    /// The number of calls before the final output.
    streamed_calls: usize,
    /// Those of them that the final output has with another id.
    used: Vec<usize>,
    /// D13: what only complete values have brought of a text, and of a call's arguments.
    ahead: BTreeMap<TextKey, String>,
    calls_ahead: BTreeMap<usize, String>,
    /// D13: the call whose start had its arguments, and these. Fragments replace them.
    initial: Option<(usize, String)>,
    /// The texts of which a complete value has arrived.
    whole: BTreeSet<TextKey>,
    /// The lists whose entries wait for the end.
    held: BTreeSet<&'static str>,
    /// P18: the starts of items that have not ended, with the lists in which they stand.
    started: Vec<(usize, &'static str, Value)>,
    /// The parts that were added, with the number that each of them has here.
    added: BTreeMap<TextKey, i64>,
}

pub(super) fn read(stream: &Stream) -> Answer {
    let mut answer = Answer::default();
    let mut reader = Reader::default();
    let mut last = None;
    let (mut first_id, mut begun_to) = (None, None);
    for wire in &stream.values {
        let value = &wire.value;
        let kind = super::kind_of(value, &wire.name);
        if matches!(kind, "error" | "response.error")
            || (!kind.starts_with("response.")
                && value["object"] != "response"
                && super::is_error(wire))
        {
            answer.error = true;
            break;
        }
        if kind == "response.created" {
            // A11: after content, that of another response is none of this answer.
            let id = &value["response"]["id"];
            if !reader.has_content() {
                // What was started and brought nothing belongs to an attempt that was given up.
                reader.items.clear();
                reader.started.clear();
                first_id = Some(id);
            }
            let is_same = first_id == Some(id) && is_set(id);
            if reader.has_content() && !is_same {
                answer.malformed = true;
                break;
            }
            reader.has_begun = true;
            begun_to = reader.items.iter().filter_map(|item| item.index).max();
        }
        let index = value["output_index"].as_i64();
        if kind == "response.output_item.added" && index.is_some() && index <= begun_to {
            answer.malformed = true;
            break;
        }
        if value["object"] == "response" {
            last = Some(("completed", value));
            break;
        }
        match kind.trim_start_matches("response.") {
            // P30
            kind @ ("completed" | "incomplete" | "failed" | "cancelled" | "done")
                if kind != "done"
                    || value["response"].is_object()
                    || is_set(&value["status"])
                    || is_set(&value["output"]) =>
            {
                let kind = if kind == "done" { "completed" } else { kind };
                let body = if value["response"].is_object() {
                    &value["response"]
                } else {
                    value
                };
                last = Some((kind, body));
                break;
            }
            kind => reader.event(kind, value),
        }
    }
    let streamed = reader.lanes();
    if let Some((kind, body)) = last {
        reader.flush_initial(None);
        reader.final_output(&streamed, body);
        merge(&mut answer.usage, &body["usage"]);
        let status = body["status"].as_str().unwrap_or(kind);
        if status == "failed" || is_present(&body["error"]) {
            answer.error = true;
        } else {
            let why = reason(&body["incomplete_details"]["reason"]);
            reader.choice.finish_reason = why.or_else(|| Some(status.to_owned()));
        }
    }
    reader.flush_initial(None);
    reader.keep_started();
    reader.join();
    let mut choice = reader.choice;
    choice.fill_calls();
    if !stream.values.is_empty() {
        answer.choices.insert(0, choice);
    }
    // A stream that holds nothing but an error has no choice.
    let only_error =
        answer.error && last.is_none() && reader.items.is_empty() && stream.values.len() < 2;
    if only_error {
        answer.choices.clear();
    }
    answer
}

impl Reader {
    fn has_content(&self) -> bool {
        let has_text = self.pieces.iter().any(|(_, piece)| !piece.is_empty());
        has_text || !self.choice.calls.is_empty() || !self.choice.lists.is_empty()
    }

    fn part(value: &Value) -> i64 {
        let number = value["content_index"].as_i64();
        number
            .or_else(|| value["summary_index"].as_i64())
            .unwrap_or_default()
    }

    fn event(&mut self, kind: &str, value: &Value) {
        let id = text(value, "item_id").to_owned();
        let part = Self::part(value);
        match kind {
            "output_text.delta" => self.delta(value, &id, "content", part),
            "refusal.delta" => self.delta(value, &id, "refusal", part),
            // P30
            "content_part.delta" if value["delta"].is_string() => {
                self.delta(value, &id, "content", part)
            }
            "reasoning.delta" if value["delta"].is_string() => {
                self.reasoning(value, &id, "text", part, text(value, "delta"), false)
            }
            "reasoning_summary.delta" if value["delta"].is_string() => {
                self.reasoning(value, &id, "summary", part, text(value, "delta"), false);
            }
            "reasoning_text.delta" => {
                self.reasoning(value, &id, "text", part, text(value, "delta"), false)
            }
            "reasoning_summary_text.delta" => {
                self.reasoning(value, &id, "summary", part, text(value, "delta"), false);
            }
            "output_text.done" => self.whole(value, &id, "content", part, text(value, "text")),
            "refusal.done" => self.whole(value, &id, "refusal", part, text(value, "refusal")),
            "reasoning_text.done" | "reasoning.done" => {
                self.reasoning(value, &id, "text", part, text(value, "text"), true)
            }
            "reasoning_summary_text.done" | "reasoning_summary.done" => {
                self.reasoning(value, &id, "summary", part, text(value, "text"), true);
            }
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                let at = self.item(value, &id, "call");
                let call = self.call(at);
                self.arguments(call, &arguments(&value["delta"]));
            }
            "function_call_arguments.done" | "custom_tool_call_input.done" => {
                let at = self.item(value, &id, "call");
                if is_set(&value["call_id"]) || is_set(&value["name"]) {
                    self.header(at, value, kind.starts_with("custom"));
                }
                self.whole_call(at, value);
            }
            "output_text.annotation.added" | "output_text_annotation.added" => {
                let at = self.item(value, &id, "message");
                let part = self.number_of(at, "content", part);
                self.cite(at, part, &value["annotation"]);
            }
            "content_part.done" if value["part"]["type"] == "output_text" => {
                let whole = entries(&value["part"]["annotations"]);
                if !whole.is_empty() {
                    let at = self.item(value, &id, "message");
                    let part = self.number_of(at, "content", part);
                    let whole = whole.into_iter().map(|citation| (part, citation));
                    self.complete_citations(at, Some(part), &whole.collect::<Vec<_>>());
                }
            }
            "output_item.added" | "output_item.done" if value["item"].is_object() => {
                self.item_event(value, &value["item"], kind == "output_item.done");
            }
            "created" | "queued" | "in_progress" | "output_item.added" | "output_item.done" => {}
            "content_part.added" | "reasoning_part.added" | "reasoning_summary_part.added" => {
                self.part_added(value, &id, part);
            }
            _ if kind.contains("part.") || kind.contains("audio") || kind.contains("_call") => {}
            _ if kind.starts_with("mcp_list_tools") || kind.starts_with("compaction") => {}
            "ping" | "keepalive" => {}
            // D16
            _ => self.choice.list("content_parts", value.clone()),
        }
    }

    fn reasoning(
        &mut self,
        value: &Value,
        id: &str,
        kind: &'static str,
        part: i64,
        piece: &str,
        whole: bool,
    ) {
        let at = self.item(value, id, "reasoning");
        let part = self.number_of(at, "reasoning", part);
        self.reasoning_at(at, kind, part, piece, whole);
    }

    fn reasoning_at(&mut self, at: usize, kind: &'static str, part: i64, piece: &str, whole: bool) {
        if piece.is_empty() || *self.items[at].reasoning.get_or_insert(kind) != kind {
            return; // P13
        }
        let key = (at, "reasoning", part);
        if whole {
            self.complete(key, piece);
        } else {
            self.piece(key, piece);
        }
    }

    fn call(&mut self, at: usize) -> usize {
        if let Some(call) = self.items[at].call {
            return call;
        }
        self.choice.calls.push(Call::default());
        *self.items[at].call.insert(self.choice.calls.len() - 1)
    }

    fn header(&mut self, at: usize, item: &Value, custom: bool) {
        let call = self.call(at);
        self.flush_initial(Some(call));
        let call = &mut self.choice.calls[call];
        if call.name.is_empty() && call.id.is_none() {
            call.custom = custom;
        }
        if call.id.is_none() {
            call.id = item["call_id"].as_str().map(str::to_owned);
        }
        if call.name.is_empty() {
            text(item, "name").clone_into(&mut call.name);
        }
        self.items[at].call_id.clone_from(&call.id);
    }

    fn item_event(&mut self, event: &Value, item: &Value, done: bool) {
        let id = text(item, "id").to_owned();
        match text(item, "type") {
            "message" => {
                let at = self.item(event, &id, "message");
                self.items[at].was_added |= !done;
                self.phase(at, item);
                let joined = ["content", "refusal"].map(|lane| done && self.joined(at, lane, item));
                for (part, content) in (0..).zip(entries(&item["content"])).filter(|_| done) {
                    let (lane, key) = lane_of(content);
                    if !joined[usize::from(lane == "refusal")] {
                        self.complete((at, lane, part), text(content, key));
                    }
                }
                if done {
                    self.complete_citations(at, None, &citations::of(item));
                }
                self.items[at].is_done |= done;
            }
            "reasoning" => {
                let at = self.item(event, &id, "reasoning");
                self.items[at].was_added |= !done;
                if done {
                    self.whole_reasoning(at, item);
                    self.details(at, item);
                    self.end(at);
                } else if Self::has_details(item) {
                    self.note_start(at, "reasoning_details", item);
                }
            }
            kind @ ("function_call" | "custom_tool_call") => {
                let at = self.item(event, &id, "call");
                self.items[at].was_added |= !done;
                self.header(at, item, kind == "custom_tool_call");
                match done {
                    true => self.whole_call(at, item),
                    false => self.start_arguments(at, item),
                }
                self.items[at].is_done |= done;
            }
            kind => {
                let at = self.item(event, &id, "other");
                self.items[at].was_added |= !done;
                if self.items[at].kind.is_empty() {
                    kind.clone_into(&mut self.items[at].kind);
                }
                if done {
                    self.end(at);
                    self.keep(at, list_of(kind), item);
                } else {
                    self.note_start(at, list_of(kind), item);
                }
            }
        }
    }

    fn phase(&mut self, at: usize, item: &Value) {
        if !self.items[at].described && is_set(&item["phase"]) {
            self.phases = true;
            let part = json!({ "type": "message", "id": item["id"], "phase": item["phase"] });
            self.choice.list("content_parts", part);
            let place = self.choice.lists["content_parts"].len() - 1;
            let is_held = self.held.contains("content_parts");
            self.items[at].kept = Some(("content_parts", place, is_held));
        }
        self.items[at].described = true;
    }

    fn whole_reasoning(&mut self, at: usize, item: &Value) {
        for (kind, key) in [("summary", "summary"), ("text", "content")] {
            for (part, entry) in (0..).zip(entries(&item[key])) {
                self.reasoning_at(at, kind, part, text(entry, "text"), true);
            }
        }
    }

    fn details(&mut self, at: usize, item: &Value) {
        if Self::has_details(item) || self.items[at].kept.is_some() {
            self.keep(at, "reasoning_details", item);
        }
    }

    fn has_details(item: &Value) -> bool {
        let both = is_set(&item["summary"]) && is_set(&item["content"]);
        is_set(&item["encrypted_content"]) || both
    }

    /// Which lanes and lists the stream itself filled.
    fn lanes(&self) -> BTreeMap<&'static str, bool> {
        let mut lanes = BTreeMap::new();
        for ((_, lane, _), piece) in &self.pieces {
            *lanes.entry(*lane).or_insert(false) |= !piece.is_empty();
        }
        for (list, entries) in &self.choice.lists {
            // The phases of messages are among the parts, and are no part that the final output has.
            let mut own = entries.iter().filter(|entry| entry.get("phase").is_none());
            lanes.insert(*list, own.next().is_some());
        }
        lanes.insert("phases", self.phases);
        lanes.insert("calls", !self.choice.calls.is_empty());
        lanes
    }

    fn join(&mut self) {
        for ((_, lane, _), piece) in &self.pieces {
            match *lane {
                "content" => self.choice.content += piece,
                "refusal" => self.choice.refusal += piece,
                _ => self.choice.reasoning += piece,
            }
        }
    }
}

fn lane_of(content: &Value) -> (&'static str, &'static str) {
    if content["type"] == "refusal" {
        ("refusal", "refusal")
    } else {
        ("content", "text")
    }
}

fn list_of(kind: &str) -> &'static str {
    if kind == "image_generation_call" {
        "images"
    } else {
        "content_parts"
    }
}
