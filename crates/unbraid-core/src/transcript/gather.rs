//! Copies many texts of one kind out of a transcript at once.

use super::{Kind, Transcript};
use crate::CallIndex;

/// Which texts to copy.
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
    fn matches(self, kind: Kind, number: u32) -> bool {
        match self {
            Self::Content => kind == Kind::Content,
            Self::Reasoning => kind == Kind::Reasoning,
            Self::Refusal => kind == Kind::Refusal,
            Self::Arguments(call) => kind == Kind::CallArguments && number == call.0,
        }
    }
}

/// Which events to find.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFilter {
    All,
    /// Roles, text and calls: the parts of a message.
    Message,
    ToolCallStarts,
    Logprobs,
}

impl EventFilter {
    fn matches(self, kind: Kind) -> bool {
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
    /// The number of the next event that the filter accepts, from `seq` on. If there is none, the number of the event that
    /// will happen next.
    #[doc(hidden)]
    #[must_use]
    pub fn seek(&self, filter: EventFilter, seq: usize) -> usize {
        let visible = self.event_count();
        let rest = self.records.get(seq..visible).unwrap_or_default();
        let found = rest.iter().position(|record| filter.matches(record.kind));
        found.map_or_else(|| visible.max(seq), |offset| seq + offset)
    }

    /// Copies texts from event `seq` on until `text` is longer than `max`, and passes the end of each to `end_of_text`. Returns
    /// the number of the next event to read.
    #[doc(hidden)]
    pub fn gather(
        &self,
        kind: TextKind,
        seq: usize,
        max: usize,
        text: &mut String,
        mut end_of_text: impl FnMut(usize),
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
        let mut next = seq;
        // Adjacent texts are copied as one run. `start` is where the next run begins.
        let mut end = start;
        for record in records.get(seq..).unwrap_or_default() {
            if text.len() + (end - start) >= max {
                break;
            }
            next += 1;
            if kind.matches(record.kind, record.number) {
                end = record.text_end as usize;
                end_of_text(text.len() + (end - start));
            } else {
                text.push_str(self.text.get(start..end).unwrap_or(""));
                (start, end) = (record.text_end as usize, record.text_end as usize);
            }
        }
        text.push_str(self.text.get(start..end).unwrap_or(""));
        next
    }

    /// The text of the last event so far, if its number is `seq` and it is of this kind.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn only_text(&self, kind: TextKind, seq: usize) -> Option<&str> {
        let record = self.records.get(seq)?;
        let is_only = self.event_count() == seq + 1 && kind.matches(record.kind, record.number);
        is_only.then(|| self.text_of(seq))
    }

    /// Whether event `seq` can be read.
    #[inline]
    pub(crate) fn has_event(&self, seq: usize) -> bool {
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
