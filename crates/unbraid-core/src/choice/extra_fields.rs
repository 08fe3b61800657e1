//! Unknown fields and log probabilities beside the text of a delta.

use std::slice;

use super::ChoiceMachine;
use crate::{
    event::Position,
    text_delta::{Extras, TextDelta},
    transcript::{Kind, Level, Transcript},
    update::is_audio,
};

impl ChoiceMachine {
    /// Appends a text delta and what arrived beside its text, in the order of an update.
    #[inline(never)]
    pub(super) fn apply_extras(
        &self,
        kind: Kind,
        number: u32,
        delta: &TextDelta<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let extras = &delta.extras;
        let is_call = kind == Kind::CallArguments;
        if !is_call {
            transcript.push(kind, position, number, delta.text);
        }
        if let Some(raw) = extras.logprobs {
            transcript.push(Kind::Logprobs, position, 0, raw);
        }
        if is_call {
            transcript.push(kind, position, number, delta.text);
        }
        self.extra_fields(extras, false, position, transcript);
    }

    /// Emits the unknown fields that changed as one object: those of the delta, then those of the choice.
    pub(super) fn extra_fields(
        &self,
        extras: &Extras<'_>,
        repeats: bool,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let mut changed = Changed::default();
        for (n, (key, raw)) in extras.fields.iter().enumerate() {
            let in_delta = n < extras.delta_field_count;
            let level = if in_delta {
                Level::Message
            } else {
                Level::Choice
            };
            if in_delta && transcript.is_blank_after_list(key, raw) {
                let message = "a value without content after a list was skipped";
                self.warn("C20", message, position, transcript);
                continue;
            }
            if (in_delta && is_audio(key, raw)) || !transcript.set_extra(level, key, raw, repeats) {
                continue;
            }
            if changed.fields().iter().any(|(known, _)| known == key) {
                transcript.push_fields(changed.fields(), changed.in_delta, position); // an object holds a name once
                changed = Changed::default();
            }
            changed.push(key, raw, in_delta);
        }
        transcript.push_fields(changed.fields(), changed.in_delta, position);
    }
}

/// The fields that changed. A single one, as most deltas have, needs no allocation.
#[derive(Default)]
struct Changed<'f> {
    first: Option<(&'f str, &'f str)>,
    /// All of them, if there are several.
    several: Vec<(&'f str, &'f str)>,
    in_delta: u32,
}

impl<'f> Changed<'f> {
    fn push(&mut self, key: &'f str, raw: &'f str, in_delta: bool) {
        self.in_delta += u32::from(in_delta);
        if self.fields().is_empty() {
            self.first = Some((key, raw));
        } else {
            self.several.extend(self.first.take());
            self.several.push((key, raw));
        }
    }

    fn fields(&self) -> &[(&'f str, &'f str)] {
        self.first.as_ref().map_or(&self.several, slice::from_ref)
    }
}
