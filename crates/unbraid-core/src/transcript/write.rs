//! The methods of the choice's machine, a transcript's only writer.

use std::sync::{Arc, LazyLock};

use super::{CallEntry, Kind, Moment, Record, Transcript};
use crate::{CallIndex, ChoiceEnd, EventIndex, ReasoningSource, Warning, event::Position};

impl Transcript {
    /// Whether the choice's first event was written.
    pub(crate) fn has_started(&self) -> bool {
        !self.records.is_empty()
    }

    /// Makes room for what every choice has, so that a short one allocates once.
    pub(crate) fn reserve(&mut self) {
        const TEXT_BYTES: usize = 32;
        /// The start, a delta, the finish reason, and the events at the end.
        const RECORDS: usize = 6;
        if self.discarded {
            return;
        }
        self.text.reserve_exact(TEXT_BYTES);
        self.records.reserve_exact(RECORDS);
    }

    /// The moment after the last record, those after the end included.
    pub(crate) fn moment(&self, event: EventIndex) -> Moment {
        Moment {
            records: self.records.len(),
            event,
        }
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> &[CallEntry] {
        &self.calls
    }

    /// One call, to be changed.
    pub(crate) fn call_mut(&mut self, call: usize) -> Option<&mut CallEntry> {
        self.calls.get_mut(call)
    }

    /// Adds a call; the result is its slot.
    pub(crate) fn open_call(&mut self, call: CallEntry) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Notes which texts (reasoning, content, refusal, the transcript of the audio) end in half a character that arrived after the
    /// end.
    pub(crate) fn set_late_halves(&mut self, halves: [bool; 4]) {
        self.late_halves = if self.discarded { [false; 4] } else { halves };
    }

    /// Marks all calls as changed after the end, so that the message checks them again.
    pub(crate) fn mark_calls_late(&mut self) {
        for call in &mut self.calls {
            call.late = true;
        }
    }

    /// Appends an event with its text.
    #[inline]
    pub(crate) fn push(&mut self, kind: Kind, position: Position, number: u32, text: &str) {
        if self.discarded {
            self.discarded_bytes += kind.model_bytes(text);
            return;
        }
        self.text.push_str(text);
        let text_end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.records.push(Record {
            event: position.event,
            update: position.update,
            text_end,
            number,
            kind,
        });
    }

    pub(crate) fn set_role(&mut self, role: &str) {
        self.role = Some(shared(role));
    }

    /// Records where the reasoning is from. The first source counts, but text replaces details, which only repeat it (R4).
    pub(crate) fn set_reasoning_source(&mut self, source: &ReasoningSource) {
        match self.reasoning_source {
            None | Some(ReasoningSource::Details) => self.reasoning_source = Some(source.clone()),
            Some(
                ReasoningSource::Field(_)
                | ReasoningSource::ContentParts
                | ReasoningSource::ThinkTags,
            ) => {}
        }
    }

    /// Records a finish reason; true if it is the first.
    pub(crate) fn set_finish(&mut self, raw: &str) -> bool {
        const KEPT: usize = 8; // more different reasons carry no information
        let known = self.finish_reasons();
        if known.len() < KEPT && !known.iter().any(|known| **known == *raw) {
            self.reasons.push(shared(raw));
        }
        let first = self.finish.is_none();
        if first {
            self.finish = Some(raw.into());
        }
        first
    }

    pub(crate) fn set_end(&mut self, end: ChoiceEnd, first_cut: CallIndex, position: Position) {
        self.first_cut = first_cut;
        self.push(Kind::End, position, 0, "");
        self.end = Some((end, self.records.len()));
    }

    /// Ends the choice as lost, if it has no end.
    #[doc(hidden)]
    pub fn lose(&mut self, position: Position) {
        if self.end.is_none() {
            self.set_end(ChoiceEnd::Lost, CallIndex(0), position);
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning, position: Position, max: usize) {
        let number = u32::try_from(self.warnings.kept().len()).unwrap_or(u32::MAX);
        if self.end.is_none() && self.warnings.keep(&warning.with_choice(self.index), max) {
            self.push(Kind::Warning, position, number, "");
        }
    }
}

/// The names that nearly every choice has are allocated once for the process.
fn shared(name: &str) -> Arc<str> {
    static NAMES: LazyLock<[Arc<str>; 4]> =
        LazyLock::new(|| ["assistant", "stop", "length", "tool_calls"].map(Arc::from));
    let known = NAMES.iter().find(|known| ***known == *name);
    known.map_or_else(|| name.into(), Arc::clone)
}
