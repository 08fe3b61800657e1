//! Texts of one kind, copied out of a transcript many at once.

use super::{Kind, Transcript};
use crate::CallIndex;

/// Which texts are wanted.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Content,
    Reasoning,
    Refusal,
    /// The arguments of one call.
    Arguments(CallIndex),
}

impl TextKind {
    fn wants(self, kind: Kind, number: u32) -> bool {
        match self {
            Self::Content => kind == Kind::Content,
            Self::Reasoning => kind == Kind::Reasoning,
            Self::Refusal => kind == Kind::Refusal,
            Self::Arguments(call) => kind == Kind::CallArguments && number == call.0,
        }
    }
}

/// Which events are wanted.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFilter {
    All,
    /// Roles, and the text and calls that a message is made of.
    Message,
    ToolCallStarts,
    Logprobs,
}

impl EventFilter {
    fn wants(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::Message => matches!(
                kind,
                Kind::Start | Kind::Role | Kind::Content | Kind::CallStart | Kind::CallArguments
            ),
            Self::ToolCallStarts => kind == Kind::CallStart,
            Self::Logprobs => kind == Kind::Logprobs,
        }
    }
}

impl Transcript {
    /// The number of the next event of a kind, from `seq` on; that of the next to happen, if there is none.
    #[doc(hidden)]
    #[must_use]
    pub fn seek(&self, of: EventFilter, seq: usize) -> usize {
        let visible = self.event_count();
        let rest = self.records.get(seq..visible).unwrap_or_default();
        let found = rest.iter().position(|record| of.wants(record.kind));
        found.map_or_else(|| visible.max(seq), |at| seq + at)
    }

    /// Copies texts from event `seq` on, until `text` has grown past `max`, and where each of them ends; the next event
    /// to look at.
    #[doc(hidden)]
    pub fn gather(
        &self,
        of: TextKind,
        seq: usize,
        max: usize,
        text: &mut String,
        ends: &mut Vec<usize>,
    ) -> usize {
        let records = self
            .records
            .get(..self.event_count())
            .unwrap_or(&self.records);
        if records.len() <= seq {
            return seq;
        }
        let before = seq.checked_sub(1).and_then(|last| records.get(last));
        let mut start = before.map_or(0, |record| record.text_end as usize);
        let mut at = seq;
        // Texts that stand one behind the other are copied as one; `start` is where the next run begins.
        let mut end = start;
        for record in records.get(seq..).unwrap_or_default() {
            if text.len() + (end - start) >= max {
                break;
            }
            at += 1;
            if of.wants(record.kind, record.number) {
                end = record.text_end as usize;
                ends.push(text.len() + (end - start));
            } else {
                text.push_str(self.text.get(start..end).unwrap_or(""));
                (start, end) = (record.text_end as usize, record.text_end as usize);
            }
        }
        text.push_str(self.text.get(start..end).unwrap_or(""));
        at
    }

    /// Whether event `seq` is there to read.
    #[inline]
    pub(crate) fn tells(&self, seq: usize) -> bool {
        let record = self.records.get(seq).filter(|_| seq < self.event_count());
        record.is_some_and(|record| match record.kind {
            Kind::Content | Kind::Reasoning | Kind::Refusal | Kind::CallArguments => true,
            Kind::Start
            | Kind::Role
            | Kind::ContentDone
            | Kind::ReasoningDone
            | Kind::RefusalDone
            | Kind::CallStart
            | Kind::CallDone
            | Kind::Audio
            | Kind::Logprobs
            | Kind::Metadata
            | Kind::Finish
            | Kind::Warning
            | Kind::End => self.event(seq).is_some(),
        })
    }
}
