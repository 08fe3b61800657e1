//! The updates of a chunk that matches a template.

use std::{borrow::Cow, ops::Range};

use super::{MatchBuffers, Prototype, Slot, Template, TemplateMatch};
use crate::{
    ChoiceIndex, EventIndex, Fragment, ToolCallUpdate, Update,
    chunk::{Pairs, recycled},
    decode::envelope::EnvelopeMemo,
    text_delta::{DeltaKind, TextDelta, UpdateSink},
};

impl Template {
    /// The text delta of a matching chunk, if it says everything.
    #[inline]
    pub(in crate::decode) fn text_delta<'t>(
        &'t self,
        event_index: EventIndex,
        choice: ChoiceIndex,
        text: &'t str,
    ) -> Option<TextDelta<'t>> {
        let Prototype { update, .. } = &*self.prototype;
        let delta = TextDelta {
            event_index,
            choice,
            kind: update.kind,
            role: update.role.as_deref(),
            text_kind: self.text_kind,
            text,
        };
        Some(delta).filter(|_| self.is_text_only)
    }

    /// Whether the chunks have no unknown field in the envelope that could have changed in this version of it.
    #[inline]
    pub(in crate::decode) fn knows_envelope(&self, version: u64) -> bool {
        self.prototype.extra.is_empty() || self.known_version == Some(version)
    }

    /// Whether two matching chunks may differ in their time of creation.
    #[inline]
    pub(in crate::decode) fn varies_created(&self, found: &TemplateMatch<'_>) -> bool {
        found.created.is_some()
    }

    /// Emits the updates of a matching chunk: that of the choice, and that of the envelope if it brings anything. Returns
    /// the chunk's time of creation, and whether all unknown fields of the envelope were known.
    pub(in crate::decode) fn emit<T: UpdateSink + ?Sized>(
        &self,
        found: &TemplateMatch<'_>,
        text: &str,
        event_index: EventIndex,
        envelope: &mut EnvelopeMemo,
        buffers: &mut MatchBuffers,
        sink: &mut T,
    ) -> (Option<u64>, bool) {
        let MatchBuffers { spans, fields } = buffers;
        let metadata = recycled(std::mem::take(fields));
        let mut update = self.update(ChoiceIndex(found.index), text, metadata);
        update.event_index = event_index;
        let mut usage = self.prototype.usage.as_deref();
        let mut changed = Vec::new();
        update.created = found.created.or(update.created);
        let kept = self
            .holes
            .iter()
            .map(|(hole, _)| *hole)
            .filter(|hole| hole.is_value());
        let kept = kept.zip(&*spans);
        let values = || {
            let value = |(hole, span): (Slot, &Range<usize>)| {
                (hole, found.line.get(span.clone()).unwrap_or_default())
            };
            kept.clone().map(value)
        };
        for (hole, value) in values() {
            let borrowed = Some(Cow::Borrowed(value));
            match hole {
                Slot::Id => update.id = borrowed,
                Slot::Model => update.model = borrowed,
                Slot::Logprobs => update.logprobs = borrowed,
                Slot::Usage => usage = Some(value),
                Slot::Field(number, _) => {
                    if let Some((_, raw)) = update.metadata.get_mut(usize::from(number)) {
                        *raw = Cow::Borrowed(value);
                    }
                }
                _ => {}
            }
        }
        let has_extra_hole = self
            .holes
            .iter()
            .any(|(hole, _)| matches!(hole, Slot::Extra(_)));
        let is_compared = has_extra_hole || !self.knows_envelope(envelope.version());
        for (number, (key, raw)) in (0..).zip(&self.prototype.extra).filter(|_| is_compared) {
            let mut varying = values().filter(|(hole, _)| *hole == Slot::Extra(number));
            let raw = varying.next().map_or(&**raw, |(_, value)| value);
            if envelope.record(key, raw) {
                changed.push((Cow::Borrowed(&**key), Cow::Borrowed(raw)));
            }
        }
        let is_known = changed.is_empty();
        update.last_of_event = usage.is_none() && is_known;
        sink.update(&update);
        *fields = recycled(std::mem::take(&mut update.metadata));
        if !update.last_of_event {
            sink.update(&Update {
                event_index,
                last_of_event: true,
                id: update.id.take(),
                created: update.created,
                model: update.model.take(),
                usage: usage.map(Cow::Borrowed),
                metadata: changed,
                is_chunk: true,
                ..Update::default()
            });
        }
        (update.created, is_known)
    }

    /// The update of the choice, with the values of the prototype.
    fn update<'t>(
        &'t self,
        choice: ChoiceIndex,
        text: &'t str,
        mut metadata: Pairs<'t>,
    ) -> Update<'t> {
        let prototype = &self.prototype.update;
        metadata.extend(prototype.metadata.iter().map(borrowed_pair));
        let fragment = Fragment::from(text);
        let mut update = Update {
            last_of_event: true,
            is_chunk: true,
            choice: Some(choice),
            kind: prototype.kind,
            id: borrowed(&prototype.id),
            created: prototype.created,
            model: borrowed(&prototype.model),
            role: borrowed(&prototype.role),
            logprobs: borrowed(&prototype.logprobs),
            metadata,
            delta_field_count: prototype.delta_field_count,
            ..Update::default()
        };
        match self.text_kind {
            DeltaKind::Content => update.content = Some(fragment),
            DeltaKind::Reasoning => update.reasoning = Some(fragment),
            DeltaKind::Refusal => update.refusal = Some(fragment),
            DeltaKind::Arguments(_) => {
                update.tool_calls = prototype.tool_calls.iter().map(borrowed_call).collect();
                if let Some(call) = update.tool_calls.first_mut() {
                    call.arguments = Some(fragment);
                }
            }
        }
        update
    }
}

fn borrowed_pair<'t>(
    pair: &'t (Cow<'static, str>, Cow<'static, str>),
) -> (Cow<'t, str>, Cow<'t, str>) {
    (Cow::Borrowed(&pair.0), Cow::Borrowed(&pair.1))
}

fn borrowed<'t>(text: &'t Option<Cow<'static, str>>) -> Option<Cow<'t, str>> {
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
