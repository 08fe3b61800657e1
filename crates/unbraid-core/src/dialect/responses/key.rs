//! Which item an event belongs to (P05, P06).

use std::borrow::Cow;

use super::{
    Responses,
    item::{Item, ItemKind},
};
use crate::{
    dialect::{
        calls::Call,
        reader::{Lane, text},
    },
    limits::{MAX_ENTRIES, MAX_NAME_BYTES},
    node::Node,
};

/// What an event says about its item.
pub(super) struct Key<'a> {
    index: Option<i64>,
    id: Option<Cow<'a, str>>,
    /// The id of a call, if the event has it.
    call_id: Option<Cow<'a, str>>,
    /// Whether only the index counts.
    is_exact: bool,
    /// Whether the event is the start of the item.
    is_start: bool,
}

impl<'a> Key<'a> {
    /// The key of an event of a part.
    pub(super) fn of_event(event: &Node<'a>) -> Self {
        Self {
            index: event.get("output_index").and_then(Node::as_i64_lenient),
            id: text(event, "item_id"),
            call_id: text(event, "call_id"),
            is_exact: false,
            is_start: false,
        }
    }

    /// The key of an event that contains its item.
    pub(super) fn of_item(event: &Node<'a>, item: &Node<'a>) -> Self {
        Self {
            id: text(item, "id").or_else(|| text(event, "item_id")),
            call_id: text(item, "call_id"),
            ..Self::of_event(event)
        }
    }

    /// The same for the start of an item.
    pub(super) fn of_start(event: &Node<'a>, item: &Node<'a>) -> Self {
        Self {
            is_start: true,
            ..Self::of_item(event, item)
        }
    }

    /// The key of an item of which nothing but its position is known.
    pub(super) fn of_position(position: i64) -> Self {
        Self {
            index: Some(position),
            id: None,
            call_id: None,
            is_exact: true,
            is_start: false,
        }
    }
}

impl Item {
    /// Whether the start of an item is that of another one. Some servers have other ids in the events of a text than in its item,
    /// so an id alone shows nothing.
    fn is_before(&self, key: &Key<'_>) -> bool {
        let is_text = matches!(self.kind, ItemKind::Message | ItemKind::Reasoning);
        is_text && key.is_start && self.was_added && key.id.is_some() && self.id != key.kept_id()
    }

    fn is_kind(&self, kind: &ItemKind) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(kind)
    }

    fn has_key_id(&self, key: &Key<'_>) -> bool {
        key.id.is_some() && self.id.as_deref() == key.id.as_deref()
    }

    fn has_key_call_id(&self, key: &Key<'_>) -> bool {
        key.call_id.is_some() && self.call_id.as_deref() == key.call_id.as_deref()
    }

    /// Whether it is a call with another id than that of the event.
    fn is_other_call(&self, key: &Key<'_>) -> bool {
        key.call_id.is_some() && self.call_id.is_some() && !self.has_key_call_id(key)
    }

    /// Whether it is a call whose events have its id, and this one has another id.
    fn is_of_other_id(&self, key: &Key<'_>) -> bool {
        self.is_keyed_by_id && key.id.is_some() && !self.has_key_id(key)
    }

    /// Whether an event with its index may be one of it. Some servers give several items one index (P29): a call and something
    /// else, calls with different ids, and an item that follows a complete one.
    fn fits(&self, key: &Key<'_>, kind: &ItemKind) -> bool {
        let is_call = |kind: &ItemKind| matches!(kind, ItemKind::Call(_));
        if is_call(&self.kind) != is_call(kind) || self.is_other_call(key) {
            return false;
        }
        if !self.is_done || self.has_key_call_id(key) {
            return true;
        }
        // Where ids change with each event (P05), the start of each item arrives.
        let may_be_next = key.is_start || !self.was_added;
        let has_other_id = self.id.is_some() && key.id.is_some() && !self.has_key_id(key);
        self.is_kind(kind) && !(may_be_next && has_other_id)
    }
}

impl Key<'_> {
    pub(super) fn index(&self) -> Option<i64> {
        self.index
    }

    /// The id, unless it is too long to be kept.
    fn kept_id(&self) -> Option<String> {
        let id = self.id.as_deref();
        id.filter(|id| id.len() <= MAX_NAME_BYTES)
            .map(str::to_owned)
    }
}

