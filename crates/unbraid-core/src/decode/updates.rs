//! Turns a chunk into updates, and drops envelope fields that have not changed.

use std::borrow::Cow;

use super::{DecodePath, Decoder, Emitter, scan};
use crate::{
    Update,
    chunk::{Chunk, Element},
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
    /// Decodes an ordinary chunk, or foreign JSON that is as simple, by one scan; false if the event is neither.
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
        let Some(mut chunk) = scan::chunk(text, self.max_depth, &self.reasoning_keys) else {
            return false;
        };
        if !self.accepts_chunk(chunk.has_choices) {
            return false;
        }
        drop_long_names(&mut chunk);
        self.retain_changed_fields(&mut chunk);
        let has_envelope_update = chunk.usage.is_some() || !chunk.extra.is_empty();
        if !has_envelope_update {
            // A chunk with a changed envelope would make a template that never matches again.
            let template = self.templates.build(text, &chunk);
            self.templates.insert(template);
        }
        self.emit_scanned(chunk, has_envelope_update, sink);
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
        chunk.assign_indices(self.events);
        let mut remaining = chunk.elements.len();
        let ends_with_envelope = has_envelope_update || remaining == 0;
        for element in &mut chunk.elements {
            self.drop_repeated_reasoning(element);
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
            sink.update(&Update {
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
            });
        }
    }

    /// Emits the updates of a chunk; returns whether its envelope brought usage, an error or a changed field.
    pub(super) fn emit_chunk<'a>(
        &mut self,
        mut chunk: Chunk<'a>,
        emitter: &mut Emitter<'a, '_>,
    ) -> bool {
        drop_long_names(&mut chunk);
        chunk.assign_indices(emitter.event_index);
        emitter.warnings.append(&mut chunk.warnings);
        let has_no_choice = chunk.elements.is_empty();
        emitter.is_chunk |= chunk.has_choices || chunk.error.is_some();
        for mut element in std::mem::take(&mut chunk.elements) {
            self.drop_repeated_reasoning(&mut element);
            let mut update = element.into_update();
            update.id = chunk.id.clone();
            update.created = chunk.created;
            update.model = chunk.model.clone();
            update.is_chunk = true;
            if emitter.admit_choice_update(&mut update) {
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
        has_envelope_update
    }

    /// Drops the envelope fields that have the same value as in the event before.
    fn retain_changed_fields(&mut self, chunk: &mut Chunk<'_>) {
        let envelope = &mut self.envelope;
        chunk.extra.retain(|(key, raw)| envelope.record(key, raw));
        if !chunk.extra.is_empty() {
            // A template compares the envelope byte by byte with the values that were emitted last. Now these are others.
            self.templates.clear();
        }
    }

    /// Drops reasoning that comes from `reasoning_details` if the choice also sends it as text of its own (R4).
    fn drop_repeated_reasoning(&mut self, element: &mut Element<'_>) {
        let choice = element.update.choice.map_or(0, |choice| choice.0);
        if element.update.reasoning.is_none() {
            return;
        }
        let choices = &mut self.reasoning_text_choices;
        let sends_text = choices.contains(&choice);
        if element.details_only && sends_text {
            element.update.reasoning = None;
        } else if !element.details_only && !sends_text && choices.len() < MAX_CHOICES {
            choices.push(choice);
        }
    }
}
