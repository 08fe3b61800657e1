//! Deltas that only continue the text, the thinking or the arguments of an open block.

use super::{Anthropic, Block};
use crate::{
    Fragment,
    dialect::{
        continuation::{BlockLane, Continuation, Place},
        reader::{WireEvent, text},
    },
    node::Node,
};

impl Anthropic {
    pub(super) fn block_continuation<'n, 'a>(
        &self,
        event: &WireEvent<'n, 'a>,
    ) -> Option<Continuation<'n, 'a>> {
        let node = event.node;
        let delta = node.get("delta")?;
        if event.kind()? != "content_block_delta" {
            return None;
        }
        let index = node.get("index").and_then(Node::as_i64_lenient)?;
        let (lane, key) = match (&*text(delta, "type")?, self.blocks.get(index)?) {
            ("text_delta", Block::Text | Block::Dropped | Block::Object { .. }) => {
                (BlockLane::Text, "text")
            }
            ("thinking_delta", _) => (BlockLane::Thinking, "thinking"),
            ("input_json_delta", Block::Call(call)) => {
                (BlockLane::Arguments(call.ordinal), "partial_json")
            }
            _ => return None,
        };
        let place = Place::Block { index, lane };
        Some(Continuation::new(place, delta.get(key)?))
    }

    /// Takes a piece of a block that is open, as `block_delta` does.
    pub(super) fn continues_block(&mut self, index: i64, lane: BlockLane, text: &str) -> bool {
        if !self.blocks.has_room(text.len()) {
            return false;
        }
        match (lane, self.blocks.get_mut(index)) {
            (BlockLane::Text, Some(Block::Text | Block::Dropped | Block::Object { .. })) => {}
            (BlockLane::Thinking, Some(Block::Object { object, .. })) => {
                object.append("thinking", &Fragment::from(text));
            }
            (BlockLane::Thinking, Some(_)) => {}
            (BlockLane::Arguments(ordinal), Some(Block::Call(call))) if call.ordinal == ordinal => {
                if call.compares_next() {
                    return false;
                }
                call.note(text);
            }
            _ => return false,
        }
        self.ensure_started();
        self.has_arrived = true;
        true
    }
}
