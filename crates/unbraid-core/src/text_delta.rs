//! `TextDelta`: an event that contains one text of one choice and nothing else, which nearly all events do.
//!
//! It is equivalent to an [`Update`] with one field, and takes a fast path through the router and the choice.

use std::borrow::Cow;

use crate::{
    ChoiceIndex, CompletionKind, EventIndex, Fragment, ToolCallUpdate, Update, limits::DELTA_COST,
};

/// Which of a choice's texts a delta continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    /// The message's text.
    Content,
    /// The reasoning.
    Reasoning,
    /// The refusal.
    Refusal,
    /// The arguments of the call with this index on the wire.
    Arguments(i64),
}

/// An event with one piece of text and nothing else.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, EventIndex, internal::{DeltaKind, TextDelta}};
///
/// let delta = TextDelta::new(EventIndex(7), ChoiceIndex(1), DeltaKind::Content, "Hi");
/// assert_eq!(delta.to_update().content.unwrap().text, "Hi");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextDelta<'a> {
    /// Ordinal of the server-sent event, from 0.
    pub event_index: EventIndex,
    /// The choice.
    pub choice: ChoiceIndex,
    /// Chat or text completion.
    pub kind: CompletionKind,
    /// The message's role, which some servers repeat with each delta.
    pub role: Option<&'a str>,
    /// Which text it continues.
    pub text_kind: DeltaKind,
    /// The text; never empty.
    pub text: &'a str,
}

impl<'a> TextDelta<'a> {
    with_methods! {
        with_kind(CompletionKind): kind = |kind| kind;
        with_role(Option<&'a str>): role = |role| role;
    }

    /// A delta of a chat completion that names no role.
    #[must_use]
    #[inline]
    pub fn new(
        event_index: EventIndex,
        choice: ChoiceIndex,
        text_kind: DeltaKind,
        text: &'a str,
    ) -> Self {
        Self {
            event_index,
            choice,
            kind: CompletionKind::Chat,
            role: None,
            text_kind,
            text,
        }
    }

    /// The equivalent update, without the envelope: that equals the last update's.
    #[must_use]
    pub fn to_update(&self) -> Update<'a> {
        let mut update = Update {
            event_index: self.event_index,
            last_of_event: true,
            is_chunk: true,
            choice: Some(self.choice),
            kind: self.kind,
            role: self.role.map(Cow::Borrowed),
            ..Update::default()
        };
        let fragment = Some(Fragment::from(Cow::Borrowed(self.text)));
        match self.text_kind {
            DeltaKind::Content => update.content = fragment,
            DeltaKind::Reasoning => update.reasoning = fragment,
            DeltaKind::Refusal => update.refusal = fragment,
            DeltaKind::Arguments(index) => update.tool_calls.push(ToolCallUpdate {
                wire_index: Some(index),
                arguments: fragment,
                ..ToolCallUpdate::default()
            }),
        }
        update
    }

    /// Equals [`Update::cost`] of the equivalent update.
    pub(crate) fn cost(&self) -> u64 {
        let entry = match self.text_kind {
            DeltaKind::Content | DeltaKind::Reasoning | DeltaKind::Refusal => 0,
            DeltaKind::Arguments(_) => DELTA_COST,
        };
        self.text.len() as u64 + DELTA_COST + entry
    }
}

/// What the router passes on to an open choice.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Update, internal::Delta};
///
/// let update = Update::default().with_content("Hi");
/// assert!(matches!(Delta::Update(&update), Delta::Update(_)));
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Delta<'d> {
    /// A piece of one text and nothing else: the bulk of every stream.
    Text(&'d TextDelta<'d>),
    /// Anything else.
    Update(&'d Update<'d>),
}

/// Receives what a decoder emits.
pub(crate) trait UpdateSink {
    /// Accepts an update.
    fn update(&mut self, update: &Update<'_>);
    /// Accepts a text delta. The last update before it had the same envelope.
    fn text_delta(&mut self, delta: &TextDelta<'_>);
    /// Whether the sink has a fast path for text deltas. If not, the decoder emits updates only.
    fn takes_text_deltas(&self) -> bool {
        true
    }
}

/// A sink of updates only.
pub(crate) struct Updates<'s>(pub(crate) &'s mut dyn FnMut(&Update<'_>));

impl UpdateSink for Updates<'_> {
    fn update(&mut self, update: &Update<'_>) {
        (self.0)(update);
    }

    fn text_delta(&mut self, delta: &TextDelta<'_>) {
        (self.0)(&delta.to_update());
    }

    fn takes_text_deltas(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_delta_costs_as_much_as_its_update() {
        for kind in [
            DeltaKind::Content,
            DeltaKind::Reasoning,
            DeltaKind::Refusal,
            DeltaKind::Arguments(3),
        ] {
            let delta = TextDelta::new(EventIndex(0), ChoiceIndex(0), kind, "four");
            assert_eq!(delta.cost(), delta.to_update().cost(), "{kind:?}");
        }
    }
}
