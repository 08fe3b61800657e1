//! Turns a chunk into updates, and drops envelope fields that have not changed.

use std::borrow::Cow;

use super::{DecodePath, Decoder, Emitter, scan};
use crate::{
    ReasoningSource, Update,
    chunk::{Chunk, Element, ReasoningOrigin, recycled, recycled_elements},
    frame::{Frame, FrameKind},
    limits::{MAX_CHOICES, MAX_NAME_BYTES},
    text_delta::UpdateSink,
};

/// Drops a long id or model: each update of the chunk would carry a copy.
pub(super) fn drop_long_names(chunk: &mut Chunk<'_>) {
    drop_long_name(&mut chunk.id);
    drop_long_name(&mut chunk.model);
}

pub(super) fn drop_long_name(name: &mut Option<Cow<'_, str>>) {
    if name
        .as_ref()
        .is_some_and(|name| name.len() > MAX_NAME_BYTES)
    {
        *name = None;
    }
}

impl Decoder {
    /// Decodes an ordinary chunk by one scan; false if the event is not one.
    pub(super) fn decode_by_scan(&mut self, frame: &Frame<'_>, sink: &mut dyn UpdateSink) -> bool {
        let has_reserved_name = matches!(frame.event, Some(b"error" | b"ping"));
        // Strict mode has to check the types of all fields, and the scan skips some of them.
        if self.path != DecodePath::All
            || self.dialect.is_other()
            || self.strict
            || has_reserved_name
            || frame.kind != FrameKind::Event
        {
            return false;
        }
        // Invalid UTF-8 is replaced with a warning, which the scan cannot give.
        let Ok(text) = std::str::from_utf8(frame.data) else {
            return false;
        };
        let Some(mut chunk) = scan::chunk(
            text,
            self.max_depth,
            &self.reasoning_keys,
            &mut self.buffers,
        ) else {
            return false;
        };
        if !self.accepts_chunk(&chunk, frame.event) {
            return false;
        }
        self.is_text_stream |= chunk.is_text();
        // Before a template is made of it, which would keep the name for as long as the stream lasts.
        drop_long_names(&mut chunk);
        // Before unchanged fields are dropped: a template compares all fields with those of later chunks.
        let template = self.template_of(text, &chunk, true);
        let is_learned = template.is_some();
        if let Some(template) = template {
            self.templates.insert(template);
        }
        self.retain_changed_fields(&mut chunk);
        let has_envelope_update = chunk.usage.is_some() || !chunk.extra.is_empty();
        self.emit_scanned(chunk, has_envelope_update, sink);
        if is_learned {
            self.templates.continue_latest();
        }
        self.events += 1;
        self.scanned += 1;
        true
    }

    /// Emits the updates of a scanned chunk without moving them.
    ///
    /// Unlike [`emit_chunk`](Self::emit_chunk), it needs no [`Emitter`]: a scanned chunk is a whole event without errors,
    /// losses or warnings of its own, so the last update is known beforehand and none has to be held back.
    fn emit_scanned(
        &mut self,
        mut chunk: Chunk<'_>,
        has_envelope_update: bool,
        sink: &mut dyn UpdateSink,
    ) {
        chunk.assign_indices(self.events, &mut self.lacks_index);
        let mut remaining = chunk.elements.len();
        let ends_with_envelope = has_envelope_update || remaining == 0;
        for element in &mut chunk.elements {
            self.note_reasoning(element);
            element.merge_fields();
            remaining -= 1;
            let update = &mut element.update;
            update.event_index = self.events.into();
            update.last_of_event = remaining == 0 && !ends_with_envelope;
            // These strings usually borrow from the event, so that copying them allocates nothing.
            update.id.clone_from(&chunk.id);
            update.created = chunk.created;
            update.model.clone_from(&chunk.model);
            update.is_chunk = true;
            sink.update(update);
        }
        if ends_with_envelope {
            let update = Update {
                event_index: self.events.into(),
                last_of_event: true,
                id: chunk.id,
                created: chunk.created,
                model: chunk.model,
                usage: chunk.usage,
                metadata: chunk.extra,
                format: chunk.format,
                is_chunk: chunk.has_choices,
                ..Update::default()
            };
            sink.update(&update);
            // Moved back, so that the next chunk uses the same buffer.
            chunk.extra = update.metadata;
        }
        // Nearly every stream has a few events that no template decodes, at its start and at its end. Only one that has more
        // is worth a buffer that stays.
        const FEW: u64 = 4;
        if self.scanned >= FEW {
            self.buffers.elements = recycled_elements(chunk.elements);
        }
        self.buffers.extra = recycled(chunk.extra);
    }

