//! The blocks of a message: their starts and their deltas.

use std::borrow::Cow;

use super::{Anthropic, Block, CHOICE, THINKING};
use crate::{
    ToolCallUpdate,
    chunk::CONTENT_PARTS,
    dialect::{
        object::Object,
        reader::{Lane, Output, arguments_of, entries, fragment, other_fields, raw, text},
    },
    node::Node,
};

impl Anthropic {
    pub(super) fn block_start<'a>(
        &mut self,
        index: i64,
        block: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        self.ensure_started();
        // The arguments that a call's start brought are complete once another block starts (A07).
        for call in self.blocks.calls() {
            call.flush(CHOICE, output);
        }
        if let Some(open) = self.blocks.remove(index) {
            self.close(open, output);
        }
        let block = match text(block, "type").as_deref() {
            Some("text") => {
                output.text(CHOICE, Lane::Content, fragment(block, "text"));
                for citation in entries(block.get("citations")) {
                    output.entry(CHOICE, "annotations", &raw(citation));
                }
                Block::Text
            }
            Some("thinking") => {
                output.text(CHOICE, Lane::Reasoning, fragment(block, "thinking"));
                object(THINKING, block)
            }
            Some("redacted_thinking") => object(THINKING, block),
            Some("tool_use") => self.call_start(block, output),
            // Tools that the server runs, their results, and whatever is added later (A13, A25).
            Some(_) | None => object(CONTENT_PARTS, block),
        };
        self.insert(index, block, output);
    }

    fn call_start<'a>(&mut self, block: &Node<'a>, output: &mut Output<'a>) -> Block {
        let mut call = self.calls.open();
        output.call(
            CHOICE,
            ToolCallUpdate {
                wire_index: Some(call.ordinal),
                id: text(block, "id"),
                name: fragment(block, "name"),
                extra: other_fields(block, &["type", "id", "name", "input"]),
                ..ToolCallUpdate::default()
            },
        );
        let initial = arguments_of(block.get("input"));
        call.initial = initial.map(|initial| initial.text.into_owned());
        Block::Call(call)
    }

    pub(super) fn block_delta<'a>(
        &mut self,
        event: &Node<'a>,
        delta: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let kind = text(delta, "type");
        let kind = kind.as_deref().unwrap_or_default();
        let index = self.index(event);
        self.ensure_started();
        if self.blocks.get_mut(index).is_none() {
            output.warn("A8", "a delta of a block that was not started");
            let block = self.missing_block(kind, output);
            self.insert(index, block, output);
        }
        match kind {
            "text_delta" => {
                if let Some(Block::Call(_)) = self.blocks.get_mut(index) {
                    output.warn("A9", "text arrived inside a call; it is content");
                }
                output.text(CHOICE, Lane::Content, fragment(delta, "text"));
            }
            "thinking_delta" => {
                let thinking = fragment(delta, "thinking");
                if let (Some(Block::Object { object, .. }), Some(thinking)) =
                    (self.blocks.get_mut(index), &thinking)
                {
                    object.append("thinking", thinking);
                }
                output.text(CHOICE, Lane::Reasoning, thinking);
            }
            "citations_delta" => {
                if let Some(citation) = delta.get("citation").filter(|node| !node.is_null()) {
                    output.entry(CHOICE, "annotations", &raw(citation));
                }
            }
            "input_json_delta" => self.input_delta(index, delta, output),
            _ => self.object_delta(index, kind, delta, output),
        }
        self.blocks.check_size(output);
    }

    fn input_delta<'a>(&mut self, index: i64, delta: &Node<'a>, output: &mut Output<'a>) {
        let piece = fragment(delta, "partial_json");
        match self.blocks.get_mut(index) {
            Some(Block::Call(call)) => call.append(CHOICE, piece, output),
            // The arguments of a tool that the server runs (A13).
            Some(Block::Object { object, .. }) => {
                let piece = piece.map(|piece| piece.text).unwrap_or_default();
                object.append_json("input", &piece);
            }
            Some(Block::Text) | None => {}
        }
    }

    /// Adds the fields of any other delta to its block.
    fn object_delta<'a>(
        &mut self,
        index: i64,
        kind: &str,
        delta: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let Some(Block::Object { object, .. }) = self.blocks.get_mut(index) else {
            return crate::dialect::keep_unknown(CHOICE, delta, output);
        };
        let fields = delta.as_object().unwrap_or_default();
        for (key, value) in fields.iter().filter(|(key, _)| key != "type") {
            match value.fragment() {
                // The signature is sent as a whole, and so is what has another type than text.
                Some(piece) if kind != "signature_delta" => object.append(key, &piece),
                Some(_) | None => object.set(key, raw(value)),
            }
        }
    }

    /// The block of a delta that came without a start (A08).
    fn missing_block(&mut self, kind: &str, output: &mut Output<'_>) -> Block {
        match kind {
            "input_json_delta" => {
                let call = self.calls.open();
                output.call(
                    CHOICE,
                    ToolCallUpdate::default().with_wire_index(call.ordinal),
                );
                Block::Call(call)
            }
            "thinking_delta" | "signature_delta" => {
                let mut object = Object::default();
                object.set("type", Cow::Borrowed("\"thinking\""));
                object.set("thinking", Cow::Borrowed("\"\""));
                Block::Object {
                    list: THINKING,
                    key: "",
                    object,
                }
            }
            _ => Block::Text,
        }
    }

    fn insert(&mut self, index: i64, block: Block, output: &mut Output<'_>) {
        if let Some(oldest) = self.blocks.insert(index, block) {
            self.close(oldest, output);
        }
        self.blocks.check_size(output);
    }
}

fn object(list: &'static str, block: &Node<'_>) -> Block {
    Block::Object {
        list,
        key: "",
        object: Object::new(block),
    }
}
