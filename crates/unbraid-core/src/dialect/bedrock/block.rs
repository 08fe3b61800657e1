//! The blocks of ConverseStream.

use super::{Bedrock, CHOICE};
use crate::{
    ToolCallUpdate,
    chunk::CONTENT_PARTS,
    dialect::{
        blocks::Block,
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
        if let Some(open) = self.blocks.remove(index) {
            self.close(open, output);
        }
        let start = payload.get("start").and_then(Node::as_object);
        for (key, start) in start.unwrap_or_default() {
            let block = match &**key {
                "toolUse" if !is_server_tool(start) => self.call_start(start, output),
                "toolUse" => object(CONTENT_PARTS, "toolUse", start),
                "toolResult" => object(CONTENT_PARTS, "toolResult", start),
                "image" => object("images", "image", start),
                _ => Block::Text,
            };
            self.insert(index, block, output);
        }
    }

    pub(super) fn call_start<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) -> Block {
        let call = self.calls.open();
        output.call(
            CHOICE,
            ToolCallUpdate {
                wire_index: Some(call.ordinal),
                id: text(node, "toolUseId"),
                name: fragment(node, "name"),
                extra: other_fields(node, &["toolUseId", "name", "input", "type"]),
                ..ToolCallUpdate::default()
            },
        );
        Block::Call(call)
    }

    pub(super) fn block_delta<'a>(&mut self, payload: &Node<'a>, output: &mut Output<'a>) {
        self.ensure_started(output);
        let index = self.index(payload);
        let delta = payload.get("delta").and_then(Node::as_object);
        for (key, delta) in delta.unwrap_or_default() {
            match &**key {
                "text" => output.text(CHOICE, Lane::Content, delta.fragment()),
                "toolUse" => self.input_delta(index, delta, output),
                "reasoningContent" => self.reasoning_delta(index, delta, output),
                "citation" if !delta.is_null() => {
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
                _ if delta.is_null() => {}
                _ => crate::dialect::keep_unknown(CHOICE, payload, output),
            }
        }
        self.blocks.check_size(output);
    }

    fn input_delta<'a>(&mut self, index: i64, delta: &Node<'a>, output: &mut Output<'a>) {
        if self.blocks.get_mut(index).is_none() {
            output.warn("A8", "a delta of a block that was not started");
            let block = self.call_start(delta, output);
            self.insert(index, block, output);
        }
        let input = arguments_of(delta.get("input"));
        match self.blocks.get_mut(index) {
            Some(Block::Call(call)) => call.append(CHOICE, input, output),
            Some(Block::Object { object, .. }) => {
                let input = input.map(|input| input.text).unwrap_or_default();
                object.append_json("input", &input);
            }
            Some(Block::Text) | None => {}
        }
    }

    fn reasoning_delta<'a>(&mut self, index: i64, delta: &Node<'a>, output: &mut Output<'a>) {
        for (key, value) in delta.as_object().unwrap_or_default() {
            match (&**key, value.fragment()) {
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
                    output.entry(CHOICE, "reasoning_details", &json);
                }
            }
        }
    }

    /// The object of a block, which starts with its first delta (B09).
    fn object(
        &mut self,
        index: i64,
        key: &'static str,
        list: &'static str,
        output: &mut Output<'_>,
    ) -> Option<&mut Object> {
        if self.blocks.get_mut(index).is_none() {
            let object = Object::default();
            let block = Block::Object { list, key, object };
            self.insert(index, block, output);
        }
        match self.blocks.get_mut(index)? {
            Block::Object { object, .. } => Some(object),
            Block::Text | Block::Call(_) => None,
        }
    }

    fn insert(&mut self, index: i64, block: Block, output: &mut Output<'_>) {
        if let Some(oldest) = self.blocks.insert(index, block) {
            self.close(oldest, output);
        }
        self.blocks.check_size(output);
    }
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
