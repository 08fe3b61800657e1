//! The items of a response: what later events of them refer to.

use super::{
    added::{AddedParts, PartText},
    cited::CitedParts,
};
use crate::{
    dialect::{
        calls::Call,
        reader::Lane,
        seen::{Rest, Seen},
    },
    limits::MAX_ENTRIES,
    node::Node,
};

/// One item, as far as later events refer to it.
pub(super) struct Item {
    /// Its ordinal among all items.
    ordinal: u64,
    /// Its `output_index`, which is a key (P05).
    pub(super) index: Option<i64>,
    /// The index of its last events, if that is another one (P29).
    pub(super) moved_to: Option<i64>,
    /// Its id, which is the key only where there is no index (P06).
    pub(super) id: Option<String>,
    /// Whether it is a call of which an event without an index had its id (P06).
    pub(super) is_keyed_by_id: bool,
    /// Whether its start has arrived.
    pub(super) was_added: bool,
    pub(super) kind: ItemKind,
    /// Whether the whole item has arrived.
    pub(super) is_done: bool,
    /// Whether what the item is was reported: a call's name, a message's phase.
    pub(super) is_described: bool,
    /// Whether it is an entry of one of the message's lists.
    pub(super) is_kept: bool,
    /// The type of an item of the kind `Other`.
    pub(super) type_name: Option<String>,
    /// The citations that have arrived.
    pub(super) citations: CitedParts,
    /// The parts whose log probabilities have arrived.
    pub(super) logprobs: Vec<i64>,
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
    /// Whether its end, or a value in its place, has not arrived.
    pub(super) fn is_open(&self) -> bool {
        !self.is_done && !self.is_kept
    }

    pub(super) fn new(ordinal: u64, kind: ItemKind) -> Self {
        Self {
            ordinal,
            index: None,
            moved_to: None,
            id: None,
            is_keyed_by_id: false,
            was_added: false,
            kind,
            is_done: false,
            is_described: false,
            is_kept: false,
            type_name: None,
            citations: CitedParts::default(),
            logprobs: Vec::new(),
            call_id: None,
            name: None,
            is_in_output: false,
            is_custom: false,
            reasoning: None,
            texts: Vec::new(),
            added: AddedParts::default(),
        }
    }

    pub(super) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Whether this is its `output_index`.
    pub(super) fn has_index(&self, index: i64) -> bool {
        self.index == Some(index) || self.moved_to == Some(index)
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
    pub(super) fn forget_ahead(&mut self, except: Option<(Lane, i64)>) {
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

    /// Whether a part of which nothing has arrived would stand before text that has. A stream that was resumed begins in the middle,
    /// and what it lacks cannot be put before what was reported (P24).
    pub(super) fn is_too_late(&self, lane: Lane, part: i64) -> bool {
        let texts = || self.texts.iter().filter(|(known, ..)| *known == lane);
        let is_later = |(_, number, seen): &PartText| *number > part && !seen.is_empty();
        let has_arrived = |(_, number, seen): &PartText| *number == part && !seen.is_empty();
        texts().any(is_later) && !texts().any(has_arrived)
    }

    /// The number of the part that has this one in its events.
    pub(super) fn number_of(&self, lane: Lane, wire_number: i64) -> i64 {
        self.added.number_of(lane, wire_number)
    }

    /// Notes that a part has log probabilities. Returns whether they are its first ones.
    pub(super) fn note_logprobs(&mut self, part: i64) -> bool {
        let is_first = !self.logprobs.contains(&part) && self.logprobs.len() < MAX_ENTRIES;
        if is_first {
            self.logprobs.push(part);
        }
        is_first
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

/// The number of a part within its item.
pub(super) fn part_of(event: &Node<'_>) -> i64 {
    let number = |key: &str| event.get(key).and_then(Node::as_i64_lenient);
    number("content_index")
        .or_else(|| number("summary_index"))
        .unwrap_or_default()
}
