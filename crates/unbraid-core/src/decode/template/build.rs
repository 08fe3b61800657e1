//! Builds a template of a decoded chunk, and makes holes of the values in which two chunks differ.

use std::borrow::Cow;

use super::{
    Form, Hole, MAX_VALUE_HOLES, Prototype, Provided, Template,
    site::{Part, Site, Slot},
    sites::{Learned, sites},
};
use crate::{
    CompletionKind, ToolCallUpdate, Update,
    chunk::{Chunk, Element, Pairs, ReasoningOrigin},
    text_delta::DeltaKind,
};

impl Template {
    /// Whether a chunk continues one text and does nothing else that a template has no place for.
    pub(in crate::decode) fn is_possible(chunk: &Chunk<'_>) -> bool {
        matches!(chunk.elements.as_slice(), [element] if continues_text(chunk, element))
    }

    /// Builds a template of such a chunk.
    pub(in crate::decode) fn new(learned: &Learned<'_, '_>) -> Option<Self> {
        let ([element], [escaped]) = (
            learned.chunk.elements.as_slice(),
            learned.escaped.elements.as_slice(),
        ) else {
            return None;
        };
        // Fields are taken from the escaped chunk, whose raw values are the same, because the other one has already lost
        // the fields that did not change.
        let envelope = learned.escaped;
        let has_fields = !escaped.fields.is_empty()
            || !escaped.update.metadata.is_empty()
            || escaped.update.logprobs.is_some();
        if learned.is_strict && (has_fields || envelope.usage.is_some()) {
            return None;
        }
        let text = element.update.only_text();
        // In strict mode only the chunks with a text are known to merge.
        if learned.is_strict && text.is_none() {
            return None;
        }
        let text_kind = text.map_or(DeltaKind::Content, |(kind, _)| kind);
        let sites = sites(learned, escaped, text_kind)?;
        let update = &element.update;
        let part = |part: &str| Part::of(learned.text, part);
        let field = |(key, raw): &Pair<'_>| (part(key), part(raw));
        let prototype = Prototype {
            created: learned.chunk.created,
            role: update.role.as_deref().map(Box::from),
            logprobs: escaped.update.logprobs.as_deref().map(Box::from),
            fields: owned_fields(&escaped.fields, &escaped.update.metadata),
            delta_field_count: escaped.fields.len(),
            calls: update
                .tool_calls
                .iter()
                .map(ToolCallUpdate::header)
                .collect(),
            id: learned.chunk.id.as_deref().map(part),
            model: learned.chunk.model.as_deref().map(part),
            usage: envelope.usage.as_deref().map(part),
            extra: envelope.extra.iter().map(field).collect(),
        };
        let mut template = Self::uncut(learned.text, sites, text_kind, prototype, learned.depth);
        template.has_text = text.is_some();
        template.kind = update.kind;
        Some(template)
    }

    /// A template without holes: they are yet to be cut.
    pub(super) fn uncut(
        text: &str,
        sites: Vec<Site>,
        text_kind: DeltaKind,
        prototype: Prototype,
        depth: usize,
    ) -> Self {
        Self {
            text: text.into(),
            sites,
            head_len: text.len(),
            holes: Box::default(),
            forms: Box::default(),
            has_values: false,
            text_kind,
            kind: CompletionKind::default(),
            is_bare: false,
            has_extra: false,
            has_text: true,
            is_text_only: false,
            is_constant: false,
            has_usage_form: false,
            has_field_holes: false,
            has_extra_holes: false,
            depth,
            prototype: Box::new(prototype),
            provided: None,
            envelope: 0,
            known_version: None,
        }
    }

