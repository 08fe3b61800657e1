//! What the reader passes to a choice: not a queue of messages but one batch, which grows until it is applied.
//!
//! The router has already counted the bytes of a batch against the limits.

mod fields;
mod update_parts;

use std::fmt;

use fields::{FieldsEntry, Parts};
use unbraid_core::{
    ChoiceEnd, CompletionKind, Position, Transcript, Update,
    internal::{ChoiceMachine, Delta, DeltaKind, TextDelta},
};
use update_parts::UpdateEntry;

/// Text that makes a choice's machine panic in tests, as a bug would.
#[cfg(test)]
pub(crate) const PANIC: &str = "panic on purpose";

const ASSISTANT: &str = "assistant";

/// Work for the machine of one choice, in order.
#[derive(Default)]
pub(crate) struct Batch {
    /// The texts of all text entries, one after another, so that a text delta costs no allocation.
    text: String,
    entries: Vec<BatchEntry>,
    /// Where each part of the updates in `text` ends.
    part_ends: Vec<usize>,
    /// Whether any entry is not a piece of text.
    mixed: bool,
}

/// One entry of a batch, and where it belongs in the stream.
#[derive(Debug)]
struct BatchEntry {
    position: Position,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// A piece of text. Its bytes are those of the batch's text from the end of the previous piece up to `end`.
    Text {
        text_kind: DeltaKind,
        kind: CompletionKind,
        /// Whether the delta repeats the role `assistant`, the only one that servers repeat.
        assistant: bool,
        end: usize,
    },
    /// A piece of text or of arguments with unknown fields or log probabilities. They are in the batch's text, too.
    Fields(FieldsEntry),
    /// An update without calls that is more than a piece of text. Its parts are in the batch's text, too.
    Parts(UpdateEntry),
    Update(Box<Update<'static>>),
    Late(Box<Update<'static>>),
    Finish(ChoiceEnd),
    FinishWithReason,
    FinishWithError(ChoiceEnd),
}

/// `Debug` shows a count only, because the text is what a model wrote.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether it has grown so large that it must be applied before more is added.
    pub(crate) fn is_large(&self) -> bool {
        const LARGE: usize = 16 * 1024; // about 8 MiB if every entry is a whole update
        self.entries.len() >= LARGE
    }

    /// Whether it holds pieces of text and nothing else.
    pub(crate) fn is_text(&self) -> bool {
        !self.mixed
    }

    /// The one text that all entries continue, and the role that all of them name; `None` if the batch holds more.
    pub(crate) fn single_text(&self) -> Option<(DeltaKind, Option<&'static str>)> {
        let text_of = |entry: &BatchEntry| match entry.work {
            Work::Text {
                text_kind,
                assistant,
                ..
            } => Some((text_kind, assistant.then_some(ASSISTANT))),
            Work::Fields(_)
            | Work::Parts(_)
            | Work::Update(_)
            | Work::Late(_)
            | Work::Finish(_)
            | Work::FinishWithReason
            | Work::FinishWithError(_) => None,
        };
        let (first, rest) = self.entries.split_first()?;
        let single = text_of(first);
        single.filter(|_| rest.iter().all(|entry| text_of(entry) == single))
    }

    fn push(&mut self, position: Position, work: Work) {
        self.mixed = true;
        self.push_entry(BatchEntry { position, work });
    }

    fn push_entry(&mut self, entry: BatchEntry) {
        if self.entries.capacity() == 0 {
            // A vector would begin with room for four, and many servers send one event at a time.
            self.entries.reserve_exact(1);
        }
        self.entries.push(entry);
    }

    /// Appends a delta. An update that brings one piece of text is kept as that text.
    pub(crate) fn push_delta(&mut self, delta: Delta<'_>, position: Position) {
        match delta {
            Delta::Text(text) => self.push_text(text, position),
            Delta::Update(update) => match TextDelta::of_update(update) {
                Some(text) => self.push_text(&text, position),
                None => {
                    let work = match self.push_update_parts(update) {
                        Some(entry) => Work::Parts(entry),
                        None => Work::Update(without_envelope(update)),
                    };
                    self.push(position, work);
                }
            },
        }
    }

    fn push_text(&mut self, delta: &TextDelta<'_>, position: Position) {
        // An entry has one bit for the role in place of a string, and no place for fields of megabytes.
        if delta.role.is_some_and(|role| role != ASSISTANT)
            || fields::is_large(delta.extras.fields, delta.extras.logprobs)
        {
            let update = Box::new(delta.to_update().into_owned());
            return self.push(position, Work::Update(update));
        }
        // Copied once here: the read that the text borrows from is gone when the batch is applied.
        if !delta.extras.is_empty() {
            let entry = self.push_fields(delta);
            return self.push(position, Work::Fields(entry));
        }
        self.text.push_str(delta.text);
        let work = Work::Text {
            text_kind: delta.text_kind,
            kind: delta.kind,
            assistant: delta.role.is_some(),
            end: self.text.len(),
        };
        self.push_entry(BatchEntry { position, work });
    }

    /// Appends an update that arrived after the choice's end.
    pub(crate) fn push_late(&mut self, update: &Update<'_>, position: Position) {
        self.push(position, Work::Late(without_envelope(update)));
    }

    pub(crate) fn push_finish(&mut self, end: ChoiceEnd, position: Position) {
        self.push(position, Work::Finish(end));
    }

    pub(crate) fn push_finish_with_reason(&mut self, position: Position) {
        self.push(position, Work::FinishWithReason);
    }

    pub(crate) fn push_finish_with_error(&mut self, end: ChoiceEnd, position: Position) {
        self.push(position, Work::FinishWithError(end));
    }

    /// Passes every entry to the machine. The batch keeps its buffers for the entries that follow.
    pub(crate) fn apply(&mut self, machine: &mut ChoiceMachine, transcript: &mut Transcript) {
        #[cfg(test)]
        before_apply(&self.text);
        let mut start = 0;
        let mut part_ends = self.part_ends.drain(..);
        let mut fields = Vec::new();
        for BatchEntry { position, work } in self.entries.drain(..) {
            match work {
                Work::Text {
                    text_kind,
                    kind,
                    assistant,
                    end,
                } => {
                    let text = self.text.get(start..end).unwrap_or("");
                    // Not stored with the entry, because a batch belongs to one choice.
                    let choice = transcript.index();
                    let delta = TextDelta::new(position.event, choice, text_kind, text)
                        .with_kind(kind)
                        .with_role(assistant.then_some(ASSISTANT));
                    machine.apply(Delta::Text(&delta), position, transcript);
                    start = end;
                }
                Work::Fields(entry) => {
                    let mut parts = Parts::new(&self.text, start, &mut part_ends);
                    let text = parts.next();
                    let logprobs = entry.read(&mut parts, &mut fields);
                    start = parts.start();
                    let extras = entry.extras(&fields, logprobs);
                    let delta = entry.delta(position.event, transcript.index(), text);
                    let delta = delta.with_extras(extras);
                    machine.apply(Delta::Text(&delta), position, transcript);
                }
                Work::Parts(entry) => {
                    let mut parts = Parts::new(&self.text, start, &mut part_ends);
                    let update = entry.update(&mut parts);
                    machine.apply(Delta::Update(&update), position, transcript);
                    start = parts.start();
                }
                Work::Update(update) => {
                    machine.apply(Delta::Update(&update), position, transcript);
                }
                Work::Late(update) => machine.apply_late(&update, position, transcript),
                Work::Finish(end) => machine.finish(end, position, transcript),
                Work::FinishWithReason => machine.finish_with_reason(position, transcript),
                Work::FinishWithError(end) => {
                    machine.finish_with_error(end, position, transcript);
                }
            }
        }
        // The buffers keep their memory, which is bounded: a batch that has grown large is applied before more is added.
        drop((part_ends, fields));
        self.text.clear();
        self.mixed = false;
    }

    /// The position of the last entry.
    pub(crate) fn last_position(&self) -> Option<Position> {
        self.entries.last().map(|entry| entry.position)
    }

    /// Moves the entries of another batch to the end of this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            // The two exchange their buffers, so that in a steady stream neither side allocates.
            return std::mem::swap(self, other);
        }
        let offset = self.text.len();
        self.text.push_str(&other.text);
        let part_ends = other.part_ends.drain(..).map(|end| end + offset);
        self.part_ends.extend(part_ends);
        self.entries
            .extend(other.entries.drain(..).map(|mut entry| {
                // `Fields` and `Parts` find their parts by `part_ends`, and all other work owns what it needs.
                if let Work::Text { end, .. } = &mut entry.work {
                    *end += offset;
                }
                entry
            }));
        other.text.clear();
        self.mixed |= std::mem::take(&mut other.mixed);
    }
}

/// A hook for tests, with a text that is about to be applied.
#[cfg(test)]
pub(super) fn before_apply(text: &str) {
    assert!(!text.contains(PANIC), "{PANIC}");
    crate::tests::large::in_apply(text);
}

/// The update as a batch keeps it, without the envelope: that belongs to the stream, and no machine reads it.
fn without_envelope(update: &Update<'_>) -> Box<Update<'static>> {
    let mut kept = update.clone();
    (kept.id, kept.model, kept.warnings) = (None, None, Vec::new());
    Box::new(kept.into_owned())
}
