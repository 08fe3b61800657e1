//! Events that only continue a text or the arguments of an item that is open.

use super::{
    Responses, is_response,
    item::{Item, ItemKind, ReasoningKind, part_of},
};
use crate::{
    Fragment,
    dialect::{
        continuation::{Continuation, ItemLane, ItemPlace, Place},
        reader::{Lane, WireEvent, text},
    },
    node::Node,
};

/// Fields that are not read. The id is read only if the item has none.
const UNREAD: [&str; 3] = ["sequence_number", "obfuscation", "item_id"];

impl Responses {
    pub(super) fn item_continuation<'n, 'a>(
        &self,
        event: &WireEvent<'n, 'a>,
    ) -> Option<Continuation<'n, 'a>> {
        let node = event.node;
        let index = node.get("output_index").and_then(Node::as_i64_lenient)?;
        if self.shares_index || node.get("call_id").is_some() {
            return None; // the ids count, too
        }
        let part = part_of(node);
        let lane = |lane: Lane, is_summary: Option<bool>| ItemLane::Text {
            lane,
            is_summary,
            part,
        };
        let kind = event.kind()?;
        let lane = match kind.strip_prefix("response.")? {
            "output_text.delta" => lane(Lane::Content, None),
            "refusal.delta" => lane(Lane::Refusal, None),
            "reasoning_text.delta" => lane(Lane::Reasoning, Some(false)),
            "reasoning_summary_text.delta" => lane(Lane::Reasoning, Some(true)),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                match &self.item_at(index)?.kind {
                    ItemKind::Call(call) => ItemLane::Arguments(call.ordinal),
                    ItemKind::Message | ItemKind::Reasoning | ItemKind::Other => return None,
                }
            }
            _ => return None,
        };
        let has_id = text(node, "item_id").is_some();
        if !has_id && node.get("item_id").is_some() {
            return None; // an empty id, in whose place a template would accept another one
        }
        let place = Place::Item(ItemPlace {
            index,
            has_id,
            lane,
        });
        let continuation = Continuation::new(place, node.get("delta")?);
        Some(Continuation {
            unread: UNREAD.iter().filter_map(|key| node.get(key)).collect(),
            ..continuation
        })
        .filter(|_| !is_response(node))
    }

    /// Takes a piece of an item that is open, as `delta` and `arguments_delta` do.
    pub(super) fn continues_item(&mut self, place: ItemPlace, text: &str) -> bool {
        let mut items = self.items.iter_mut().rev();
        let item = items.find(|item| item.has_index(place.index));
        // An item without an id would be given that of the event. Of several with this index the id decides, and what follows a
        // complete one may be the next.
        let is_single = self.has_started && !self.shares_index;
        let is_open =
            |item: &&mut Item| is_single && !item.is_done && (item.has_id() || !place.has_id);
        let Some(item) = item.filter(is_open) else {
            return false;
        };
        let piece = Fragment::from(text);
        match (place.lane, &mut item.kind) {
            (ItemLane::Arguments(ordinal), ItemKind::Call(call)) if call.ordinal == ordinal => {
                if call.compares_next() {
                    return false;
                }
                call.note(text);
            }
            (ItemLane::Arguments(_), _) | (_, ItemKind::Call(_)) => return false,
            (
                ItemLane::Text {
                    lane,
                    is_summary,
                    part,
                },
                _,
            ) => {
                if is_summary
                    .is_some_and(|is_summary| !item.began_with(ReasoningKind::of(is_summary)))
                {
                    return false;
                }
                let part = item.number_of(lane, part);
                if let Some(seen) = item.seen(lane, part) {
                    if seen.is_ahead() {
                        return false;
                    }
                    seen.push(&piece);
                }
                self.arrived.note(lane);
            }
        }
        true
    }

    pub(super) fn item_at(&self, index: i64) -> Option<&Item> {
        self.items.iter().rev().find(|item| item.has_index(index))
    }
}
