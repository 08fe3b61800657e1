//! Which item an event belongs to (P05, P06).

use serde_json::Value;

use super::Reader;

#[derive(Default)]
pub(super) struct Item {
    pub(super) index: Option<i64>,
    pub(super) id: String,
    pub(super) was_added: bool,
    pub(super) call: Option<usize>,
    pub(super) reasoning: Option<&'static str>,
    pub(super) call_id: Option<String>,
    pub(super) is_done: bool,
    pub(super) annotated: bool,
    pub(super) described: bool,
    pub(super) lane: &'static str,
}

impl Item {
    /// Whether the start of an item with this id is that of another one.
    fn is_before(&self, id: &str) -> bool {
        let is_text = matches!(self.lane, "message" | "reasoning");
        is_text && self.was_added && !id.is_empty() && self.id != id
    }
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
        let found = match index {
            Some(_) => self.items.iter().rposition(|item| item.index == index),
            None if !id.is_empty() => self.items.iter().rposition(|item| item.id == id),
            None => None,
        };
        let is_start = value["type"] == "response.output_item.added";
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
        };
        let found = found.or_else(|| self.items.iter().rposition(by_call));
        let found = found.or_else(|| self.items.iter().rposition(open));
        let at = found.unwrap_or_else(|| {
            self.items.push(Item {
                lane,
                ..Item::default()
            });
            self.items.len() - 1
        });
        let item = &mut self.items[at];
        item.index = item.index.or(index);
        if item.id.is_empty() {
            id.clone_into(&mut item.id);
        }
        at
    }
}
