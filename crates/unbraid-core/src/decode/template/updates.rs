//! The updates of a chunk that matches a template.

use std::{
    borrow::Cow,
    ops::{Deref, Range},
};

use arrayvec::ArrayVec;

use super::{Hole, MatchBuffers, Part, Prototype, Slot, Template, TemplateMatch, ValueSpans};
use crate::{
    ChoiceIndex, EventIndex, Fragment, ToolCallUpdate, Update,
    chunk::{Pairs, recycled},
    decode::envelope::EnvelopeMemo,
    text_delta::{DeltaKind, Extras, TextDelta, UpdateSink},
};

/// How many unknown fields beside a text need no buffer.
const FEW_FIELDS: usize = 4;

impl Template {
    /// The text delta of a matching chunk, with the prototype's values beside the text.
    #[inline]
    pub(in crate::decode) fn text_delta<'t>(
        &'t self,
        event_index: EventIndex,
        choice: ChoiceIndex,
        text: &'t str,
    ) -> TextDelta<'t> {
        // The prototype is not read unless it has something: it lies in cache lines of its own.
        let (role, extras) = if self.is_bare {
            (None, Extras::default())
        } else {
            (self.prototype.role.as_deref(), self.prototype.extras())
        };
        TextDelta {
            event_index,
            last_of_event: true,
            choice,
            kind: self.kind,
            role,
            text_kind: self.text_kind,
            text,
            extras,
        }
    }

    /// Whether a text delta says everything of the choice.
    #[inline]
    pub(in crate::decode) fn is_text_only(&self) -> bool {
        self.is_text_only
    }

    /// Whether the [`text_delta`](Self::text_delta) of a match is all that it brings, if this is the version of the envelope.
    #[inline]
    pub(in crate::decode) fn is_constant(&self, version: u64) -> bool {
        self.is_constant && self.knows_envelope(version)
    }

    /// Whether the chunks have no unknown field in the envelope that could have changed in this version of it.
    #[inline]
    fn knows_envelope(&self, version: u64) -> bool {
        !self.has_extra || self.known_version == Some(version)
    }

    /// Whether a match brings its text delta, its usage, and nothing else.
    #[inline]
    pub(in crate::decode) fn is_text_with_usage(&self) -> bool {
        self.has_usage_form
    }

    /// Emits the text delta and the usage of such a match.
    #[inline]
    pub(in crate::decode) fn emit_with_usage<T: UpdateSink + ?Sized>(
        &self,
        found: &TemplateMatch<'_>,
        delta: &TextDelta<'_>,
        sink: &mut T,
    ) {
        let usage = self.usage(found.usage, delta.event_index);
        sink.text_delta(&TextDelta {
            last_of_event: usage.is_none(),
            ..*delta
        });
        if let Some(usage) = usage {
            sink.delta_usage(&usage);
        }
    }

    /// Whether two matching chunks may differ in their time of creation.
    #[inline]
    pub(in crate::decode) fn varies_created(&self, found: &TemplateMatch<'_>) -> bool {
        found.created.is_some()
    }

    /// Emits what a matching chunk brings: the delta if that says everything of the choice, or else an update; and an update of
    /// the stream if anything of that is new. Returns the time of creation, and whether all unknown fields of the envelope
    /// were known.
    pub(in crate::decode) fn emit<T: UpdateSink + ?Sized>(
        &self,
        found: &TemplateMatch<'_>,
        delta: &TextDelta<'_>,
        is_delta: bool,
        envelope: &mut EnvelopeMemo,
        buffers: &mut MatchBuffers,
        sink: &mut T,
    ) -> (Option<u64>, bool) {
        let MatchBuffers {
            spans,
            fields,
            entry,
        } = buffers;
        let values = Values {
            holes: &self.holes,
            spans,
            text: found.values,
            start: found.values_start,
        };
        let prototype = &*self.prototype;
        let changed = self.changed_fields(&values, envelope);
        let is_known = changed.is_empty();
        // Usage is in each match of a template, or in none. That of another dialect has no envelope.
        let usage = self.part(&prototype.usage);
        let usage = usage.filter(|_| self.provided().is_none());
        let usage = usage.map(|usage| values.of(Slot::Usage).unwrap_or(usage));
        let delta_usage = self.usage(found.usage, delta.event_index);
        let is_alone = usage.is_none() && is_known;
        let entry = self.entry(found.entry, Some(delta.choice), entry);
        let last_of_event = is_alone && delta_usage.is_none() && entry.is_none();
        let created = found.created.or(prototype.created);
        if is_delta {
            self.emit_delta(&values, delta, last_of_event, sink);
        } else {
            let metadata = recycled(std::mem::take(fields));
            let mut update = self.update(delta.choice, delta.text, metadata);
            update.event_index = delta.event_index;
            update.last_of_event = last_of_event;
            update.created = created;
            values.set(&mut update);
            sink.update(&update);
            *fields = recycled(update.metadata);
        }
        if !is_alone {
            self.emit_envelope(&values, delta.event_index, created, usage, changed, sink);
        }
        if let Some(mut entry) = entry {
            entry.event_index = delta.event_index;
            entry.last_of_event = delta_usage.is_none();
            sink.update(&entry);
        }
        if let Some(usage) = delta_usage {
            sink.delta_usage(&usage);
        }
        (created, is_known)
    }

    /// Emits the delta, with the values in the holes.
    #[inline]
    fn emit_delta<T: UpdateSink + ?Sized>(
        &self,
        values: &Values<'_, '_>,
        delta: &TextDelta<'_>,
        last_of_event: bool,
        sink: &mut T,
    ) {
        let mut extras = delta.extras;
        extras.logprobs = extras
            .logprobs
            .map(|raw| values.of(Slot::Logprobs).unwrap_or(raw));
        let known = &self.prototype.fields;
        // On the stack: a buffer would have to be taken from its place and put back.
        let mut few = ArrayVec::<_, FEW_FIELDS>::new();
        let mut many = Vec::new();
        if self.has_field_holes {
            let pairs = known.iter().map(borrowed_pair);
            extras.fields = if known.len() <= FEW_FIELDS {
                few.extend(pairs);
                values.set_fields(&mut few);
                &few
            } else {
                many.extend(pairs);
                values.set_fields(&mut many);
                &many
            };
        }
        sink.text_delta(&TextDelta {
            last_of_event,
            extras,
            ..*delta
        });
    }

    /// Emits the update of the stream.
    #[inline]
    fn emit_envelope<T: UpdateSink + ?Sized>(
        &self,
        values: &Values<'_, '_>,
        event_index: EventIndex,
        created: Option<u64>,
        usage: Option<&str>,
        metadata: Pairs<'_>,
        sink: &mut T,
    ) {
        let Prototype { id, model, .. } = &*self.prototype;
        let name = |slot, known| values.name(slot).or_else(|| self.name_of(known));
        sink.update(&Update {
            event_index,
            last_of_event: true,
            id: name(Slot::Id, id),
            model: name(Slot::Model, model),
            created,
            usage: usage.map(Cow::Borrowed),
            metadata,
            is_chunk: true,
            ..Update::default()
        });
    }

    /// The unknown fields of the envelope that have changed.
    fn changed_fields<'t>(
        &'t self,
        values: &Values<'t, '_>,
        envelope: &mut EnvelopeMemo,
    ) -> Pairs<'t> {
        let mut changed = Vec::new();
        if self.knows_envelope(envelope.version()) && !self.has_extra_holes {
            return changed;
        }
        for (number, (key, raw)) in (0..).zip(&self.prototype.extra) {
            let (key, known) = (key.get(&self.text), raw.get(&self.text));
            let raw = values.of(Slot::Extra(number)).unwrap_or(known);
            if envelope.record(key, raw) {
                changed.push((Cow::Borrowed(key), Cow::Borrowed(raw)));
            }
        }
        changed
    }

    fn name_of<'t>(&'t self, name: &'t Option<Part>) -> Option<Cow<'t, str>> {
        self.part(name).map(Cow::Borrowed)
    }

    /// The update of the choice, with the values of the prototype.
    pub(super) fn update<'t>(
        &'t self,
        choice: ChoiceIndex,
        text: &'t str,
        mut metadata: Pairs<'t>,
    ) -> Update<'t> {
        let prototype = &*self.prototype;
        metadata.extend(prototype.fields.iter().map(borrowed_pair));
        let fragment = Fragment::from(text);
        let mut update = Update {
            last_of_event: true,
            is_chunk: true,
            choice: Some(choice),
            kind: self.kind,
            id: self.name_of(&prototype.id),
            created: prototype.created,
            model: self.name_of(&prototype.model),
            role: borrowed(&prototype.role),
            logprobs: borrowed(&prototype.logprobs),
            metadata,
            delta_field_count: prototype.delta_field_count,
            ..Update::default()
        };
        match self.text_kind {
            _ if !self.has_text => {
                update.tool_calls = prototype.calls.iter().map(borrowed_call).collect();
            }
            DeltaKind::Content => update.content = Some(fragment),
            DeltaKind::Reasoning => update.reasoning = Some(fragment),
            DeltaKind::Refusal => update.refusal = Some(fragment),
            DeltaKind::Arguments(_) => {
                update.tool_calls = prototype.calls.iter().map(borrowed_call).collect();
                if let Some(call) = update.tool_calls.first_mut() {
                    call.arguments = Some(fragment);
                }
            }
        }
        update
    }
}

