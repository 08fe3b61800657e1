//! The Responses API of OpenAI: items with parts. Most values arrive in fragments first, and then as a whole, up to four
//! times (D13).

mod added;
mod arguments;
mod citations;
mod cited;
mod delta;
mod header;
mod held;
mod item;
mod key;
mod last;
mod logprobs;
mod origins;
mod parts;
mod started;
mod whole;

use std::borrow::Cow;

use held::HeldEntries;
use item::{Item, ItemKind, ReasoningKind};
use key::Key;
use started::{StartedEntries, list_of};

use super::{
    calls::Calls,
    continuation::{Continuation, Place},
    reader::{DialectReader, Lane, Output, WireEvent, fragment, raw, text},
};
use crate::{
    audio::{cut_text, quoted},
    limits::{MAX_ENTRIES, MAX_NAME_BYTES},
    node::Node,
};

/// The only choice of a response.
const CHOICE: u32 = 0;

/// The state of one response.
#[derive(Default)]
pub(crate) struct Responses {
    has_started: bool,
    /// Whether the head of the response was read, which a stream that begins in the middle has in its last event.
    has_head: bool,
    /// Whether the response has begun with the event for it, and its id.
    has_begun: bool,
    id: Option<String>,
    /// The highest index of the items before a beginning that was repeated after content. One of them that starts again shows that
    /// the response begins anew (A11).
    begun_to: Option<i64>,
    /// Whether the start named the model, which some servers do only at the end.
    has_model: bool,
    items: Vec<Item>,
    /// Whether an index is, or was, that of several items (P29).
    shares_index: bool,
    /// How many items were opened.
    opened: u64,
    /// The item whose text a complete value has brought last. Only its fragments are compared with that value, so that the
    /// memory for it is bounded (D13).
    ahead: Option<u64>,
    calls: Calls,
    held: HeldEntries,
    started: StartedEntries,
    /// Which kinds of output have arrived before the final one.
    arrived: Arrived,
}

/// Which lanes and lists have content. What has arrived is not taken from the final output again (P10).
#[derive(Clone, Copy, Default)]
struct Arrived {
    content: bool,
    refusal: bool,
    reasoning: bool,
    details: bool,
    annotations: bool,
    images: bool,
    parts: bool,
    /// The phases of messages, which are among the parts.
    phases: bool,
    logprobs: bool,
    calls: bool,
}

impl DialectReader for Responses {
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool {
        let node = event.node;
        if is_response(node) {
            self.start(node, output);
            self.end(node, "completed", output);
            return true;
        }
        let kind = event.kind();
        let Some(kind) = kind
            .as_deref()
            .and_then(|kind| kind.strip_prefix("response."))
        else {
            return false;
        };
        let response = node
            .get("response")
            .filter(|node| node.as_object().is_some());
        match (kind, response) {
            ("created", _) => self.begin(response.unwrap_or(node), output),
            ("queued" | "in_progress", _) => self.start(response.unwrap_or(node), output),
            ("completed" | "incomplete" | "failed" | "cancelled", _) => {
                let response = response.unwrap_or(node);
                self.start(response, output);
                self.end(response, kind, output);
            }
            ("done", response) if response.is_some() || is_final(node) => {
                let response = response.unwrap_or(node);
                self.start(response, output);
                self.end(response, "completed", output);
            }
            _ if is_server_side(kind) => self.ensure_started(output),
            _ => self.item_event(kind, node, output),
        }
        true
    }

    fn continuation<'n, 'a>(&self, event: &WireEvent<'n, 'a>) -> Option<Continuation<'n, 'a>> {
        self.item_continuation(event)
    }

    fn continues(&mut self, place: Place, _: u32, text: &str) -> bool {
        match place {
            Place::Item(item) => self.continues_item(item, text),
            Place::Block { .. } | Place::Candidate => false,
        }
    }

    fn flush(&mut self, _: u32, output: &mut Output<'_>) {
        self.flush_calls(None, output);
        self.held.flush(output);
        self.started.flush(output);
    }

    fn finish(&mut self, _: bool, output: &mut Output<'_>) {
        self.flush(CHOICE, output);
    }

