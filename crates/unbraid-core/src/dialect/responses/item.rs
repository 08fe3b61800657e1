//! The items of a response, and which item an event belongs to.

use std::borrow::Cow;

use super::{
    Responses,
    added::{AddedParts, PartText},
};
use crate::{
    dialect::{
        calls::Call,
        reader::{Lane, text},
        seen::{Rest, Seen},
    },
    limits::{MAX_ENTRIES, MAX_NAME_BYTES},
    node::Node,
};

/// One item, as far as later events refer to it.
pub(super) struct Item {
    /// Its ordinal among all items.
    ordinal: u64,
    /// Its `output_index`, which is a key (P05).
    index: Option<i64>,
    /// Its id, which is the key only where there is no index (P06).
    id: Option<String>,
    pub(super) kind: ItemKind,
    /// Whether the whole item has arrived.
    pub(super) is_done: bool,
    /// Whether what the item is was reported: a call's name, a message's phase.
    pub(super) is_described: bool,
    pub(super) has_annotations: bool,
    /// The id of a call.
    pub(super) call_id: Option<String>,
    /// The name of a call.
    pub(super) name: Option<String>,
    /// Whether the final output has this call.
    pub(super) is_in_output: bool,
    /// Whether the input of a call is free text.
    pub(super) is_custom: bool,
    /// The kind of reasoning that came first (P13).
    reasoning: Option<ReasoningKind>,
    /// What has arrived of each text, by its lane and part.
    pub(super) texts: Vec<PartText>,
    added: AddedParts,
}

pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call(Call),
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningKind {
    Summary,
    Text,
}

/// What an event says about its item.
pub(super) struct Key<'a> {
    index: Option<i64>,
    id: Option<Cow<'a, str>>,
    /// The id of a call, if the event has it.
    call_id: Option<Cow<'a, str>>,
    /// Whether only the index counts.
    is_exact: bool,
}

