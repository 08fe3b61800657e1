//! Amazon Bedrock: the events of ConverseStream, its answers without streaming, and the chunks of `invoke`.

mod block;
mod body;
mod earlier;
mod invoke;

use earlier::Earlier;
use invoke::Invoked;

use super::{
    blocks::{Block, Blocks},
    calls::{Calls, Stopped},
    identify::{is_invoke_payload, says_nothing},
    reader::{DialectReader, Output, WireEvent, raw, reason_of, text},
};
use crate::{BodyFormat, node::Node};

/// The only choice of a conversation.
const CHOICE: u32 = 0;

/// The state of one answer.
#[derive(Default)]
pub(crate) struct Bedrock {
    has_started: bool,
    /// Whether the start of the message was read.
    has_head: bool,
    /// Whether a block has followed, so that another start is not a repetition (A11).
    has_content: bool,
    blocks: Blocks,
    calls: Calls,
    earlier: Earlier,
    /// The state of a model's own format (B10).
    invoked: Invoked,
}

impl DialectReader for Bedrock {
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool {
        let node = event.node;
        if let Some(bytes) = chunk_bytes(event) {
            self.chunk(&bytes, output);
            return true;
        }
        if node.get("output").is_some() && node.get("stopReason").is_some() {
            self.body(node, output);
            return true;
        }
        // The name of the message in which the chunk was, or that of every event.
        let name = event.name.unwrap_or_default();
        let is_chunk = name == "chunk" || says_nothing(name);
        if is_chunk && !self.has_started && invoke::is_of_model(node) {
            self.invoked.decoded(node, output);
            return true;
        }
        if !self.has_started && self.invoked.is_decoded(event) {
            self.decoded(node, output);
            return true;
        }
        // As the name of a message or event, or as the only key of a line (B16).
        let mut is_known = false;
        for (name, payload) in node.as_object().unwrap_or_default() {
            is_known |= payload.as_object().is_some() && self.event(name, payload, output);
        }
        let kind = event.kind().unwrap_or_default();
        if is_agent(&kind) || (!self.has_started && is_retrieval(&kind)) {
            output.stream().format = Some(BodyFormat::BedrockAgents);
            return true;
        }
        // Messages with other names mean nothing (B07).
        is_known || self.event(&kind, node, output) || event.name.is_some()
    }

    fn is_error(&self, event: &WireEvent<'_, '_>) -> bool {
        let mut fields = event.node.as_object().unwrap_or_default().iter();
        let is_exception = |name: &str| name.ends_with("Exception");
        // The body of an error has hardly more than its message, in either spelling.
        let has_text = |key: &str| text(event.node, key).is_some();
        let is_message = event.kind().is_none()
            && !invoke::is_of_family(event.node)
            && ["message", "Message"].into_iter().any(has_text);
        super::fault::is_error(event)
            || is_message
            || event.name.is_some_and(is_exception)
            || fields.any(|(key, value)| is_exception(key) && !value.is_null())
    }

    fn keep_alive(&mut self, output: &mut Output<'_>) {
        self.invoked.keep_alive(output);
    }

    fn flush(&mut self, choice: u32, output: &mut Output<'_>) {
        for call in self.blocks.calls() {
            call.flush(CHOICE, output); // the start brought all of its arguments
        }
        self.invoked.flush(choice, output);
    }

    fn finish(&mut self, is_complete: bool, output: &mut Output<'_>) {
        self.flush(CHOICE, output);
        while let Some((index, block)) = self.blocks.take_last() {
            self.close(index, block, output);
        }
        self.invoked.finish(is_complete, output);
    }
}

