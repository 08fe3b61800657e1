//! The entries of the lists, of which a later value counts (P14).

use serde_json::Value;

use super::{Reader, list_of};
use crate::dialects::is_set;

impl Reader {
    /// Adds an item to a list, or takes from it what is set there if it is in the list.
    pub(super) fn keep(&mut self, at: usize, list: &'static str, item: &Value) {
        let entries = self.choice.lists.entry(list).or_default();
        if let Some((_, place, is_held)) = self.items[at].kept {
            let fields = item.as_object().into_iter().flatten();
            for (key, value) in fields.filter(|(_, value)| is_held && is_set(value)) {
                entries[place][key] = value.clone();
            }
            return;
        }
        let may_change = is_set(&item["encrypted_content"])
            || is_set(&item["fingerprint"])
            || (item["type"] == "image_generation_call" && !is_set(&item["result"]));
        if may_change {
            self.held.insert(list);
        }
        entries.push(item.clone());
        let place = entries.len() - 1;
        self.items[at].kept = Some((list, place, self.held.contains(list)));
    }

    /// Adds an item of the final output to its list.
    pub(super) fn keep_last(&mut self, at: usize, item: &Value) {
        match item["type"].as_str().unwrap_or_default() {
            "reasoning" => self.details(at, item),
            kind => self.keep(at, list_of(kind), item),
        }
    }

    /// Notes the start of an item, unless the item has ended.
    pub(super) fn note_start(&mut self, at: usize, list: &'static str, item: &Value) {
        self.started.retain(|(known, ..)| *known != at);
        if !self.items[at].is_done && self.items[at].kept.is_none() {
            self.started.push((at, list, item.clone()));
        }
    }

    /// An item has ended.
    pub(super) fn end(&mut self, at: usize) {
        self.items[at].is_done = true;
        self.started.retain(|(known, ..)| *known != at);
    }

    /// P18: what has arrived of the items that did not end.
    pub(super) fn keep_started(&mut self) {
        for (_, list, start) in std::mem::take(&mut self.started) {
            self.choice.list(list, start);
        }
    }
}