    fn is_error(&self, event: &WireEvent<'_, '_>) -> bool {
        let kind = event.kind();
        match kind.as_deref() {
            Some("error" | "response.error") => true,
            Some(kind) if kind.starts_with("response.") => false,
            _ => !is_response(event.node) && super::fault::is_error(event),
        }
    }
}

impl Responses {
    /// Reads the head of a response; the first one counts.
    fn start<'a>(&mut self, response: &Node<'a>, output: &mut Output<'a>) {
        self.has_started = true;
        if std::mem::replace(&mut self.has_head, true) {
            return;
        }
        let created = response.get("created_at");
        let update = output.choice(CHOICE);
        update.id = text(response, "id");
        update.model = text(response, "model");
        self.has_model = update.model.is_some();
        update.created = created
            .and_then(Node::as_f64_lenient)
            .filter(|seconds| *seconds >= 0.0)
            .map(|seconds| seconds as u64);
    }

    /// The beginning of the response. After content, that of another one belongs to a retry, which is another answer (A11).
    fn begin<'a>(&mut self, response: &Node<'a>, output: &mut Output<'a>) {
        let id = text(response, "id").filter(|id| id.len() <= MAX_NAME_BYTES);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.id = id.map(Cow::into_owned);
            return self.start(response, output);
        }
        if !self.has_content() {
            // What was started and brought nothing belongs to an attempt that a gateway gave up.
            self.items.clear();
            self.started.clear();
            self.id = id.map(Cow::into_owned);
            return;
        }
        if id.is_none() || self.id.as_deref() != id.as_deref() {
            return self.second_response(output);
        }
        self.begun_to = self.items.iter().filter_map(|item| item.index).max();
        output.warn(
            "A11",
            "the response was started twice; the first start counts",
        );
    }

    fn has_content(&self) -> bool {
        let is_call = |item: &Item| matches!(item.kind, ItemKind::Call(_));
        self.arrived.any() || self.items.iter().any(is_call)
    }

    fn second_response(&self, output: &mut Output<'_>) {
        output.malformed = Some("a second response begins inside the first one");
    }

    /// Opens the choice of a stream whose start is missing (P03).
    fn ensure_started(&mut self, output: &mut Output<'_>) {
        if !std::mem::replace(&mut self.has_started, true) {
            output.choice(CHOICE);
        }
    }

    /// Reads an event of an item or of its parts.
    fn item_event<'a>(&mut self, kind: &str, node: &Node<'a>, output: &mut Output<'a>) {
        self.ensure_started(output);
        if self.items.len() >= MAX_ENTRIES {
            self.flush_oldest(output);
        }
        let whole = |key: &str| node.get(key).and_then(Node::text).unwrap_or_default();
        match kind {
            "output_item.added" => self.item_added(node, output),
            "output_item.done" => self.item_done(node, output),
            "output_text.delta" => {
                self.delta(node, Lane::Content, None, output);
                self.logprobs(node, output);
            }
            // The name of other servers for the same (P30).
            "content_part.delta" if is_text(node) => self.delta(node, Lane::Content, None, output),
            "refusal.delta" => self.delta(node, Lane::Refusal, None, output),
            "reasoning_text.delta" => {
                self.delta(node, Lane::Reasoning, Some(ReasoningKind::Text), output);
            }
            "reasoning.delta" if is_text(node) => {
                self.delta(node, Lane::Reasoning, Some(ReasoningKind::Text), output);
            }
            "reasoning_summary.delta" if is_text(node) => {
                self.delta(node, Lane::Reasoning, Some(ReasoningKind::Summary), output);
            }
            "reasoning_summary_text.delta" => {
                self.delta(node, Lane::Reasoning, Some(ReasoningKind::Summary), output);
            }
            "output_text.done" => {
                self.text_done(node, Lane::Content, None, &whole("text"), output);
                self.whole_logprobs(node, node, output);
            }
            "refusal.done" => {
                self.text_done(node, Lane::Refusal, None, &whole("refusal"), output);
            }
            "reasoning_text.done" | "reasoning.done" => {
                let kind = Some(ReasoningKind::Text);
                self.text_done(node, Lane::Reasoning, kind, &whole("text"), output);
            }
            "reasoning_summary_text.done" | "reasoning_summary.done" => {
                let kind = Some(ReasoningKind::Summary);
                self.text_done(node, Lane::Reasoning, kind, &whole("text"), output);
            }
            "content_part.done" | "reasoning_part.done" | "reasoning_summary_part.done" => {
                self.part_done(node, output);
            }
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                self.arguments_delta(node, output);
            }
            "function_call_arguments.done" => self.arguments_done(node, "arguments", output),
            "custom_tool_call_input.done" => self.arguments_done(node, "input", output),
            "output_text.annotation.added" | "output_text_annotation.added" => {
                self.citation(node, output);
            }
            "audio.delta" | "output_audio.delta" => audio(node, "data", output),
            "audio.transcript.delta" | "output_audio_transcript.delta" => {
                audio(node, "transcript", output);
            }
            "content_part.added" | "reasoning_part.added" | "reasoning_summary_part.added" => {
                self.part_added(node);
            }
            "audio.done" | "audio.transcript.done" => {}
            _ => super::keep_unknown(CHOICE, node, output),
        }
    }

    /// Appends a fragment to one of an item's texts.
    fn delta<'a>(
        &mut self,
        node: &Node<'a>,
        lane: Lane,
        kind: Option<ReasoningKind>,
        output: &mut Output<'a>,
    ) {
        let piece = fragment(node, "delta");
        let item = self.item(&Key::of_event(node), ItemKind::of_lane(lane));
        let (Some(item), Some(mut piece)) = (item, piece.filter(|piece| !piece.is_empty())) else {
            return;
        };
        if !item.accepts(kind) {
            return;
        }
        let part = item.number_of(lane, item::part_of(node));
        if let Some(seen) = item.seen(lane, part) {
            if seen.is_ahead() {
                let Some(rest) = seen.unrepeated(piece) else {
                    return;
                };
                piece = rest;
                output.warn("D13", "a complete value differs from its fragments");
            }
            seen.push(&piece);
        }
        self.arrived.note(lane);
        output.text(CHOICE, lane, Some(piece));
    }

    /// Keeps an item that is neither text nor a call: what a server's tool did, or an image (P20).
    fn other_item(&mut self, ordinal: u64, item: &Node<'_>, output: &mut Output<'_>) {
        let is_image = is_image(item);
        self.arrived.images |= is_image;
        self.arrived.parts |= !is_image;
        self.keep_item(list_of(item), ordinal, item, output);
    }
}

