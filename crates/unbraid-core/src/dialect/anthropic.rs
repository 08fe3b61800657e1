//! The Messages API of Anthropic: one message of blocks, whose deltas have the index of their block.

mod block;
mod delta;

use std::borrow::Cow;

use super::{
    blocks::{Block, Blocks, THINKING},
    calls::{Calls, Stopped},
    continuation::{Continuation, Place},
    reader::{DialectReader, Lane, Output, WireEvent, entries, fragment, reason_of, text},
};
use crate::{limits::MAX_NAME_BYTES, node::Node};

/// The only choice of a message.
const CHOICE: u32 = 0;

/// The state of one message.
#[derive(Default)]
pub(crate) struct Anthropic {
    has_started: bool,
    /// Whether the start of the message was read.
    has_head: bool,
    /// The id of the message, by which a start that is repeated after content is recognized.
    id: Option<String>,
    /// The highest index of the blocks that had started before a start that came after content. One of them that starts again
    /// shows that the message begins anew, or that another one does.
    begun_to: Option<i64>,
    /// The highest index of a block that has started.
    last_index: Option<i64>,
    /// Whether a block or a reason came, so that another message is not a repetition (A11).
    has_content: bool,
    /// Whether anything of that can be seen: text, a call, another block, a reason.
    has_arrived: bool,
    blocks: Blocks,
    calls: Calls,
    /// The last stop reason, until the event after it (A03, A17).
    reason: Option<String>,
    /// The stop reason of the start (A10).
    early_reason: Option<String>,
    /// Whether it says nothing before the end mark: blocks follow the start, or the start has none.
    needs_end_mark: bool,
    /// Whether the reason was reported, so that nothing more belongs to the choice.
    has_finished: bool,
    has_usage: bool,
}

impl DialectReader for Anthropic {
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool {
        let node = event.node;
        let Some(kind) = event.kind() else {
            return false;
        };
        match &*kind {
            "message_start" => self.message_start(node.get("message").unwrap_or(node), output),
            "content_block_start" => {
                let index = self.index(node);
                if let Some(block) = node.get("content_block") {
                    self.block_start(index, block, output);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = node.get("delta") {
                    self.block_delta(node, delta, output);
                }
            }
            "content_block_stop" => {
                let index = self.index(node);
                self.stop(index, output);
            }
            "message_delta" => self.message_delta(node, output),
            "message_stop" => self.message_stop(node, output),
            "message" if node.get("content").is_some() => {
                self.message_start(node, output);
                // One with neither content nor a reason is the start alone, without the event around it.
                if has_answer(node) {
                    self.message_stop(node, output);
                }
            }
            "ping" => self.keep_alive(output),
            _ => return self.unknown(node, output),
        }
        true
    }

    fn continuation<'n, 'a>(&self, event: &WireEvent<'n, 'a>) -> Option<Continuation<'n, 'a>> {
        self.block_continuation(event)
    }

    fn continues(&mut self, place: Place, _: u32, text: &str) -> bool {
        match place {
            Place::Block { index, lane } => self.continues_block(index, lane, text),
            Place::Item(_) | Place::Candidate => false,
        }
    }

    fn keep_alive(&mut self, output: &mut Output<'_>) {
        if self.reason.is_some() {
            self.finish(true, output);
        }
    }

    fn flush(&mut self, _: u32, output: &mut Output<'_>) {
        for call in self.blocks.calls() {
            call.flush(CHOICE, output); // the start brought all of its arguments
        }
    }

    fn finish(&mut self, _: bool, output: &mut Output<'_>) {
        self.flush(CHOICE, output);
        let early = self.early_reason.take_if(|_| !self.needs_end_mark);
        let Some(reason) = self.reason.take().or(early) else {
            while let Some((index, block)) = self.blocks.take_last() {
                self.close(index, block, output);
            }
            return;
        };
        self.close_all(output);
        self.calls.finish(CHOICE, &reason, output);
        self.has_finished = true;
        output.finish_reason(CHOICE, reason);
    }
}

impl Anthropic {
    /// The choice, while it has started and not finished.
    pub(super) fn open_choice(&self) -> Option<u32> {
        (self.has_started && !self.has_finished).then_some(CHOICE)
    }

    /// A block's index; that of the latest block if it is missing.
    fn index(&self, node: &Node<'_>) -> i64 {
        let own = node.get("index").and_then(Node::as_i64_lenient);
        own.or_else(|| self.blocks.latest()).unwrap_or_default()
    }

