//! Which item an event belongs to (P05, P06).

use serde_json::Value;

use super::{
    super::{entries, text},
    Reader,
};

#[derive(Default)]
pub(super) struct Item {
    pub(super) index: Option<i64>,
    pub(super) id: String,
    /// Another id that events of its texts have.
    pub(super) alias: String,
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
    fn is_named(&self, id: &str) -> bool {
        !id.is_empty() && (self.id == id || self.alias == id)
    }

    /// Whether an id is another one than that of this text. Calls have ids of their own.
    fn has_other_id(&self, id: &str) -> bool {
        let is_text = matches!(self.lane, "message" | "reasoning");
        let has_both = !id.is_empty() && !self.id.is_empty();
        is_text && self.index.is_none() && has_both && !self.is_named(id)
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
            None if !id.is_empty() => self.items.iter().rposition(|item| item.is_named(id)),
            None => None,
        };
        let is_start = value["type"] == "response.output_item.added";
        let is_other_text = |at: usize| {
            let item = &self.items[at];
            let mut pieces = self.pieces.iter();
            let has_text = pieces.any(|((of, ..), piece)| *of == at && !piece.is_empty());
            let is_new = is_start || has_text || !item.alias.is_empty();
            index.is_none() && item.has_other_id(id) && is_new
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
        };
        let found = found.or_else(|| self.items.iter().rposition(by_call));
        let found = found.or_else(|| {
            let mut all = (0..self.items.len()).rev();
            all.find(|at| open(&self.items[*at]) && !is_other_text(*at))
        });
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
        } else if index.is_none() && item.has_other_id(id) && item.alias.is_empty() {
            id.clone_into(&mut item.alias);
        }
        at
    }

    /// Gives texts that came with another id, and without the start of their item, the id of the complete item.
    pub(super) fn adopt(&mut self, event: &Value, id: &str, item: &Value) {
        let lane = text(item, "type").to_owned();
        if event["output_index"].is_i64() || self.items.iter().any(|item| item.is_named(id)) {
            return;
        }
        let lists = ["summary", "content"].map(|key| entries(&item[key]));
        let list = lists.into_iter().find(|list| !list.is_empty());
        let parts = list.unwrap_or_default().into_iter();
        let parts = parts.filter(|part| part["type"] != "refusal");
        let whole: Vec<&str> = parts.map(|part| text(part, "text")).collect();
        let is_it = |at: &usize| {
            let known = &self.items[*at];
            let mut own: Vec<(i64, String)> = Vec::new();
            let pieces = self.pieces.iter();
            for ((.., part), piece) in pieces.filter(|((of, lane, _), piece)| {
                of == at && *lane != "refusal" && !piece.is_empty()
            }) {
                match own.iter_mut().find(|(known, _)| known == part) {
                    Some((_, text)) => text.push_str(piece),
                    None => own.push((*part, piece.clone())),
                }
            }
            let begins = match &own[..] {
                [] => false,
                [(_, text)] => whole.concat().starts_with(&**text),
                own => {
                    let mut both = own.iter().zip(&whole);
                    own.len() <= whole.len()
                        && both.all(|((_, text), part)| part.starts_with(&**text))
                }
            };
            known.lane == lane
                && !known.is_done
                && !known.was_added
                && known.alias.is_empty()
                && known.has_other_id(id)
                && begins
        };
        if let Some(at) = (0..self.items.len()).rev().find(is_it) {
            id.clone_into(&mut self.items[at].alias);
        }
    }
}
