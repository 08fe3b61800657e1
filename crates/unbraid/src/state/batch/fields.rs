//! What nearly all updates bring beside a piece of text alone: the role, the finish reason, unknown fields, or log
//! probabilities.
//!
//! An owned copy of such an update would take an allocation for each of its parts. Here all parts are appended to the text
//! of the batch, and borrowed from it when the batch is applied.

use std::borrow::Cow;

use unbraid_core::{ChoiceIndex, CompletionKind, Fragment, Update};

use super::{ASSISTANT, Batch, has_other_parts, is_whole};

/// The parts of an update in the text of a batch: its text, the key and the value of each field, the log probabilities,
/// the finish reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldsEntry {
    text_kind: Option<TextKind>,
    kind: CompletionKind,
    choice: Option<ChoiceIndex>,
    assistant: bool,
    has_logprobs: bool,
    has_finish_reason: bool,
    fields: usize,
    delta_fields: usize,
}

#[derive(Debug, Clone, Copy)]
enum TextKind {
    Content,
    Reasoning,
    Refusal,
}

impl Batch {
    /// Appends the parts of an update; `None` if it holds anything else.
    pub(super) fn push_fields(&mut self, update: &Update<'_>) -> Option<FieldsEntry> {
        let role = update.role.as_deref();
        if has_other_parts(update) || role.is_some_and(|role| role != ASSISTANT) {
            return None;
        }
        let texts = [
            (TextKind::Content, &update.content),
            (TextKind::Reasoning, &update.reasoning),
            (TextKind::Refusal, &update.refusal),
        ];
        let mut texts = texts
            .into_iter()
            .filter_map(|(kind, text)| Some((kind, text.as_ref()?)));
        let text = texts.next();
        if texts.next().is_some() || text.is_some_and(|(_, text)| !is_whole(text)) {
            return None;
        }
        if let Some((_, text)) = text {
            self.push_part(&text.text);
        }
        for (key, raw) in &update.metadata {
            self.push_part(key);
            self.push_part(raw);
        }
        if let Some(logprobs) = &update.logprobs {
            self.push_part(logprobs);
        }
        if let Some(reason) = &update.finish_reason {
            self.push_part(reason);
        }
        Some(FieldsEntry {
            text_kind: text.map(|(kind, _)| kind),
            kind: update.kind,
            choice: update.choice,
            assistant: role.is_some(),
            has_logprobs: update.logprobs.is_some(),
            has_finish_reason: update.finish_reason.is_some(),
            fields: update.metadata.len(),
            delta_fields: update.delta_field_count,
        })
    }

    fn push_part(&mut self, part: &str) {
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

    fn next(&mut self) -> Cow<'b, str> {
        let end = self.ends.next().unwrap_or(self.start);
        let part = self.text.get(self.start..end).unwrap_or_default();
        self.start = end;
        Cow::Borrowed(part)
    }
}

impl FieldsEntry {
    /// The update, which borrows from the text of the batch.
    pub(super) fn update<'b>(
        self,
        parts: &mut Parts<'b, impl Iterator<Item = usize>>,
    ) -> Update<'b> {
        let text = self.text_kind.map(|_| Fragment::from(parts.next()));
        let fields = (0..self.fields).map(|_| (parts.next(), parts.next()));
        let mut update = Update::default()
            .with_kind(self.kind)
            .with_choice(self.choice)
            .with_metadata(fields.collect())
            .with_delta_field_count(self.delta_fields)
            .with_is_chunk(true);
        match self.text_kind {
            None => {}
            Some(TextKind::Content) => update.content = text,
            Some(TextKind::Reasoning) => update.reasoning = text,
            Some(TextKind::Refusal) => update.refusal = text,
        }
        update.role = self.assistant.then_some(Cow::Borrowed(ASSISTANT));
        update.logprobs = self.has_logprobs.then(|| parts.next());
        update.finish_reason = self.has_finish_reason.then(|| parts.next());
        update
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
        let (mut expected, mut machine) = (new(), ChoiceMachine::new(&config));
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
        let (mut actual, mut machine) = (new(), ChoiceMachine::new(&config));
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
