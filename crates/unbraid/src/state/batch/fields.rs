//! A piece of text or of arguments that arrived with unknown fields or log probabilities, which some servers send in each
//! chunk.
//!
//! An owned copy of such a delta would take an allocation for each of its parts. Here all parts are appended to the text
//! of the batch, and borrowed from it when the batch is applied.

use std::borrow::Cow;

use unbraid_core::{
    ChoiceIndex, CompletionKind, EventIndex,
    internal::{DeltaKind, Extras, TextDelta},
};

use super::{ASSISTANT, Batch};

/// A field and its raw JSON, in the text of the batch.
pub(super) type Field<'b> = (Cow<'b, str>, Cow<'b, str>);

/// Whether fields and log probabilities are too large for the text of a batch. That text grows by doubling, is kept for
/// the batches that follow, and exists twice while the transcript takes it over; an owned update is moved.
pub(super) fn is_large(fields: &[Field<'_>], logprobs: Option<&str>) -> bool {
    const LARGE: usize = 64 * 1024;
    let fields = fields.iter().map(|(key, raw)| key.len() + raw.len());
    fields.sum::<usize>() + logprobs.map_or(0, str::len) > LARGE
}

/// The parts of a delta in the text of a batch: its text, the key and the value of each field, the log probabilities.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldsEntry {
    text_kind: DeltaKind,
    kind: CompletionKind,
    assistant: bool,
    has_logprobs: bool,
    fields: u32,
    delta_fields: u32,
}

impl Batch {
    /// Appends the parts of a delta.
    pub(super) fn push_fields(&mut self, delta: &TextDelta<'_>) -> FieldsEntry {
        let extras = &delta.extras;
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX); // an event has fewer fields
        self.push_part(delta.text);
        for (key, raw) in extras.fields {
            self.push_part(key);
            self.push_part(raw);
        }
        if let Some(logprobs) = extras.logprobs {
            self.push_part(logprobs);
        }
        FieldsEntry {
            text_kind: delta.text_kind,
            kind: delta.kind,
            assistant: delta.role.is_some(),
            has_logprobs: extras.logprobs.is_some(),
            fields: count(extras.fields.len()),
            delta_fields: count(extras.delta_field_count),
        }
    }

    pub(super) fn push_part(&mut self, part: &str) {
        self.text.push_str(part);
        self.part_ends.push(self.text.len());
    }
}

/// The parts of the text of a batch, one after another.
pub(super) struct Parts<'b, I> {
    text: &'b str,
    start: usize,
    ends: I,
}

impl<'b, I: Iterator<Item = usize>> Parts<'b, I> {
    pub(super) fn new(text: &'b str, start: usize, ends: I) -> Self {
        Self { text, start, ends }
    }

    /// Where the next part starts.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The next part. One that is missing reads as an empty text: that would be a bug, but one that costs a text and not the
    /// task of a consumer.
    pub(super) fn next(&mut self) -> &'b str {
        let end = self.ends.next().unwrap_or(self.start);
        let part = self.text.get(self.start..end).unwrap_or_default();
        self.start = end;
        part
    }
}

impl FieldsEntry {
    /// Reads the parts after the text: the fields, and the log probabilities.
    pub(super) fn read<'b>(
        self,
        parts: &mut Parts<'b, impl Iterator<Item = usize>>,
        fields: &mut Vec<Field<'b>>,
    ) -> Option<&'b str> {
        fields.clear();
        fields.extend((0..self.fields).map(|_| (parts.next().into(), parts.next().into())));
        self.has_logprobs.then(|| parts.next())
    }

    /// What arrived beside the text.
    pub(super) fn extras<'d>(
        self,
        fields: &'d [Field<'d>],
        logprobs: Option<&'d str>,
    ) -> Extras<'d> {
        Extras::default()
            .with_fields(fields)
            .with_delta_field_count(self.delta_fields as usize)
            .with_logprobs(logprobs)
    }

    /// The delta without that.
    pub(super) fn delta<'d>(
        self,
        event: EventIndex,
        choice: ChoiceIndex,
        text: &'d str,
    ) -> TextDelta<'d> {
        TextDelta::new(event, choice, self.text_kind, text)
            .with_kind(self.kind)
            .with_role(self.assistant.then_some(ASSISTANT))
    }
}

