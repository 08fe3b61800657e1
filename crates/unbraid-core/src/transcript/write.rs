//! What the machine, a transcript's only writer, does to it.

use super::{Kind, Record, Transcript};
use crate::{ChoiceEnd, Warning, event::Position};

impl Transcript {
    pub(crate) fn begun(&self) -> bool {
        !self.records.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, kind: Kind, position: Position, number: u32, text: &str) {
        if self.discarded {
            self.discarded_bytes += kind.written(text);
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
        self.role = Some(role.into());
    }

    /// Takes a finish reason; true if it is the first.
    pub(crate) fn set_finish(&mut self, raw: &str) -> bool {
        const KEPT: usize = 8; // a server that changes its mind more often tells nothing by it
        if self.finish_raw.len() < KEPT && !self.finish_raw.iter().any(|known| **known == *raw) {
            self.finish_raw.push(raw.into());
        }
        let first = self.finish.is_none();
        if first {
            self.finish = Some(raw.into());
        }
        first
    }

    pub(crate) fn set_end(&mut self, end: ChoiceEnd, position: Position) {
        self.push(Kind::End, position, 0, "");
        self.end = Some((end, self.records.len()));
    }

    /// Ends the record as lost, if it has no end, whatever its machine has come to.
    #[doc(hidden)]
    pub fn lose(&mut self, position: Position) {
        if self.end.is_none() {
            self.set_end(ChoiceEnd::Lost, position);
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning, position: Position, max: usize) {
        let number = u32::try_from(self.warnings.kept().len()).unwrap_or(u32::MAX);
        if self.end.is_none() && self.warnings.keep(&warning.with_choice(self.index), max) {
            self.push(Kind::Warning, position, number, "");
        }
    }
}
