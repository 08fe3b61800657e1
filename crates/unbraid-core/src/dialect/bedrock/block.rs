//! The blocks of ConverseStream.

use super::{Bedrock, CHOICE};
use crate::{
    Fragment, ToolCallUpdate,
    chunk::CONTENT_PARTS,
    dialect::{
        blocks::Block,
        calls::{Call, Stopped},
        object::Object,
        reader::{Lane, Output, arguments_of, entries, fragment, other_fields, raw, text},
    },
    node::Node,
};

/// The key of reasoning with a signature.
pub(super) const REASONING: &str = "reasoningText";

impl Bedrock {
    pub(super) fn block_start<'a>(&mut self, payload: &Node<'a>, output: &mut Output<'a>) {
        self.ensure_started(output);
        let index = self.index(payload);
        let tool = payload.get("start").and_then(|start| start.get("toolUse"));
        let tool = tool.filter(|tool| !tool.is_null());
        if tool.is_some_and(|tool| self.call_restart(index, tool, output)) {
            return;
        }
        self.blocks.flush_calls_beside(index, CHOICE, output);
        self.stop(index, output);
        let start = payload.get("start").and_then(Node::as_object);
        let start = start.unwrap_or_default();
        if start.is_empty() {
            return;
        }
        // A union has one member. Gateways add null for the others, and keys of their own.
        let member = start
            .iter()
            .find(|(key, value)| is_member(key) && !value.is_null());
        let block = match member.map(|(key, start)| (&**key, start)) {
            Some(("toolUse", start)) if !is_server_tool(start) => self.call_start(start, output),
            Some(("toolUse", start)) => object(CONTENT_PARTS, "toolUse", start),
            Some(("toolResult", start)) => object(CONTENT_PARTS, "toolResult", start),
            Some(("image", start)) => object("images", "image", start),
            Some(_) | None => Block::Text,
        };
        self.insert(index, block, output);
    }

    pub(super) fn call_start<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) -> Block {
        let mut call = self.calls.open();
        call_header(&mut call, node, output);
        call.hold_initial(arguments_of(node.get("input"))); // gateways, as Anthropic (A07)
        Block::Call(call)
    }

    /// Reads the start of a call that is open: one that its first delta has overtaken, or that comes twice. False for any other.
    fn call_restart<'a>(&mut self, index: i64, node: &Node<'a>, output: &mut Output<'a>) -> bool {
        let Some(Block::Call(call)) = self.blocks.get_mut(index) else {
            return false;
        };
        let is_it = !is_server_tool(node) && call.has_start(text(node, "toolUseId").as_deref());
        if is_it && call.start.is_none() {
            call_header(call, node, output);
        } else if is_it {
            call.fill_name(CHOICE, fragment(node, "name"), output);
        }
        if is_it {
            call.hold_initial(arguments_of(node.get("input")));
        }
        is_it
    }

    pub(super) fn block_delta<'a>(&mut self, payload: &Node<'a>, output: &mut Output<'a>) {
        self.ensure_started(output);
        let index = self.index(payload);
        self.blocks.flush_calls_beside(index, CHOICE, output);
        let delta = payload.get("delta").and_then(Node::as_object);
        let delta = delta.unwrap_or_default();
        let is_known = delta
            .iter()
            .any(|(key, value)| is_delta_member(key) && !value.is_null());
        for (key, delta) in delta {
            match &**key {
                _ if delta.is_null() => {}
                "text" => output.text(CHOICE, Lane::Content, delta.fragment()),
                "toolUse" => self.input_delta(index, delta, output),
                "reasoningContent" => self.reasoning_delta(index, delta, output),
                "citation" => {
                    output.entry(CHOICE, "annotations", &raw(delta));
                }
                "toolResult" => {
                    let known = self.object(index, "toolResult", CONTENT_PARTS, output);
                    if let Some(object) = known {
                        for content in entries(Some(delta)) {
                            object.push("content", raw(content));
                        }
                    }
                }
                "image" => {
                    if let Some(object) = self.object(index, "image", "images", output) {
                        for (key, value) in delta.as_object().unwrap_or_default() {
                            object.set(key, raw(value));
                        }
                    }
                }
                // Beside a known member it is a key that a gateway has added.
                _ if is_known => {}
                _ => crate::dialect::keep_unknown(CHOICE, payload, output),
            }
        }
        self.blocks.check_size(output);
    }

    fn input_delta<'a>(&mut self, index: i64, delta: &Node<'a>, output: &mut Output<'a>) {
        let input = arguments_of(delta.get("input"));
        // A gateway may write an empty member beside the one of the delta.
        let is_empty = input.as_ref().is_none_or(Fragment::is_empty) && !is_start(delta);
        if is_empty {
            return;
        }
        if let Some(call) = self.earlier_call(index, delta, output) {
            self.stop(index, output);
            self.insert(index, Block::Call(call), output);
        } else if self.begins_other_call(index, delta) || self.is_other_object(index, "toolUse") {
            self.stop(index, output);
        }
        if let None | Some(Block::Text) = self.blocks.get(index) {
            let Some(call) = self.missing_call(index, delta, output) else {
                return;
            };
            self.insert(index, Block::Call(call), output);
        }
        match self.blocks.get_mut(index) {
            Some(Block::Call(call)) => {
                add_header(call, delta, output);
                call.append(CHOICE, input, output);
            }
            Some(Block::Object { object, .. }) => {
                object.append_json("input", &input.unwrap_or_default());
            }
            Some(Block::Text | Block::Dropped | Block::Entry { .. }) | None => {}
        }
    }

    /// The call with the id of a delta, if another one has followed it at its index (T28).
    fn earlier_call<'a>(
        &mut self,
        index: i64,
        delta: &Node<'a>,
        output: &mut Output<'a>,
    ) -> Option<Call> {
        let id = text(delta, "toolUseId")?;
        let is_it = |call: &Call| call.id() == Some(&*id);
        match self.blocks.get(index) {
            // The input of a tool of the server goes on until its stop.
            Some(Block::Object { key: "toolUse", .. } | Block::Dropped) => return None,
            // A later call with the same id.
            Some(Block::Call(call)) if is_it(call) => return None,
            _ if self.blocks.stopped_call(index).is_some_and(is_it) => return None,
            _ => {}
        }
        let call = self.earlier.take(index, &id)?;
        self.calls.reopen(Stopped::Call(call), output)
    }

    /// Whether a delta has the name of a call with another id than the open one, whose stop is missing (T7, B17).
    fn begins_other_call(&mut self, index: i64, delta: &Node<'_>) -> bool {
        let Some(Block::Call(call)) = self.blocks.get_mut(index) else {
            return false;
        };
        let [id, name] = ["toolUseId", "name"].map(|key| text(delta, key));
        name.is_some() && call.is_other(id.as_deref(), name.as_deref())
    }

    /// The call of a delta that came without a start, or after the stop; `None` if nothing can be added to it.
    fn missing_call<'a>(
        &mut self,
        index: i64,
        delta: &Node<'a>,
        output: &mut Output<'a>,
    ) -> Option<Call> {
        let [id, name] = ["toolUseId", "name"].map(|key| text(delta, key));
        let stopped = self.blocks.stopped_call(index);
        let is_other = stopped.is_some_and(|call| call.is_other(id.as_deref(), name.as_deref()));
        if !is_other && let Some(stopped) = self.blocks.take_stopped(index) {
            return self.calls.reopen(stopped, output);
        }
        output.warn("A8", "a delta of a block that was not started");
        let mut call = self.calls.open();
        call_header(&mut call, delta, output);
        call.start = call.start.filter(|_| is_start(delta));
        Some(call)
    }

    fn reasoning_delta<'a>(&mut self, index: i64, delta: &Node<'a>, output: &mut Output<'a>) {
        let is_set = |key: &str| delta.get(key).is_some_and(Node::is_set);
        if (is_set("text") || is_set("signature")) && self.is_other_object(index, REASONING) {
            self.stop(index, output);
        }
        // Then they are empty members beside the input of a tool.
        let is_beside = self.is_other_object(index, REASONING);
        let is_in_call = matches!(self.blocks.get(index), Some(Block::Call(_)));
        for (key, value) in delta.as_object().unwrap_or_default() {
            match (&**key, value.fragment()) {
                ("text" | "signature", _) if is_beside || (is_in_call && !value.is_set()) => {}
                ("text", Some(text)) => {
                    if let Some(object) = self.object(index, REASONING, "reasoning_details", output)
                    {
                        object.append("text", &text);
                    }
                    output.text(CHOICE, Lane::Reasoning, Some(text));
                }
                ("signature", Some(signature)) => {
                    if let Some(object) = self.object(index, REASONING, "reasoning_details", output)
                    {
                        object.append("signature", &signature);
                    }
                }
                _ if value.is_null() => {}
                // `redactedContent`, which gateways call `data` (B12).
                _ => {
                    let json = format!("{{\"reasoningContent\":{{\"{key}\":{}}}}}", raw(value));
                    const LIST: &str = "reasoning_details";
                    if let Some(json) = self.blocks.hold_entry(LIST, json) {
                        output.entry(CHOICE, LIST, &json);
                    }
                }
            }
        }
    }

    /// Whether the open block has deltas of another kind, so that its stop is missing (B17).
    fn is_other_object(&self, index: i64, member: &str) -> bool {
        matches!(self.blocks.get(index), Some(Block::Object { key, .. }) if *key != member)
    }

    /// The object of a block, which starts with its first delta (B09). Where the block is a call, which goes on (A09), the object has
    /// an index of its own.
    fn object(
        &mut self,
        index: i64,
        key: &'static str,
        list: &'static str,
        output: &mut Output<'_>,
    ) -> Option<&mut Object> {
        let index = match self.blocks.get(index) {
            Some(Block::Call(_)) => beside(index),
            _ => index,
        };
        if let None | Some(Block::Text) = self.blocks.get(index) {
            let object = Object::default();
            let block = Block::Object { list, key, object };
            self.insert(index, block, output);
        }
        match self.blocks.get_mut(index)? {
            Block::Object { object, .. } => Some(object),
            Block::Text | Block::Dropped | Block::Call(_) | Block::Entry { .. } => None,
        }
    }

    fn insert(&mut self, index: i64, block: Block, output: &mut Output<'_>) {
        if self.blocks.stopped_call(index).is_some()
            && let Some(Stopped::Call(call)) = self.blocks.take_stopped(index)
        {
            self.earlier.keep(index, call);
        }
        if let Some((oldest, block)) = self.blocks.insert(index, block) {
            self.close(oldest, block, output);
        }
        self.blocks.check_size(output);
    }
}

