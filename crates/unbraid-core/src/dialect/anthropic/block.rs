//! The blocks of a message: their starts and their deltas.

use std::borrow::Cow;

use super::{Anthropic, Block, CHOICE, THINKING};
use crate::{
    ToolCallUpdate,
    chunk::CONTENT_PARTS,
    dialect::{
        calls::Call,
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
        if self.begun_to.is_some_and(|last| index <= last) {
            return output.second_message();
        }
        self.last_index = self.last_index.max(Some(index));
        let kind = text(block, "type");
        self.has_arrived |= !is_empty_start(kind.as_deref(), block);
        if kind.as_deref() == Some("tool_use") && self.call_restart(index, block, output) {
            return;
        }
        // The arguments that a call's start brought are complete once another block starts (A07).
        for call in self.blocks.calls() {
            call.flush(CHOICE, output);
        }
        self.stop(index, output);
        let block = match kind.as_deref() {
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
            // Some gateways write a text in place of its block.
            None if block.as_str().is_some() => {
                output.text(CHOICE, Lane::Content, block.fragment());
                Block::Text
            }
            // Tools that the server runs, their results, and whatever is added later (A13, A25).
            Some(_) | None => object(CONTENT_PARTS, block),
        };
        self.insert(index, block, output);
    }

    fn call_start<'a>(&mut self, block: &Node<'a>, output: &mut Output<'a>) -> Block {
        let mut call = self.calls.open();
        call_header(&mut call, block, output);
        Block::Call(call)
    }

    /// Reads the start of a call that is open: one that its first delta has overtaken, or that comes twice. False for any other.
    fn call_restart<'a>(&mut self, index: i64, block: &Node<'a>, output: &mut Output<'a>) -> bool {
        let Some(Block::Call(call)) = self.blocks.get_mut(index) else {
            return false;
        };
        let is_it = call.has_start(text(block, "id").as_deref());
        if is_it && call.start.is_none() {
            call_header(call, block, output);
        } else if is_it {
            call.fill_name(CHOICE, fragment(block, "name"), output);
            call.hold_initial(arguments_of(block.get("input")));
        }
        is_it
    }

    pub(super) fn block_delta<'a>(
        &mut self,
        event: &Node<'a>,
        delta: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let kind = text(delta, "type");
        let kind = kind.as_deref().unwrap_or_else(|| implied_kind(delta));
        let index = self.index(event);
        self.ensure_started();
        if is_blank(kind, delta) {
            return;
        }
        self.has_arrived |= !is_empty(kind, delta);
        let is_open = match self.blocks.get(index) {
            // The start of these arguments was lost.
            Some(Block::Text) => kind != "input_json_delta",
            Some(_) => true,
            None => false,
        };
        if !is_open {
            if is_empty(kind, delta) {
                return;
            }
            self.blocks.flush_calls_beside(index, CHOICE, output);
            let Some(block) = self.missing_block(index, kind, output) else {
                return;
            };
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
        let piece = arguments_of(delta.get("partial_json"));
        match self.blocks.get_mut(index) {
            Some(Block::Call(call)) => call.append(CHOICE, piece, output),
            // The arguments of a tool that the server runs (A13).
            Some(Block::Object { object, .. }) => {
                object.append_json("input", &piece.unwrap_or_default());
            }
            Some(Block::Text | Block::Dropped | Block::Entry { .. }) | None => {}
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
                // Not absent in others: a compaction that failed has a content of null.
                None if value.is_null() && matches!(kind, "thinking_delta" | "signature_delta") => {
                }
                // The signature is sent as a whole, and so is what has another type than text.
                Some(piece) if kind != "signature_delta" || key != "signature" => {
                    object.append(key, &piece);
                }
                Some(_) | None => object.set(key, raw(value)),
            }
        }
    }

    /// The block of a delta that came without a start, or after the stop (A08); `None` if nothing can be added to it.
    fn missing_block(&mut self, index: i64, kind: &str, output: &mut Output<'_>) -> Option<Block> {
        if kind == "input_json_delta"
            && let Some(stopped) = self.blocks.take_stopped(index)
        {
            return self.calls.reopen(stopped, output).map(Block::Call);
        }
        output.warn("A8", "a delta of a block that was not started");
        let block = match kind {
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
        };
        Some(block)
    }

    fn insert(&mut self, index: i64, block: Block, output: &mut Output<'_>) {
        if let Some((oldest, block)) = self.blocks.insert(index, block) {
            self.close(oldest, block, output);
        }
        self.blocks.check_size(output);
    }
}

/// Reports what the start of a call says.
fn call_header<'a>(call: &mut Call, block: &Node<'a>, output: &mut Output<'a>) {
    let header = ToolCallUpdate {
        id: text(block, "id"),
        name: fragment(block, "name"),
        extra: other_fields(block, &["type", "id", "name", "input"]),
        ..ToolCallUpdate::default()
    };
    call.begin(CHOICE, header, output);
    call.hold_initial(arguments_of(block.get("input")));
}

/// The type of a delta that names none, by its field.
fn implied_kind(delta: &Node<'_>) -> &'static str {
    const KINDS: [(&str, &str); 5] = [
        ("text", "text_delta"),
        ("thinking", "thinking_delta"),
        ("partial_json", "input_json_delta"),
        ("signature", "signature_delta"),
        ("citation", "citations_delta"),
    ];
    let has = |key: &str| delta.get(key).is_some_and(Node::is_set);
    let known = KINDS.iter().find(|(key, _)| has(key));
    known.map_or("", |(_, kind)| *kind)
}

/// Whether a delta without a type, or with that of a signature, has nothing.
fn is_blank(kind: &str, delta: &Node<'_>) -> bool {
    let Some(fields) = delta.as_object() else {
        return !delta.is_set();
    };
    matches!(kind, "" | "signature_delta")
        && !fields
            .iter()
            .any(|(key, value)| key != "type" && value.is_set())
}

/// Whether the start of a block brings nothing yet: a text without text.
fn is_empty_start(kind: Option<&str>, block: &Node<'_>) -> bool {
    let fields = block.as_object().unwrap_or_default();
    matches!(kind, Some("text" | "thinking"))
        && !fields
            .iter()
            .any(|(key, value)| key != "type" && value.has_content())
}

/// Whether a delta brings nothing, so that it opens no block.
fn is_empty(kind: &str, delta: &Node<'_>) -> bool {
    let piece = match kind {
        "text_delta" => fragment(delta, "text"),
        "thinking_delta" => fragment(delta, "thinking"),
        "input_json_delta" => arguments_of(delta.get("partial_json")),
        _ => return false,
    };
    piece.is_none_or(|piece| piece.is_empty())
}

fn object(list: &'static str, block: &Node<'_>) -> Block {
    Block::Object {
        list,
        key: "",
        object: Object::new(block),
    }
}