/// The values in the holes that a match keeps.
struct Values<'t, 'b> {
    holes: &'b [Hole],
    spans: &'b ValueSpans,
    /// The part of the data with all values.
    text: &'t str,
    start: usize,
}

impl<'t> Values<'t, '_> {
    fn of(&self, slot: Slot) -> Option<&'t str> {
        let holes = self.holes.iter().map(|hole| hole.slot);
        let mut kept = holes.filter(|hole| hole.is_value()).zip(self.spans);
        let (_, span) = kept.find(|(hole, _)| *hole == slot)?;
        self.text(span)
    }

    fn name(&self, slot: Slot) -> Option<Cow<'t, str>> {
        self.of(slot).map(Cow::Borrowed)
    }

    /// Sets what varies in the update of the choice.
    #[inline]
    fn set(&self, update: &mut Update<'t>) {
        let name = |slot, known: &mut Option<_>| {
            if let Some(value) = self.name(slot) {
                *known = Some(value);
            }
        };
        name(Slot::Id, &mut update.id);
        name(Slot::Model, &mut update.model);
        name(Slot::Logprobs, &mut update.logprobs);
        self.set_fields(&mut update.metadata);
    }

    /// Sets the unknown fields of the choice that vary.
    fn set_fields(&self, fields: &mut [Pair<'t>]) {
        let holes = self.holes.iter().map(|hole| hole.slot);
        for (hole, span) in holes.filter(|hole| hole.is_value()).zip(self.spans) {
            if let Slot::Field(number, _) = hole
                && let Some((_, raw)) = fields.get_mut(usize::from(number))
            {
                *raw = Cow::Borrowed(self.text(span).unwrap_or_default());
            }
        }
    }

    fn text(&self, span: &Range<usize>) -> Option<&'t str> {
        let start = span.start.checked_sub(self.start)?;
        self.text.get(start..start + span.len())
    }
}

/// An unknown field and its raw JSON.
type Pair<'t> = (Cow<'t, str>, Cow<'t, str>);

fn borrowed_pair<'t>(pair: &'t Pair<'_>) -> Pair<'t> {
    (Cow::Borrowed(&pair.0), Cow::Borrowed(&pair.1))
}

fn borrowed<'t>(text: &'t Option<impl Deref<Target = str>>) -> Option<Cow<'t, str>> {
    text.as_deref().map(Cow::Borrowed)
}

fn borrowed_call<'t>(call: &'t ToolCallUpdate<'static>) -> ToolCallUpdate<'t> {
    ToolCallUpdate {
        wire_index: call.wire_index,
        id: borrowed(&call.id),
        kind: borrowed(&call.kind),
        name: call.name.as_ref().map(|name| Fragment::from(&*name.text)),
        ..ToolCallUpdate::default()
    }
}
