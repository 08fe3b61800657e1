//! Which item an event belongs to (P05, P06).

use serde_json::Value;

use super::Reader;

#[derive(Default)]
pub(super) struct Item {
    pub(super) index: Option<i64>,
    /// P29: the index of later events of the item.
    pub(super) moved_to: Option<i64>,
    pub(super) id: String,
    /// P06: a call of which an event without an index had its id.
    is_keyed_by_id: bool,
    pub(super) was_added: bool,
    pub(super) call: Option<usize>,
    pub(super) reasoning: Option<&'static str>,
    pub(super) call_id: Option<String>,
    pub(super) is_done: bool,
    /// The citations that have arrived, with their parts.
    pub(super) citations: Vec<(i64, Value)>,
    /// The list and the place of its entry, and whether a later value replaces its fields.
    pub(super) kept: Option<(&'static str, usize, bool)>,
    /// The type.
    pub(super) kind: String,
    pub(super) described: bool,
    pub(super) lane: &'static str,
}

impl Item {
    /// Whether the start of an item with this id is that of another one.
    fn is_before(&self, id: &str) -> bool {
        let is_text = matches!(self.lane, "message" | "reasoning");
        is_text && self.was_added && !id.is_empty() && self.id != id
    }

    /// P29: whether an event with the item's index is not one of it.
    fn is_another(&self, event: &Event<'_>) -> bool {
        let is_call = event.lane == "call";
        if (self.lane == "call") != is_call {
            return true;
        }
        if let (Some(own), Some(other)) = (self.call_id.as_deref(), event.call_id)
            && is_call
        {
            return own != other;
        }
        let is_next = (event.is_start || !self.was_added)
            && !self.id.is_empty()
            && !event.id.is_empty()
            && self.id != event.id;
        self.is_done && (self.lane != event.lane || is_next)
    }
}

/// What an event says about its item.
struct Event<'e> {
    id: &'e str,
    call_id: Option<&'e str>,
    lane: &'static str,
    is_start: bool,
}

impl Reader {
    pub(super) fn item(&mut self, value: &Value, id: &str, lane: &'static str) -> usize {
        let index = value["output_index"].as_i64();
        let own = if value["item"].is_object() {
            &value["item"]
        } else {
            value
        };
        let call_id = own["call_id"].as_str();
        let is_start = value["type"] == "response.output_item.added";
        let event = Event {
            id,
            call_id,
            lane,
            is_start,
        };
        let has_index = |item: &Item| {
            index.is_some()
                && (item.index == index || item.moved_to == index)
                && !item.is_another(&event)
        };
        let has_id = |item: &Item| !id.is_empty() && item.id == id;
        let has_call_id = |item: &Item| call_id.is_some() && item.call_id.as_deref() == call_id;
        let is_other_call =
            |item: &Item| call_id.is_some() && item.call_id.is_some() && !has_call_id(item);
        let found = match index {
            Some(_) => self
                .items
                .iter()
                .rposition(|item| has_index(item) && has_id(item))
                .or_else(|| self.items.iter().rposition(has_index))
                .or_else(|| {
                    let without = |item: &Item| item.index.is_none() && has_id(item);
                    self.items.iter().rposition(without)
                }),
            None => {
                let is_it = |item: &Item| has_id(item) && !is_other_call(item);
                self.items.iter().rposition(is_it)
            }
        };
        let by_call = |item: &Item| {
            call_id.is_some()
                && item.call_id.as_deref() == call_id
                && (index.is_none() || item.index.is_none())
        };
        let is_other = |item: &Item| call_id.is_some() && item.call_id.is_some() && !by_call(item);
        let open = |item: &Item| {
            !item.is_done
                && item.lane == lane
                && (index.is_none() || item.index.is_none())
                && !is_other(item)
                && !(is_start && item.is_before(id))
                && !(item.is_keyed_by_id && !id.is_empty() && item.id != id)
        };
        let found = found.or_else(|| self.items.iter().rposition(by_call));
        let found = found.or_else(|| self.items.iter().rposition(open));
        let has_moved = |item: &Item| {
            let is_it = has_id(item) || has_call_id(item);
            is_it && !is_start && !item.is_done && item.lane == lane && !is_other_call(item)
        };
        let found = found.or_else(|| self.items.iter().rposition(has_moved));
        let at = found.unwrap_or_else(|| {
            self.items.push(Item {
                lane,
                ..Item::default()
            });
            self.items.len() - 1
        });
        let item = &mut self.items[at];
        if item.index.is_some() && item.index != index {
            item.moved_to = index.or(item.moved_to);
        }
        item.index = item.index.or(index);
        if item.id.is_empty() {
            id.clone_into(&mut item.id);
        }
        item.is_keyed_by_id |=
            item.lane == "call" && index.is_none() && !is_start && !id.is_empty() && item.id == id;
        at
    }
}
