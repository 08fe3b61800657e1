//! Reads chunks that differ from an earlier one only in some values, without parsing the rest.
//!
//! The chunks of a stream differ in the choice index, the text and the padding, and in some streams also in the id, the
//! time of creation, or the value of an unknown field. A [`Template`] keeps the bytes around these values. A chunk with
//! the same bytes there, and with a value of the same type in each hole, is the same JSON with other values: it has the
//! same keys in the same places, so it means what the earlier chunk meant. Anything else is not a match, and is parsed.
//! The scanner that reads unknown chunks also reads the values in the holes, so it decides what is valid there. A value
//! that has the form of a valid one ([`Form`]) is not read again.

mod build;
mod form;
mod found;
mod matching;
mod provider;
mod site;
mod sites;
mod updates;

use std::sync::Arc;

use crate::{
    CompletionKind, ToolCallUpdate,
    chunk::Pairs,
    prefetch::prefetch,
    text_delta::{DeltaKind, Extras},
};
use form::Form;
pub(super) use found::MatchBuffers;
pub(crate) use found::TemplateMatch;
use found::{MAX_VALUE_HOLES, ValueSpans};
pub(super) use matching::Line;
pub(super) use provider::{Provided, ProviderEvent};
use site::{Part, Site, Slot};
pub(super) use sites::Learned;

/// An ordinary chunk of one choice and at most one text, or an event of another dialect, with holes in it.
#[derive(Debug)]
// What a match needs comes first.
#[repr(C)]
pub(super) struct Template {
    /// The chunk that it was learned from.
    text: Arc<str>,
    /// The length of the text before the first hole.
    head_len: usize,
    /// Each hole. They refer to the text, so that a match reads one allocation from its start to its end.
    holes: Box<[Hole]>,
    /// The number of its envelope. Templates with the same number have the same id, time of creation and model.
    pub(super) envelope: u64,
    /// What the dialect says of the event, if it is not a chunk.
    provided: Option<Box<Provided>>,
    text_kind: DeltaKind,
    kind: CompletionKind,
    /// Whether the prototype has nothing beside the text that belongs to a `TextDelta`.
    is_bare: bool,
    /// Whether there are unknown fields in the envelope.
    has_extra: bool,
    /// Whether there are holes that the scanner has to read.
    has_values: bool,
    /// Whether there is a text. Some servers send chunks without one again and again: an empty text, a call without arguments.
    has_text: bool,
    /// Whether a `TextDelta` holds everything that a matching chunk says of its choice.
    is_text_only: bool,
    /// Whether a match keeps no value but the text, the index and the time of creation, and there is no usage.
    is_constant: bool,
    /// Whether there is usage whose integers are holes, and a match keeps no other value.
    has_usage_form: bool,
    /// Whether an unknown field of the choice or of its delta is a hole.
    has_field_holes: bool,
    /// Whether an unknown field of the envelope is a hole.
    has_extra_holes: bool,
    /// The version of the stream's envelope in which all unknown fields were known to have the values of this template.
    pub(super) known_version: Option<u64>,
    prototype: Box<Prototype>,
    /// The forms of the values in the holes that the scanner has to read.
    forms: Box<[Form]>,
    /// All values in the chunk that may become a hole, in their order.
    sites: Vec<Site>,
    /// The limit on nesting.
    depth: usize,
}

/// A hole, and the bytes between it and the next one.
#[derive(Debug, Clone, Copy)]
struct Hole {
    slot: Slot,
    /// Where these bytes lie in the text of the template.
    literal: (u32, u32),
}

/// The updates of the chunk, without the text and the values in the holes. It has the few fields that such an update may
/// have, because an [`Update`](crate::Update) is five times as large, and one is made of each chunk that is learned.
#[derive(Debug)]
struct Prototype {
    created: Option<u64>,
    role: Option<Box<str>>,
    logprobs: Option<Box<str>>,
    /// The unknown fields of the choice as raw JSON, those of the delta first.
    fields: Pairs<'static>,
    delta_field_count: usize,
    calls: Vec<ToolCallUpdate<'static>>,
    id: Option<Part>,
    model: Option<Part>,
    /// The usage in the envelope, as raw JSON.
    usage: Option<Part>,
    /// The unknown fields of the envelope, as raw JSON.
    extra: Vec<(Part, Part)>,
}

impl Prototype {
    /// What a text delta brings beside its text.
    fn extras(&self) -> Extras<'_> {
        Extras::default()
            .with_fields(&self.fields)
            .with_delta_field_count(self.delta_field_count)
            .with_logprobs(self.logprobs.as_deref())
    }
}

impl Template {
    /// The chunk that it was learned from.
    pub(super) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Loads what a match needs beside the text.
    #[inline]
    pub(super) fn prefetch(&self) {
        let holes = [self.holes.first(), self.holes.last()];
        let starts = holes
            .into_iter()
            .flatten()
            .map(|hole| u64::from(hole.literal.0));
        prefetch(starts.sum::<u64>() + u64::from(self.has_extra_holes));
    }

    /// The bytes before the first hole.
    pub(super) fn head(&self) -> &[u8] {
        self.text
            .as_bytes()
            .get(..self.head_len)
            .unwrap_or_default()
    }

    /// A part of the chunk that it was learned from.
    fn part<'t>(&'t self, part: &'t Option<Part>) -> Option<&'t str> {
        part.as_ref().map(|part| part.get(&self.text))
    }

    /// The bytes between a hole and the next one.
    #[inline(always)]
    fn literal_after(&self, hole: &Hole) -> Option<&[u8]> {
        let (start, end) = hole.literal;
        self.text.as_bytes().get(start as usize..end as usize)
    }

    /// Whether the data begins with this many bytes of the head.
    #[inline]
    pub(super) fn starts_with_head(&self, data: &[u8], common_len: usize) -> bool {
        let start = self.text.as_bytes().get(..common_len);
        start.is_some_and(|start| data.starts_with(start))
    }

    /// Whether there are holes that the scanner has to read.
    pub(super) fn has_values(&self) -> bool {
        self.has_values
    }

    /// The choice of a match.
    pub(super) fn choice(&self, found: &TemplateMatch<'_>) -> u32 {
        let provided = self.provided.as_deref();
        provided.and_then(|p| p.choice).unwrap_or(found.index)
    }

    /// Whether the chunk that it was learned from has a time of creation.
    pub(super) fn has_created(&self) -> bool {
        self.prototype.created.is_some_and(|created| created != 0)
    }

    /// What a matching event continues, and the name that it needs; `None` for a chunk.
    pub(super) fn provided(&self) -> Option<&Provided> {
        self.provided.as_deref()
    }

    /// The text that matching chunks continue.
    pub(super) fn text_kind(&self) -> DeltaKind {
        self.text_kind
    }
}
