//! An update without calls that is more than one piece of text: it opens a choice, or ends it with a reason.
//!
//! An owned copy of an update takes some hundred bytes, and an allocation for each of its parts. Here all parts are appended to
//! the text of the batch, and borrowed from it when the batch is applied.

use std::borrow::Cow;

use unbraid_core::{ChoiceIndex, CompletionKind, Fragment, Update};

use super::{
    ASSISTANT, Batch,
    fields::{Parts, is_large},
};

/// The parts of an update in the text of a batch: its text, the key and the value of each field, the log probabilities,
/// the finish reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpdateEntry {
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
    pub(super) fn push_update_parts(&mut self, update: &Update<'_>) -> Option<UpdateEntry> {
        let role = update.role.as_deref();
        if has_other_parts(update)
            || is_large(&update.metadata, update.logprobs.as_deref())
            || role.is_some_and(|role| role != ASSISTANT)
        {
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
        Some(UpdateEntry {
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
}

impl UpdateEntry {
    /// The update, which borrows from the text of the batch.
    pub(super) fn update<'b>(
        self,
        parts: &mut Parts<'b, impl Iterator<Item = usize>>,
    ) -> Update<'b> {
        let text = self.text_kind.map(|_| Fragment::from(parts.next()));
        let fields = (0..self.fields).map(|_| (parts.next().into(), parts.next().into()));
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
        update.logprobs = self.has_logprobs.then(|| parts.next().into());
        update.finish_reason = self.has_finish_reason.then(|| parts.next().into());
        update
    }
}

/// Whether an update has a part that only a whole update can hold: a call, or a full message.
fn has_other_parts(update: &Update<'_>) -> bool {
    update.reasoning_source.is_some()
        || update.function_name.is_some()
        || update.function_arguments.is_some()
        || !update.tool_calls.is_empty()
        || update.is_full_message
}

/// Whether a fragment ends in no half of a character.
fn is_whole(fragment: &Fragment<'_>) -> bool {
    fragment.low.is_none() && fragment.high.is_none()
}
