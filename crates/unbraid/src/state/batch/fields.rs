//! A piece of text that arrived with unknown fields or log probabilities, which some servers send in each chunk.
//!
//! An owned copy of such an update would take an allocation for each of its parts. Here all parts are appended to the text
//! of the batch, and borrowed from it when the batch is applied.

use std::borrow::Cow;

use unbraid_core::{ChoiceIndex, CompletionKind, Fragment, Update};

use super::{ASSISTANT, Batch, has_one_text, whole_text};

/// The parts of an update in the text of a batch: its text, the key and the value of each field, the log probabilities.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldsEntry {
    text_kind: TextKind,
    kind: CompletionKind,
    choice: Option<ChoiceIndex>,
    assistant: bool,
    has_logprobs: bool,
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
        if !has_one_text(update) || role.is_some_and(|role| role != ASSISTANT) {
            return None;
        }
        let texts = [
            (TextKind::Content, &update.content),
            (TextKind::Reasoning, &update.reasoning),
            (TextKind::Refusal, &update.refusal),
        ];
        let mut texts = texts.into_iter();
        let (text_kind, text) =
            texts.find_map(|(kind, text)| Some((kind, whole_text(text.as_ref()?)?)))?;
        self.push_part(text);
        for (key, raw) in &update.metadata {
            self.push_part(key);
            self.push_part(raw);
        }
        if let Some(logprobs) = &update.logprobs {
            self.push_part(logprobs);
        }
        Some(FieldsEntry {
            text_kind,
            kind: update.kind,
            choice: update.choice,
            assistant: role.is_some(),
            has_logprobs: update.logprobs.is_some(),
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
        let text = Fragment::from(parts.next());
        let fields = (0..self.fields).map(|_| (parts.next(), parts.next()));
        let mut update = Update::default()
            .with_kind(self.kind)
            .with_choice(self.choice)
            .with_metadata(fields.collect())
            .with_delta_field_count(self.delta_fields)
            .with_is_chunk(true);
        match self.text_kind {
            TextKind::Content => update.content = Some(text),
            TextKind::Reasoning => update.reasoning = Some(text),
            TextKind::Refusal => update.refusal = Some(text),
        }
        update.role = self.assistant.then_some(Cow::Borrowed(ASSISTANT));
        update.logprobs = self.has_logprobs.then(|| parts.next());
        update
    }
}
