//! The fields of a delta.

use std::borrow::Cow;

use super::{
    Content, Fallback, FieldVisitor, REASONING_SLOTS, ValueReader, call::FunctionFields,
    keep_unknown,
};
use crate::{
    CompletionKind, Fragment,
    chunk::{Element, ReasoningOrigin, is_padding, non_empty, number_calls},
    dialect::openai_chat,
    limits::MAX_JSON_DEPTH,
    node,
};

/// A delta while it is read into the entry that contains it.
pub(super) struct DeltaFields<'e, 'a> {
    element: &'e mut Element<'a>,
    content: Content<'a>,
    /// The reasoning fields, by the rank of their names.
    reasoning: [Option<Fragment<'a>>; REASONING_SLOTS],
    details: Option<&'a str>,
}

impl<'e, 'a> DeltaFields<'e, 'a> {
    pub(super) fn of(element: &'e mut Element<'a>) -> Self {
        Self {
            element,
            content: Content::default(),
            reasoning: Default::default(),
            details: None,
        }
    }
}

impl<'a> FieldVisitor<'a> for DeltaFields<'_, 'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        let update = &mut self.element.update;
        match &*key {
            "role" => update.role = non_empty(value.text()?),
            "content" => self.content = value.content()?,
            "refusal" => update.refusal = value.fragment()?,
            "tool_calls" => {
                if value.list(&mut update.tool_calls)? {
                    number_calls(&mut update.tool_calls);
                } else {
                    update.tool_calls.clear();
                }
            }
            "function_call" => {
                let mut function = FunctionFields::default();
                let _is_null = !value.object(&mut function)?;
                // Assigned even if `null`: a repeated key replaces the earlier value as a whole (E26).
                update.function_name = function.name;
                update.function_arguments = function.arguments;
            }
            "reasoning_details" => {
                let raw = value.raw()?;
                // The second list would have to replace text that was already joined from the first one.
                if self.details.replace(raw).is_some() {
                    return Err(Fallback);
                }
                if raw != "null" {
                    self.element.fields.push((key, Cow::Borrowed(raw)));
                }
            }
            other => match value.reasoning_rank(other) {
                Some(rank) => {
                    let reasoning = value.fragment()?;
                    // Kept by rank until all keys were read, since the best name may come last.
                    *self.reasoning.get_mut(rank).ok_or(Fallback)? = reasoning;
                }
                None if is_padding(other) => {
                    self.element.has_padding = true;
                    value.raw()?;
                }
                None => keep_unknown(&mut self.element.fields, key, value)?,
            },
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fallback> {
        let update = &mut self.element.update;
        // Whatever order the keys had: a delta makes the entry one of a chat, even beside a `text`.
        update.kind = CompletionKind::Chat;
        // The content of `text` stays if the delta has none (C19).
        if self.content.text.is_some() {
            let content = self.content.text.take();
            self.element.unused_text = std::mem::replace(&mut update.content, content);
        }
        let mut ranked = self.reasoning.iter_mut().enumerate();
        if let Some((rank, text)) = ranked.find_map(|(rank, text)| Some((rank, text.take()?))) {
            update.reasoning = Some(text);
            self.element.reasoning_origin = Some(ReasoningOrigin::Field(rank));
        } else if let Some(thinking) = self.content.thinking.take() {
            update.reasoning = Some(thinking);
            self.element.reasoning_origin = Some(ReasoningOrigin::ContentParts);
        }
        if let (None, Some(details)) = (&update.reasoning, self.details.take()) {
            let details = node::read(details, MAX_JSON_DEPTH).map_err(|_| Fallback)?;
            // Raw JSON with half a surrogate pair is a fallback already, so no half can be lost here.
            let (text, _) = openai_chat::details(&details);
            update.reasoning = text;
            let has_text = update.reasoning.is_some();
            self.element.reasoning_origin = has_text.then_some(ReasoningOrigin::Details);
        }
        Ok(())
    }
}