    fn message_start<'a>(&mut self, message: &Node<'a>, output: &mut Output<'a>) {
        // Without any start before it, it is not another one, even if the first events of the blocks came earlier.
        let has_ended = self.reason.is_some() || self.has_finished;
        let is_late = self.has_content && !self.has_head && !has_ended;
        if self.has_started && !is_late {
            let id = text(message, "id").filter(|_| !has_ended);
            let is_same = id.is_some() && self.id.as_deref() == id.as_deref();
            if self.has_content && !is_same && (self.has_arrived || has_ended) {
                return output.second_message();
            }
            if self.has_content && !self.has_arrived && !has_ended {
                // The blocks that were started belong to an attempt that a gateway gave up.
                self.blocks = Blocks::default();
                self.last_index = None;
                self.has_content = false;
                let id = id.filter(|id| id.len() <= MAX_NAME_BYTES);
                self.id = id.map(Cow::into_owned);
            }
            self.begun_to = self.last_index;
            return output.second_start();
        }
        self.has_started = true;
        self.has_head = true;
        let update = output.choice(CHOICE);
        update.id = text(message, "id");
        let id = update.id.as_deref();
        self.id = id
            .filter(|id| id.len() <= MAX_NAME_BYTES)
            .map(str::to_owned);
        update.model = text(message, "model");
        update.role = text(message, "role");
        if is_late {
            self.begun_to = self.last_index;
            output.warn("A11", "the message was started after its content");
        }
        let blocks = entries(message.get("content"));
        // A request may have the text in place of its only block, and some gateways answer so.
        let only = fragment(message, "content").filter(|only| !only.is_empty());
        if only.is_some() {
            self.ensure_started();
            self.has_arrived = true;
            output.text(CHOICE, Lane::Content, only);
        }
        for (position, block) in (0..).zip(blocks) {
            self.block_start(position, block, output);
            self.stop(position, output);
        }
        self.needs_end_mark = is_late || blocks.is_empty();
        self.early_reason = self.stop_fields(message, output);
        self.usage(message, output);
    }

    fn message_delta<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        let delta = node.get("delta").filter(|delta| !delta.is_null());
        // One without a reason reports usage, and does not end the message (A03).
        if reason_of(delta.unwrap_or(node).get("stop_reason")).is_some() {
            self.close_all(output);
        }
        // Some gateways write the fields of the delta in its place.
        if let Some(reason) = self.stop_fields(delta.unwrap_or(node), output) {
            self.has_content = true;
            self.has_arrived = true;
            self.reason = Some(reason);
        }
        if let Some(delta) = delta {
            self.usage(delta, output); // where the API had it at first
            self.other_fields(node, &["type", "delta", "usage"], output);
        }
        self.usage(node, output);
    }

    /// Reads the reason, and what else describes the end of the message.
    fn stop_fields<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) -> Option<String> {
        const KNOWN: [&str; 7] = [
            "id",
            "type",
            "role",
            "content",
            "model",
            "stop_reason",
            "usage",
        ];
        self.other_fields(node, &KNOWN, output);
        reason_of(node.get("stop_reason")).map(Cow::into_owned)
    }

    fn other_fields<'a>(&mut self, node: &Node<'a>, known: &[&str], output: &mut Output<'a>) {
        for (key, value) in node.as_object().unwrap_or_default() {
            if !known.contains(&&**key) && key != BEDROCK_METRICS {
                output.choice_field(CHOICE, key, value);
            }
        }
    }

    fn usage<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        let usage = node.get("usage");
        self.has_usage |= usage.is_some_and(|usage| usage.as_object().is_some());
        output.usage(usage);
    }

    fn message_stop<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        self.close_all(output);
        self.needs_end_mark = false;
        self.finish(true, output);
        if !self.has_usage {
            output.usage(node.get(BEDROCK_METRICS));
        }
        output.done();
    }

    /// Keeps an event of an unknown type; false if it is not an event of this dialect.
    fn unknown<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) -> bool {
        if node.get("type").is_none() || !self.has_started {
            return false;
        }
        super::keep_unknown(CHOICE, node, output);
        true
    }

    /// A block has stopped, or another one starts with its index.
    fn stop(&mut self, index: i64, output: &mut Output<'_>) {
        self.blocks.stop(index);
        while let Some((index, block)) = self.blocks.take_complete() {
            self.close(index, block, output);
        }
    }

    /// Closes the blocks whose stops are missing (A12).
    fn close_all(&mut self, output: &mut Output<'_>) {
        for (index, block) in self.blocks.take() {
            self.close(index, block, output);
        }
    }

    fn close(&mut self, index: i64, block: Block, output: &mut Output<'_>) {
        match block {
            Block::Text | Block::Dropped => {}
            Block::Call(mut call) => {
                self.calls.close(CHOICE, &mut call, output);
                self.blocks.stopped(index, Stopped::Call(call));
            }
            Block::Object { list, object, .. } => {
                if list != THINKING {
                    self.blocks.stopped(index, Stopped::Object);
                }
                // Thinking without a signature is only text, which is in the reasoning.
                if list != THINKING || object.has("signature") || object.has("data") {
                    output.entry(CHOICE, list, &object.to_json());
                }
            }
            Block::Entry { list, json } => output.entry(CHOICE, list, &json),
        }
    }

    /// Opens the choice for a message whose start is missing.
    fn ensure_started(&mut self) {
        self.has_started = true;
        self.has_content = true;
        self.needs_end_mark = true;
    }
}

/// Whether a message has content, or a reason to end without any.
fn has_answer(message: &Node<'_>) -> bool {
    let has_content = message.get("content").is_some_and(Node::has_content);
    has_content || reason_of(message.get("stop_reason")).is_some()
}

/// The field that Bedrock adds to the last event.
const BEDROCK_METRICS: &str = "amazon-bedrock-invocationMetrics";
