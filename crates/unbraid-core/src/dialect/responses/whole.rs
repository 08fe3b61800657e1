//! Complete values: the ends of texts, parts, calls and items (D13, P08 to P12).

use std::borrow::Cow;

use super::{
    CHOICE, Responses,
    item::{Item, ItemKind, ReasoningKind, part_of},
    key::Key,
    parts::Parts,
};
use crate::{
    chunk::CONTENT_PARTS,
    dialect::{
        calls::Call,
        object::Object,
        reader::{Lane, Output, arguments_of, entries, raw, text},
        seen::{Rest, Seen},
    },
    limits::MAX_NAME_BYTES,
    node::Node,
};

impl Responses {
    pub(super) fn item_added<'a>(&mut self, event: &Node<'a>, output: &mut Output<'a>) {
        let Some(item) = event.get("item").filter(|item| item.as_object().is_some()) else {
            return; // P21
        };
        let key = Key::of_start(event, item);
        if key.index().is_some() && key.index() <= self.begun_to {
            return self.second_response(output);
        }
        match item_type(item) {
            ItemType::Message => {
                self.message_added(&key, item, output);
                let _ordinal = self.note_start(&key, ItemKind::Message);
            }
            ItemType::Call { is_custom } => {
                self.call_header(&key, item, is_custom, output);
                let arguments = arguments_of(item.get("arguments").or_else(|| item.get("input")));
                let known = self.call(&key);
                if let Some(known) = known
                    && let ItemKind::Call(call) = &mut known.kind
                {
                    known.was_added = true;
                    if !call.has_arguments() {
                        call.append_of_start(CHOICE, arguments, is_custom, output);
                    }
                }
            }
            ItemType::Reasoning => {
                if let Some(ordinal) = self.note_start(&key, ItemKind::Reasoning) {
                    self.note_reasoning_start(ordinal, item, output);
                }
            }
            ItemType::Other => {
                if self.other_started(&key, item).is_some()
                    && let Some(ordinal) = self.note_start(&key, ItemKind::Other)
                {
                    self.note_other_start(ordinal, item, output);
                }
            }
        }
    }

    /// The item of a type that is only kept.
    fn other_started(&mut self, key: &Key<'_>, item: &Node<'_>) -> Option<&mut Item> {
        let known = self.item(key, ItemKind::Other)?;
        if known.type_name.is_none() {
            known.type_name = other_type(item).map(Cow::into_owned);
        }
        Some(known)
    }

    /// Notes that the start of an item has arrived. Returns its ordinal if its end has not.
    fn note_start(&mut self, key: &Key<'_>, kind: ItemKind) -> Option<u64> {
        let item = self.item(key, kind)?;
        item.was_added = true;
        item.is_open().then(|| item.ordinal())
    }

    pub(super) fn item_done<'a>(&mut self, event: &Node<'a>, output: &mut Output<'a>) {
        if let Some(item) = event.get("item").filter(|item| item.as_object().is_some()) {
            self.whole_item(&Key::of_item(event, item), item, output);
        }
    }

    /// Reads a complete item: what of it has not arrived in fragments.
    pub(super) fn whole_item<'a>(
        &mut self,
        key: &Key<'_>,
        item: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let kind = match item_type(item) {
            ItemType::Message => {
                self.message_added(key, item, output);
                self.message_parts(key, item, output);
                ItemKind::Message
            }
            ItemType::Reasoning => {
                self.reasoning_done(key, item, output);
                ItemKind::Reasoning
            }
            ItemType::Call { is_custom } => {
                self.call_header(key, item, is_custom, output);
                let whole = arguments_of(item.get("arguments").or_else(|| item.get("input")));
                self.complete_call(key, whole, output);
                ItemKind::Call(Call::default())
            }
            ItemType::Other => {
                if let Some(known) = self.other_started(key, item) {
                    let (ordinal, is_kept) = (known.ordinal(), known.is_kept);
                    known.is_kept = true;
                    if is_kept {
                        self.held.replace(ordinal, item, output);
                    } else {
                        self.other_item(ordinal, item, output);
                    }
                }
                ItemKind::Other
            }
        };
        if let Some(known) = self.item(key, kind) {
            known.is_done = true;
            let ordinal = known.ordinal();
            self.started.forget(ordinal);
        }
    }

    /// A message item. Its phase distinguishes it from other messages of the response (P04).
    pub(super) fn message_added<'a>(
        &mut self,
        key: &Key<'_>,
        item: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let Some(known) = self.item(key, ItemKind::Message) else {
            return;
        };
        if std::mem::replace(&mut known.is_described, true) || text(item, "phase").is_none() {
            return;
        }
        let ordinal = known.ordinal();
        self.arrived.phases = true;
        let mut object = Object::default();
        for key in ["type", "id", "phase"] {
            if let Some(value) = item.get(key) {
                object.set(key, raw(value));
            }
        }
        self.keep(CONTENT_PARTS, ordinal, object, false, output);
    }

    pub(super) fn part_done<'a>(&mut self, event: &Node<'a>, output: &mut Output<'a>) {
        let Some(part) = event.get("part") else {
            return;
        };
        let Some((lane, kind)) = lane_of(part) else {
            return;
        };
        let key = match lane {
            Lane::Refusal => "refusal",
            Lane::Content | Lane::Reasoning => "text",
        };
        let whole = text(part, key).unwrap_or_default();
        self.text_done(event, lane, kind, &whole, output);
        if lane == Lane::Content {
            self.whole_logprobs(event, part, output);
            self.part_citations(event, part, output);
        }
    }

    pub(super) fn part_added(&mut self, event: &Node<'_>) {
        if let Some((lane, kind)) = event.get("part").and_then(lane_of)
            && let Some(item) = self.item(&Key::of_event(event), ItemKind::of_lane(lane))
        {
            item.add_part(lane, kind, part_of(event));
        }
    }

    /// Compares a complete text with its fragments.
    pub(super) fn text_done(
        &mut self,
        event: &Node<'_>,
        lane: Lane,
        kind: Option<ReasoningKind>,
        whole: &str,
        output: &mut Output<'_>,
    ) {
        if whole.is_empty() {
            return;
        }
        let (key, part) = (Key::of_event(event), part_of(event));
        let item = self.item(&key, ItemKind::of_lane(lane));
        let part = item.map_or(part, |item| item.number_of(lane, part));
        self.whole_text(&key, lane, kind, part, whole, output);
    }

    fn whole_text(
        &mut self,
        key: &Key<'_>,
        lane: Lane,
        kind: Option<ReasoningKind>,
        part: i64,
        whole: &str,
        output: &mut Output<'_>,
    ) {
        if whole.is_empty() {
            return;
        }
        let has_begun = self.has_begun;
        let Some(item) = self.item(key, ItemKind::of_lane(lane)) else {
            return;
        };
        if !item.accepts(kind) {
            return;
        }
        let ordinal = item.ordinal();
        let was_resumed = !(has_begun && item.was_added);
        if was_resumed && item.is_too_late(lane, part) {
            let is_new = item.seen(lane, part).is_some_and(Seen::skip);
            if is_new {
                output.warn("D13", "a text whose place has passed was skipped");
            }
            return;
        }
        match item.seen(lane, part).map(|seen| seen.complete(whole)) {
            Some(Rest::Nothing) | None => {}
            Some(Rest::Missing(rest)) => {
                self.note_ahead(ordinal, Some((lane, part)));
                self.arrived.note(lane);
                output.text(CHOICE, lane, Some(rest.into_owned()));
            }
            Some(Rest::Differs) => {
                output.warn("D13", "a complete value differs from its fragments");
            }
        }
    }

    /// The parts of a complete message.
    fn message_parts<'a>(&mut self, key: &Key<'_>, item: &Node<'a>, output: &mut Output<'a>) {
        self.message_texts(key, item, &|_| true, output);
        self.message_logprobs(key, item, output);
        self.message_citations(key, item, output);
    }

    /// The texts of a complete message in these lanes.
    pub(super) fn message_texts<'a>(
        &mut self,
        key: &Key<'_>,
        item: &Node<'a>,
        is_wanted: &dyn Fn(Lane) -> bool,
        output: &mut Output<'a>,
    ) {
        // Some servers write the text in place of its only part.
        let only = text(item, "content").map(|whole| (Lane::Content, 0, whole));
        let parts = (0..).zip(entries(item.get("content")));
        let texts = parts.filter_map(|(position, part)| {
            let (lane, whole) = text_of(part)?;
            Some((lane, position, whole))
        });
        let texts = only.into_iter().chain(texts);
        let texts: Vec<_> = texts.filter(|(lane, ..)| is_wanted(*lane)).collect();
        self.whole_texts(key, None, &texts, output);
    }

    /// The texts of the parts of a complete item, each with its position.
    fn whole_texts(
        &mut self,
        key: &Key<'_>,
        kind: Option<ReasoningKind>,
        texts: &[(Lane, i64, Cow<'_, str>)],
        output: &mut Output<'_>,
    ) {
        for lane in [Lane::Content, Lane::Refusal, Lane::Reasoning] {
            let own = texts.iter().filter(|(known, ..)| *known == lane);
            let own: Vec<(i64, &str)> = own.map(|(_, at, whole)| (*at, &**whole)).collect();
            if own.is_empty() {
                continue;
            }
            let item = self.item(key, ItemKind::of_lane(lane));
            let parts = item.map_or(Parts::InOrder(Vec::new()), |item| item.parts(lane, &own));
            match parts {
                Parts::Joined(part, joined) => {
                    self.whole_text(key, lane, kind, part, &joined, output);
                }
                Parts::InOrder(numbers) => {
                    for (part, (_, whole)) in numbers.into_iter().zip(own) {
                        self.whole_text(key, lane, kind, part, whole, output);
                    }
                }
            }
        }
    }

    fn reasoning_done<'a>(&mut self, key: &Key<'_>, item: &Node<'a>, output: &mut Output<'a>) {
        self.reasoning_texts(key, item, output);
        if let Some(known) = self.item(key, ItemKind::Reasoning) {
            let (ordinal, is_kept) = (known.ordinal(), known.is_kept);
            if is_kept {
                self.held.replace(ordinal, item, output);
            } else {
                known.is_kept = has_details(item);
                self.reasoning_details(ordinal, item, output);
            }
        }
    }

    /// The texts of a complete reasoning item.
    pub(super) fn reasoning_texts(
        &mut self,
        key: &Key<'_>,
        item: &Node<'_>,
        output: &mut Output<'_>,
    ) {
        for (kind, name) in [
            (ReasoningKind::Summary, "summary"),
            (ReasoningKind::Text, "content"),
        ] {
            let only = text(item, name).map(|whole| (Lane::Reasoning, 0, whole));
            let parts = (0..).zip(entries(item.get(name)));
            let texts = parts.map(|(position, part)| {
                let whole = part.text().or_else(|| text(part, "text"));
                let whole = whole.unwrap_or_default();
                (Lane::Reasoning, position, whole)
            });
            let texts = only.into_iter().chain(texts);
            self.whole_texts(key, Some(kind), &texts.collect::<Vec<_>>(), output);
        }
    }

    /// Keeps a reasoning item that has more than the text of its lane (P13, P14).
    pub(super) fn reasoning_details(
        &mut self,
        ordinal: u64,
        item: &Node<'_>,
        output: &mut Output<'_>,
    ) {
        if has_details(item) {
            self.arrived.details = true;
            self.keep_item("reasoning_details", ordinal, item, output);
        }
    }
}