impl Responses {
    /// The item of an event, which is opened as this kind if its start is missing (P07).
    pub(super) fn item(&mut self, key: &Key<'_>, kind: ItemKind) -> Option<&mut Item> {
        let at = match self.find(key, &kind) {
            Some(at) => at,
            None => self.open(kind),
        };
        if let Some(index) = key.index
            && self.items.get(at)?.index.is_none()
        {
            self.shares_index |= self.item_at(index).is_some();
            self.items.get_mut(at)?.index = Some(index);
        }
        let item = self.items.get_mut(at)?;
        match key.index {
            Some(index) if !item.has_index(index) => {
                item.moved_to = Some(index);
                self.shares_index = true;
            }
            Some(_) | None => {}
        }
        if item.id.is_none() {
            item.id = key.kept_id();
        }
        let is_call = matches!(item.kind, ItemKind::Call(_));
        item.is_keyed_by_id |=
            is_call && key.index.is_none() && !key.is_start && item.has_key_id(key);
        Some(item)
    }

    /// Notes that a complete value has brought a part of the text of an item, or of its arguments.
    pub(super) fn note_ahead(&mut self, ordinal: u64, text: Option<(Lane, i64)>) {
        if let Some(before) = self.ahead.replace(ordinal) {
            let except = text.filter(|_| before == ordinal);
            let is_it = |item: &&mut Item| item.ordinal() == before;
            if let Some(item) = self.items.iter_mut().rev().find(is_it)
                && (before != ordinal || text.is_some())
            {
                item.forget_ahead(except);
            }
        }
    }

    /// The call of an event.
    pub(super) fn call(&mut self, key: &Key<'_>) -> Option<&mut Item> {
        let item = self.item(key, ItemKind::Call(Call::default()))?;
        matches!(item.kind, ItemKind::Call(_)).then_some(item)
    }

    fn open(&mut self, mut kind: ItemKind) -> usize {
        if let ItemKind::Call(call) = &mut kind {
            *call = self.calls.open();
        }
        // Items of a response are few; of thousands the first ones are not referred to any more.
        if self.items.len() >= MAX_ENTRIES {
            self.items.remove(0);
        }
        self.opened += 1;
        self.items.push(Item::new(self.opened, kind));
        self.items.len() - 1
    }

    /// By the index; by the id or that of the call if there is none; else the latest item of the kind that is not complete, and
    /// that is neither another call nor an item before the one that starts (P05, P06).
    ///
    /// An item that was opened by an event without an index may be completed by one with an index.
    fn find(&self, key: &Key<'_>, kind: &ItemKind) -> Option<usize> {
        let rposition = |wanted: &dyn Fn(&Item) -> bool| self.items.iter().rposition(wanted);
        let is_same = |item: &Item| {
            item.is_kind(kind)
                && !item.is_done
                && !item.is_before(key)
                && !item.is_other_call(key)
                && !item.is_of_other_id(key)
        };
        if key.is_exact {
            return rposition(&|item| item.index == key.index);
        }
        let Some(index) = key.index else {
            // Some servers give all items one id.
            return rposition(&|item| item.has_key_id(key) && !item.is_other_call(key))
                .or_else(|| rposition(&|item| item.has_key_call_id(key)))
                .or_else(|| rposition(&is_same));
        };
        let is_it = |item: &Item| item.has_index(index) && item.fits(key, kind);
        // An item that only some events of which have another index: its id is the only link (P29).
        let has_moved = |item: &Item| {
            let has_id = item.has_key_id(key) || item.has_key_call_id(key);
            has_id && !key.is_start && is_same(item)
        };
        let of_several = || rposition(&|item| is_it(item) && item.has_key_id(key));
        let by_id = self.shares_index.then(of_several).flatten();
        by_id
            .or_else(|| rposition(&is_it))
            .or_else(|| rposition(&|item| item.index.is_none() && item.has_key_id(key)))
            .or_else(|| rposition(&|item| item.index.is_none() && item.has_key_call_id(key)))
            .or_else(|| rposition(&|item| item.index.is_none() && is_same(item)))
            .or_else(|| rposition(&has_moved))
    }
}