    /// Cuts the holes out of the text. A template is kept with its holes cut.
    pub(in crate::decode) fn cut_holes(&mut self) {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX); // a longer text is never learned
        let length = offset(self.text.len());
        let is_hole = |site: &&Site| site.is_hole;
        let mut holes: Vec<Hole> = Vec::with_capacity(self.sites.iter().filter(is_hole).count());
        let mut forms = Vec::new();
        let (mut has_names, mut is_fixed) = (false, true);
        // In one pass: each question of its own would be a loop of its own.
        for site in self.sites.iter().filter(is_hole) {
            let slot = site.slot;
            match holes.last_mut() {
                Some(last) => last.literal.1 = offset(site.start),
                None => self.head_len = site.start,
            }
            holes.push(Hole {
                slot,
                literal: (offset(site.end), length),
            });
            if slot.needs_scanner() {
                forms.push(Form::of(&self.text, site.start..site.end));
            }
            is_fixed &= !slot.is_value();
            has_names |= matches!(slot, Slot::Id | Slot::Model);
            self.has_field_holes |= matches!(slot, Slot::Field(..));
            self.has_extra_holes |= matches!(slot, Slot::Extra(_));
        }
        self.has_values = !forms.is_empty();
        (self.holes, self.forms) = (holes.into(), forms.into());
        let has_entry = self.has_entry();
        let prototype = &*self.prototype;
        self.is_bare = prototype.role.is_none() && prototype.extras().is_empty();
        self.has_extra = !prototype.extra.is_empty();
        let resets_id = |provided: &Provided| provided.resets_id;
        self.is_text_only = self.has_text
            && prototype.calls.iter().all(ToolCallUpdate::is_announced)
            && !prototype.fields.iter().any(|(key, _)| key == "audio")
            && !has_names
            && !self.provided.as_deref().is_some_and(resets_id);
        let has_usage = prototype.usage.is_some();
        self.is_constant = !has_usage && is_fixed && !has_entry;
        self.has_usage_form = has_usage && is_fixed && self.provided.is_some() && !has_entry;
    }

    /// Makes holes of the values in which another chunk of the same keys differs; false if its keys or anything else
    /// differ as well. The holes are still to be [cut](Self::cut_holes).
    pub(in crate::decode) fn generalise(&mut self, known: &Self) -> bool {
        if self.sites.len() != known.sites.len() || self.name() != known.name() {
            return false;
        }
        let Self { text, sites, .. } = self;
        let (text, known_text) = (text.as_bytes(), known.text.as_bytes());
        let becomes_hole = |site: &Site, other: &Site| {
            let value = text.get(site.start..site.end);
            site.is_hole || other.is_hole || value != known_text.get(other.start..other.end)
        };
        // Nothing is changed before the last site, which may still show that the two differ.
        let (mut end, mut known_end, mut values) = (0, 0, 0);
        for (site, other) in sites.iter().zip(&known.sites) {
            let is_equal_before =
                text.get(end..site.start) == known_text.get(known_end..other.start);
            if site.slot != other.slot || !is_equal_before {
                return false;
            }
            values += usize::from(site.slot.is_value() && becomes_hole(site, other));
            (end, known_end) = (site.end, other.end);
        }
        // The spans of a match lie in an array of this length.
        if text.get(end..) != known_text.get(known_end..) || values > MAX_VALUE_HOLES {
            return false;
        }
        for (site, other) in sites.iter_mut().zip(&known.sites) {
            site.is_hole = becomes_hole(site, other);
        }
        true
    }

    /// Whether a text delta of this template may follow an update of the other one, because the chunks of both have the
    /// same envelope.
    pub(in crate::decode) fn shares_envelope(&self, other: &Self) -> bool {
        let is_hole = |template: &Self, slot| template.holes.iter().any(|hole| hole.slot == slot);
        let (ours, others) = (&*self.prototype, &*other.prototype);
        let shares_created = if is_hole(self, Slot::Created) {
            is_hole(other, Slot::Created)
        } else {
            !is_hole(other, Slot::Created) && ours.created == others.created
        };
        let has_name_hole =
            |template| is_hole(template, Slot::Id) || is_hole(template, Slot::Model);
        shares_created
            && !has_name_hole(self)
            && !has_name_hole(other)
            && self.part(&ours.id) == other.part(&others.id)
            && self.part(&ours.model) == other.part(&others.model)
    }
}

/// An unknown field and its raw JSON.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The unknown fields of a choice, those of the delta first.
fn owned_fields(of_delta: &[Pair<'_>], of_choice: &[Pair<'_>]) -> Pairs<'static> {
    let owned = |text: &str| Cow::Owned(text.to_owned());
    let mut fields = Vec::with_capacity(of_delta.len() + of_choice.len());
    for list in [of_delta, of_choice] {
        fields.extend(list.iter().map(|(key, raw)| (owned(key), owned(raw))));
    }
    fields
}

/// Whether a chunk may continue a text, and does nothing that has no place in a template. A chunk with one of these
/// fields is rare, so it is not worth a hole.
fn continues_text(chunk: &Chunk<'_>, element: &Element<'_>) -> bool {
    let update = &element.update;
    (update.only_text().is_some() || has_no_text(update))
        && chunk.error.is_none()
        && chunk.warnings.is_empty()
        // A hole is not searched for usage.
        && !chunk.extra.iter().any(|(name, _)| name == "x_groq")
        && element.reasoning_origin != Some(ReasoningOrigin::Details)
        && !element.has_unexpected_type
        && !element.replaced_half
        && !update.is_full_message
        && update.warnings.is_empty()
        && update.finish_reason.is_none()
        && update.usage.is_none()
        && update.error.is_none()
        && update.function_name.is_none()
        && update.function_arguments.is_none()
}

/// Whether an update repeats what a choice has, at most with unknown fields.
fn has_no_text(update: &Update<'_>) -> bool {
    let is_bare = |call: &ToolCallUpdate<'_>| {
        call.arguments.is_none() && call.extra.is_empty() && call.position.is_none()
    };
    update.content.is_none()
        && update.reasoning.is_none()
        && update.refusal.is_none()
        && update.calls_are_announced()
        && update.tool_calls.iter().all(is_bare)
}