impl Arrived {
    fn any(self) -> bool {
        self.content
            || self.refusal
            || self.reasoning
            || self.details
            || self.annotations
            || self.images
            || self.parts
            || self.phases
            || self.logprobs
            || self.calls
    }

    fn note(&mut self, lane: Lane) {
        match lane {
            Lane::Content => self.content = true,
            Lane::Reasoning => self.reasoning = true,
            Lane::Refusal => self.refusal = true,
        }
    }
}

fn is_response(node: &Node<'_>) -> bool {
    text(node, "object").as_deref() == Some("response")
}

/// Whether an event is the last state of a response, without the field for it.
fn is_final(event: &Node<'_>) -> bool {
    event.get("status").is_some_and(Node::is_set) || event.get("output").is_some_and(Node::is_set)
}

/// Whether an event has a fragment of text.
fn is_text(event: &Node<'_>) -> bool {
    event.get("delta").and_then(Node::text).is_some()
}

fn is_image(item: &Node<'_>) -> bool {
    text(item, "type").as_deref() == Some("image_generation_call")
}

/// A piece of audio, as chat completions have it (M11).
fn audio<'a>(node: &Node<'a>, key: &str, output: &mut Output<'a>) {
    if let Some(piece) = node.get("delta").filter(|node| node.is_set()) {
        let cut = cut_text(piece).filter(|_| key == "transcript");
        let json = cut.map_or_else(|| raw(piece), |text| quoted(&text).into());
        output.message_field(CHOICE, "audio", format!("{{\"{key}\":{json}}}"));
    }
}

/// Whether an event reports the progress of a tool that the server runs, whose complete item follows (P19, P20).
fn is_server_side(kind: &str) -> bool {
    const PREFIXES: [&str; 12] = [
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
        "mcp_list_tools",
        "image_generation_call",
        "shell_call",
        "local_shell_call",
        "apply_patch_call",
        "computer_call",
        "tool_search_call",
        "compaction",
    ];
    PREFIXES.iter().any(|prefix| kind.starts_with(prefix))
}