    /// Emits the updates of a chunk.
    pub(super) fn emit_chunk<'a>(&mut self, mut chunk: Chunk<'a>, emitter: &mut Emitter<'a, '_>) {
        drop_long_names(&mut chunk);
        self.is_text_stream |= chunk.is_text();
        chunk.assign_indices(emitter.event_index, &mut self.lacks_index);
        emitter.warnings.append(&mut chunk.warnings);
        let has_no_choice = chunk.elements.is_empty();
        emitter.is_chunk |= chunk.has_choices || chunk.error.is_some();
        let mut begins_chunk = emitter.held.is_some();
        for mut element in std::mem::take(&mut chunk.elements) {
            self.note_reasoning(&mut element);
            let mut update = element.into_update();
            update.id = chunk.id.clone();
            update.created = chunk.created;
            update.model = chunk.model.clone();
            update.is_chunk = true;
            // Bounded here and not while the chunk is read, because one event may consist of many chunks.
            if emitter.admit_choice_update(&mut update) {
                update.begins_chunk = std::mem::take(&mut begins_chunk);
                emitter.push(update);
            }
        }
        self.retain_changed_fields(&mut chunk);
        let has_envelope_update =
            chunk.usage.is_some() || chunk.error.is_some() || !chunk.extra.is_empty();
        // An event has at least one update, even if all of its choices exceed a budget.
        let is_needed = has_envelope_update || has_no_choice || emitter.held.is_none();
        if is_needed && emitter.admit_stream_update() {
            emitter.push(Update {
                begins_chunk,
                id: chunk.id,
                created: chunk.created,
                model: chunk.model,
                usage: chunk.usage,
                error: chunk.error,
                metadata: chunk.extra,
                format: chunk.format,
                is_chunk: emitter.is_chunk,
                ..Update::default()
            });
        }
    }

    /// Drops the envelope fields that have the same value as in the event before.
    fn retain_changed_fields(&mut self, chunk: &mut Chunk<'_>) {
        let envelope = &mut self.envelope;
        chunk.extra.retain(|(key, raw)| envelope.record(key, raw));
    }

    /// Reports where the reasoning of a choice is from, and drops reasoning from `reasoning_details` if the choice also sends
    /// it as text of its own (R4).
    fn note_reasoning(&mut self, element: &mut Element<'_>) {
        let (Some(_), Some(origin)) = (&element.update.reasoning, element.reasoning_origin) else {
            return;
        };
        let choice = element.update.choice.map_or(0, |choice| choice.0);
        let choices = &mut self.reasoning_text_choices;
        let sends_text = choices.contains(&choice);
        let update = &mut element.update;
        match origin {
            ReasoningOrigin::Details if sends_text => update.reasoning = None,
            ReasoningOrigin::Details => update.reasoning_source = Some(ReasoningSource::Details),
            // Only the first text reports its source: later ones may match a template, which has none.
            ReasoningOrigin::Field(_) | ReasoningOrigin::ContentParts if sends_text => {}
            ReasoningOrigin::Field(rank) => {
                let name = self.reasoning_keys.get(rank).cloned();
                update.reasoning_source = name.map(ReasoningSource::Field);
            }
            ReasoningOrigin::ContentParts => {
                update.reasoning_source = Some(ReasoningSource::ContentParts);
            }
        }
        // Beyond the limit the router refuses the choice anyway, and the list is searched for each reasoning delta.
        if origin != ReasoningOrigin::Details && !sends_text && choices.len() < MAX_CHOICES {
            choices.push(choice);
        }
    }
}