impl<'a> Key<'a> {
    /// The key of an event of a part.
    pub(super) fn of_event(event: &Node<'a>) -> Self {
        Self {
            index: event.get("output_index").and_then(Node::as_i64_lenient),
            id: text(event, "item_id"),
            call_id: text(event, "call_id"),
            is_exact: false,
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

    /// The key of an item of which nothing but its position is known.
    pub(super) fn of_position(position: i64) -> Self {
        Self {
            index: Some(position),
            id: None,
            call_id: None,
            is_exact: true,
        }
    }
}

impl ItemKind {
    pub(super) fn of_lane(lane: Lane) -> Self {
        match lane {
            Lane::Content | Lane::Refusal => Self::Message,
            Lane::Reasoning => Self::Reasoning,
        }
    }
}

impl ReasoningKind {
    pub(super) fn of(is_summary: bool) -> Self {
        if is_summary {
            Self::Summary
        } else {
            Self::Text
        }
    }
}

impl Item {
    pub(super) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Whether this is its `output_index`.
    pub(super) fn has_index(&self, index: i64) -> bool {
        self.index == Some(index)
    }

    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Whether the call of the final output with these properties may be this one: it has the same id as an item, or the same
    /// name, and its arguments are those that have arrived, if any have. A call without a name is known by its arguments.
    pub(super) fn may_be_call(&self, id: Option<&str>, name: Option<&str>, whole: &str) -> bool {
        let ItemKind::Call(call) = &self.kind else {
            return false;
        };
        let arrived = &call.arguments;
        let has_id = id.is_some() && self.id.as_deref() == id;
        let is_equal = match self.name.as_deref() {
            Some(known) => Some(known) == name && arrived.is_empty(),
            None => false,
        };
        let has_arrived = !arrived.is_empty()
            && arrived.rest(whole) == Rest::Nothing
            && (self.name.is_none() || self.name.as_deref() == name);
        has_id || is_equal || has_arrived
    }

    /// Forgets what complete values have brought of its texts, except one.
    fn forget_ahead(&mut self, except: Option<(Lane, i64)>) {
        for (lane, part, seen) in &mut self.texts {
            if except != Some((*lane, *part)) {
                seen.forget_ahead();
            }
        }
        if let ItemKind::Call(call) = &mut self.kind {
            call.arguments.forget_ahead();
        }
    }

    /// Notes the start of a part, unless it is reasoning of another kind than came first (P13).
    pub(super) fn add_part(&mut self, lane: Lane, kind: Option<ReasoningKind>, wire_number: i64) {
        if kind.is_none() || self.reasoning.is_none() || self.reasoning == kind {
            self.added.add(lane, wire_number, &self.texts);
        }
    }

    /// The number of the part that has this one in its events.
    pub(super) fn number_of(&self, lane: Lane, wire_number: i64) -> i64 {
        self.added.number_of(lane, wire_number)
    }

    /// Whether reasoning of this kind came first.
    pub(super) fn began_with(&self, kind: ReasoningKind) -> bool {
        self.reasoning == Some(kind)
    }

    /// Whether reasoning of this kind counts: the kind that came first does (P13).
    pub(super) fn accepts(&mut self, kind: Option<ReasoningKind>) -> bool {
        kind.is_none_or(|kind| *self.reasoning.get_or_insert(kind) == kind)
    }

    /// What has arrived of a text.
    pub(super) fn seen(&mut self, lane: Lane, part: i64) -> Option<&mut Seen> {
        let is_it = |(known, number, _): &PartText| (*known, *number) == (lane, part);
        if !self.texts.iter().any(is_it) {
            if self.texts.len() >= MAX_ENTRIES {
                self.texts.remove(0);
            }
            self.texts.push((lane, part, Seen::default()));
        }
        let mut texts = self.texts.iter_mut().rev();
        let (_, _, seen) = texts.find(|text| is_it(text))?;
        Some(seen)
    }
}

impl Responses {
    /// The item of an event, which is opened as this kind if its start is missing (P07).
    pub(super) fn item(&mut self, key: &Key<'_>, kind: ItemKind) -> Option<&mut Item> {
        let at = match self.find(key, &kind) {
            Some(at) => at,
            None => self.open(kind),
        };
        let item = self.items.get_mut(at)?;
        item.index = item.index.or(key.index);
        if item.id.is_none() {
            let id = key.id.as_deref().filter(|id| id.len() <= MAX_NAME_BYTES);
            item.id = id.map(str::to_owned);
        }
        Some(item)
    }

    /// Notes that a complete value has brought a part of the text of an item, or of its arguments.
    pub(super) fn note_ahead(&mut self, ordinal: u64, text: Option<(Lane, i64)>) {
        if let Some(before) = self.ahead.replace(ordinal) {
            let except = text.filter(|_| before == ordinal);
            let is_it = |item: &&mut Item| item.ordinal == before;
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
        self.items.push(Item {
            ordinal: self.opened,
            index: None,
            id: None,
            kind,
            is_done: false,
            is_described: false,
            has_annotations: false,
            call_id: None,
            name: None,
            is_in_output: false,
            is_custom: false,
            reasoning: None,
            texts: Vec::new(),
            added: AddedParts::default(),
        });
        self.items.len() - 1
    }

    /// By the index; by the id or that of the call if there is none; else the latest item of the kind that is not complete, and
    /// that is not another call (P05, P06).
    ///
    /// An item that was opened by an event without an index may be completed by one with an index.
    fn find(&self, key: &Key<'_>, kind: &ItemKind) -> Option<usize> {
        let rposition = |wanted: &dyn Fn(&Item) -> bool| self.items.iter().rposition(wanted);
        let has_id = |item: &Item| key.id.is_some() && item.id.as_deref() == key.id.as_deref();
        let call_id = key.call_id.as_deref();
        let has_call_id = |item: &Item| call_id.is_some() && item.call_id.as_deref() == call_id;
        let is_same = |item: &Item| {
            std::mem::discriminant(&item.kind) == std::mem::discriminant(kind)
                && !item.is_done
                && (call_id.is_none() || item.call_id.is_none() || has_call_id(item))
        };
        let by_index = rposition(&|item| item.index == key.index);
        if key.is_exact {
            return by_index;
        }
        if key.index.is_some() {
            return by_index
                .or_else(|| rposition(&|item| item.index.is_none() && has_id(item)))
                .or_else(|| rposition(&|item| item.index.is_none() && has_call_id(item)))
                .or_else(|| rposition(&|item| item.index.is_none() && is_same(item)));
        }
        rposition(&has_id)
            .or_else(|| rposition(&has_call_id))
            .or_else(|| rposition(&is_same))
    }
}

/// The number of a part within its item.
pub(super) fn part_of(event: &Node<'_>) -> i64 {
    let number = |key: &str| event.get(key).and_then(Node::as_i64_lenient);
    number("content_index")
        .or_else(|| number("summary_index"))
        .unwrap_or_default()
}