#[cfg(test)]
mod tests {
    use unbraid_core::{
        CompletionKind, Config, Position, Transcript, Update,
        internal::{ChoiceMachine, DeltaKind, TextDelta},
    };

    use super::*;
    use crate::state::batch::{Delta, Work};

    fn update(text: &'static str, fields: &[(&'static str, &'static str)]) -> Update<'static> {
        let pair = |(key, raw): &(&'static str, &'static str)| ((*key).into(), (*raw).into());
        Update::default()
            .with_choice(ChoiceIndex(0))
            .with_metadata(fields.iter().map(pair).collect())
            .with_delta_field_count(fields.len() / 2)
            .with_content(text)
    }

    #[test]
    fn large_fields_are_not_copied_into_the_text_of_a_batch() {
        let raw = format!("\"{}\"", "x".repeat(65 * 1024));
        let with_text = Update::default().with_choice(ChoiceIndex(0));
        let updates = [
            with_text
                .clone()
                .with_content("a")
                .with_logprobs(raw.as_str()),
            with_text
                .clone()
                .with_metadata(vec![("x".into(), raw.as_str().into())]),
            with_text
                .with_finish_reason("stop")
                .with_logprobs(raw.as_str()),
        ];
        for update in &updates {
            let mut batch = Batch::default();
            batch.push_delta(Delta::Update(update), Position::default());
            assert!(batch.text.len() < 64, "{update:?}");
        }
    }

    #[test]
    fn texts_with_fields_apply_as_their_updates_do() {
        let updates = [
            update("a", &[("x", "1"), ("y", "2")]).with_role("assistant"),
            update("b", &[("x", "1"), ("y", "[3]")]).with_logprobs("{\"content\":[1]}"),
            update("c", &[]),
            update("d", &[("x", "\"é\"")]),
            Update::default()
                .with_choice(ChoiceIndex(0))
                .with_reasoning("r")
                .with_logprobs("{}"),
            update("", &[("x", "2")]),
            Update::default().with_choice(ChoiceIndex(0)),
            Update::default()
                .with_choice(ChoiceIndex(0))
                .with_refusal("no")
                .with_finish_reason("stop"),
            Update::default()
                .with_role("assistant")
                .with_finish_reason("length"),
            update("", &[]).with_finish_reason(""),
        ];
        let config = Config::default();
        let new = || Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
        let (mut expected, mut machine) = (new(), ChoiceMachine::new(config.clone()));
        let (mut batch, mut later) = (Batch::default(), Batch::default());
        for (n, update) in updates.iter().enumerate() {
            let position = Position::default();
            machine.apply(Delta::Update(update), position, &mut expected);
            let batch = if n < 2 { &mut batch } else { &mut later };
            batch.push_delta(Delta::Update(update), position);
        }
        let text = TextDelta::new(0.into(), ChoiceIndex(0), DeltaKind::Content, "e");
        machine.apply(Delta::Text(&text), Position::default(), &mut expected);
        later.push_delta(Delta::Text(&text), Position::default());
        let is_boxed = |batch: &Batch| {
            batch
                .entries
                .iter()
                .any(|entry| matches!(entry.work, Work::Update(_)))
        };
        assert!(!is_boxed(&batch) && !is_boxed(&later));

        batch.append(&mut later);
        let (mut actual, mut machine) = (new(), ChoiceMachine::new(config));
        batch.apply(&mut machine, &mut actual);
        let events = |transcript: &Transcript| -> Vec<String> {
            let numbers = 0..transcript.event_count();
            numbers
                .filter_map(|n| Some(transcript.event(n)?.to_string()))
                .collect()
        };
        assert_eq!(events(&actual), events(&expected));
        assert!(batch.is_empty() && batch.part_ends.is_empty());
    }
}
