//! Unknown fields of a choice and of its deltas.

use super::ChoiceMachine;
use crate::{
    Update,
    event::Position,
    transcript::{Level, Transcript},
    update::is_audio,
};

impl ChoiceMachine {
    /// Emits the unknown fields that changed as one object: those of the delta, then those of the choice.
    pub(super) fn extra_fields(
        &self,
        update: &Update<'_>,
        repeats: bool,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let mut changed = Vec::new();
        let mut in_delta_count = 0;
        for (n, (key, raw)) in update.metadata.iter().enumerate() {
            let in_delta = n < update.delta_field_count;
            let level = if in_delta {
                Level::Message
            } else {
                Level::Choice
            };
            if (in_delta && is_audio(key, raw)) || !transcript.set_extra(level, key, raw, repeats) {
                continue;
            }
            if changed.iter().any(|(known, _)| *known == key) {
                transcript.push_fields(&changed, in_delta_count, position); // an object holds a name once
                (changed, in_delta_count) = (Vec::new(), 0);
            }
            in_delta_count += u32::from(in_delta);
            changed.push((key, raw));
        }
        transcript.push_fields(&changed, in_delta_count, position);
    }
}