/// Whether a reasoning item has more than the text of its lane.
pub(super) fn has_details(item: &Node<'_>) -> bool {
    let is_set = |key: &str| item.get(key).is_some_and(Node::is_set);
    is_set("encrypted_content") || (is_set("summary") && is_set("content"))
}

/// The lane of a part, and its kind if it is reasoning.
fn lane_of(part: &Node<'_>) -> Option<(Lane, Option<ReasoningKind>)> {
    match &*text(part, "type")? {
        "output_text" | "text" => Some((Lane::Content, None)),
        "refusal" => Some((Lane::Refusal, None)),
        "reasoning_text" => Some((Lane::Reasoning, Some(ReasoningKind::Text))),
        "summary_text" => Some((Lane::Reasoning, Some(ReasoningKind::Summary))),
        _ => None,
    }
}

/// The text of a message's part.
fn text_of<'a>(part: &Node<'a>) -> Option<(Lane, Cow<'a, str>)> {
    if let Some(whole) = part.text() {
        return Some((Lane::Content, whole));
    }
    match &*text(part, "type")? {
        "refusal" => Some((Lane::Refusal, text(part, "refusal")?)),
        "output_text" | "text" => Some((Lane::Content, text(part, "text")?)),
        _ => None,
    }
}

/// What an item is for this reader.
pub(super) enum ItemType {
    Message,
    Reasoning,
    Call { is_custom: bool },
    Other,
}

pub(super) fn item_type(item: &Node<'_>) -> ItemType {
    match text(item, "type").as_deref() {
        Some("message") => ItemType::Message,
        Some("reasoning") => ItemType::Reasoning,
        Some("function_call") => ItemType::Call { is_custom: false },
        Some("custom_tool_call") => ItemType::Call { is_custom: true },
        Some(_) | None => ItemType::Other,
    }
}

/// The type of an item that is only kept, unless it is too long.
pub(super) fn other_type<'a>(item: &Node<'a>) -> Option<Cow<'a, str>> {
    text(item, "type").filter(|name| name.len() <= MAX_NAME_BYTES)
}