/// The index of an object whose deltas have that of an open call. No server counts so far.
pub(super) fn beside(index: i64) -> i64 {
    index ^ i64::MIN
}

/// Reports what the start of a call says.
fn call_header<'a>(call: &mut Call, node: &Node<'a>, output: &mut Output<'a>) {
    let header = ToolCallUpdate {
        id: text(node, "toolUseId"),
        name: fragment(node, "name"),
        extra: other_fields(node, &["toolUseId", "name", "input", "type"]),
        ..ToolCallUpdate::default()
    };
    call.begin(CHOICE, header, output);
}

/// Reports what a later delta says about its call (T12, T18).
fn add_header<'a>(call: &mut Call, delta: &Node<'a>, output: &mut Output<'a>) {
    if call.start.is_none() && is_start(delta) {
        return call_header(call, delta, output);
    }
    call.fill_id(CHOICE, text(delta, "toolUseId"), output);
    call.fill_name(CHOICE, fragment(delta, "name"), output);
}

/// The members of the union `ContentBlockStart`.
fn is_member(key: &str) -> bool {
    matches!(key, "toolUse" | "toolResult" | "image")
}

/// The members of the union `ContentBlockDelta`.
fn is_delta_member(key: &str) -> bool {
    matches!(
        key,
        "text" | "toolUse" | "reasoningContent" | "citation" | "toolResult" | "image"
    )
}

/// Whether a delta with the id or the name of its call is its start, too.
fn is_start(delta: &Node<'_>) -> bool {
    text(delta, "toolUseId").is_some() || text(delta, "name").is_some()
}

/// Whether the server runs the tool itself (B11).
pub(super) fn is_server_tool(node: &Node<'_>) -> bool {
    text(node, "type").as_deref() == Some("server_tool_use")
}

fn object(list: &'static str, key: &'static str, start: &Node<'_>) -> Block {
    Block::Object {
        list,
        key,
        object: Object::new(start),
    }
}