impl Bedrock {
    /// Reads an event of ConverseStream; false if it has another name.
    fn event<'a>(&mut self, name: &str, payload: &Node<'a>, output: &mut Output<'a>) -> bool {
        match name {
            "messageStart" => self.message_start(payload, output),
            "contentBlockStart" => self.block_start(payload, output),
            "contentBlockDelta" => self.block_delta(payload, output),
            "contentBlockStop" => {
                let index = self.index(payload);
                self.stop(index, output);
            }
            "messageStop" => self.message_stop(payload, output),
            "metadata" => {
                output.usage(payload.get("usage"));
                for (key, value) in payload.as_object().unwrap_or_default() {
                    if !matches!(&**key, "usage" | "p") && !value.is_null() {
                        let field = (key.clone(), raw(value));
                        output.stream().metadata.push(field);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// A block's index; that of the latest block if it is missing.
    fn index(&self, node: &Node<'_>) -> i64 {
        let own = node.get("contentBlockIndex").and_then(Node::as_i64_lenient);
        let latest = || self.blocks.latest().map(of_block);
        own.or_else(latest).unwrap_or_default()
    }

    /// The start of the message, which has no id: after content it is that of another one, and before it a repetition (A11).
    fn message_start<'a>(&mut self, payload: &Node<'a>, output: &mut Output<'a>) {
        self.has_started = true;
        match (
            std::mem::replace(&mut self.has_head, true),
            self.has_content,
        ) {
            (false, _) => output.choice(CHOICE).role = text(payload, "role"),
            (true, false) => output.second_start(),
            (true, true) => output.second_message(),
        }
    }

    fn ensure_started(&mut self, output: &mut Output<'_>) {
        self.has_content = true;
        if !std::mem::replace(&mut self.has_started, true) {
            output.choice(CHOICE);
        }
    }

    fn message_stop<'a>(&mut self, payload: &Node<'a>, output: &mut Output<'a>) {
        self.ensure_started(output);
        for (index, block) in self.blocks.take() {
            self.close(index, block, output); // B17
        }
        for (key, value) in payload.as_object().unwrap_or_default() {
            if !matches!(&**key, "stopReason" | "p") {
                output.choice_field(CHOICE, key, value);
            }
        }
        if let Some(reason) = reason_of(payload.get("stopReason")) {
            self.calls.finish(CHOICE, &reason, output);
            output.finish_reason(CHOICE, reason);
        }
    }

    /// A block has stopped, or another one starts with its index.
    fn stop(&mut self, index: i64, output: &mut Output<'_>) {
        self.blocks.stop(index);
        self.blocks.stop(block::beside(index));
        while let Some((index, block)) = self.blocks.take_complete() {
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
            Block::Object {
                list,
                key,
                mut object,
            } => {
                if key == "toolUse" {
                    self.blocks.stopped(index, Stopped::Object);
                    // Unlike that of Anthropic, the start has no input.
                    if !object.has("input") {
                        object.set("input", "{}");
                    }
                }
                let json = object.to_json();
                match key {
                    block::REASONING if !object.has("signature") => {}
                    block::REASONING => {
                        let json = format!("{{\"reasoningContent\":{{\"{key}\":{json}}}}}");
                        output.entry(CHOICE, list, &json);
                    }
                    _ => output.entry(CHOICE, list, &format!("{{\"{key}\":{json}}}")),
                }
            }
            Block::Entry { list, json } => output.entry(CHOICE, list, &json),
        }
    }
}

/// The index of a block, or of the call beside which it is.
fn of_block(index: i64) -> i64 {
    const MAX: i64 = 1 << 62;
    if index.unsigned_abs() > MAX.unsigned_abs() {
        block::beside(index)
    } else {
        index
    }
}

/// The bytes of a chunk of `invoke`, as base64.
fn chunk_bytes<'a>(event: &WireEvent<'_, 'a>) -> Option<std::borrow::Cow<'a, str>> {
    let node = event.node;
    let chunk = match event.name {
        Some("chunk") => node,
        // A message with another name means nothing (B07).
        name if says_nothing(name.unwrap_or_default()) && is_invoke_payload(node) => node,
        Some(_) | None => node.get("chunk")?,
    };
    chunk.get("bytes")?.text()
}

/// Whether an event is one of `InvokeAgent` (B19).
fn is_agent(kind: &str) -> bool {
    matches!(kind, "trace" | "returnControl" | "files")
}

/// Whether an event is one of `RetrieveAndGenerateStream`, which belongs to the API of the agents.
fn is_retrieval(kind: &str) -> bool {
    matches!(kind, "output" | "citation" | "guardrail")
}
