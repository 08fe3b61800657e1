//! `TextDelta`: an event that continues one text of one choice, as nearly all events do.
//!
//! It is equivalent to an [`Update`] with one text, and takes a fast path through the router and the choice.

use std::borrow::Cow;

use crate::{
    ChoiceIndex, CompletionKind, EventIndex, Fragment, ToolCallUpdate, Update, limits::DELTA_COST,
    node::compact,
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

/// An event with one piece of text, and perhaps with unknown fields and log probabilities beside it.
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
    /// Whether it is all that the event brings. An update of the stream itself may follow.
    pub last_of_event: bool,
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
    /// What arrived beside the text.
    pub extras: Extras<'a>,
}

/// What arrived beside the text of a delta.
///
/// # Examples
///
/// ```
/// use unbraid_core::internal::Extras;
///
/// assert!(Extras::default().is_empty());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extras<'a> {
    /// Unknown fields as raw JSON, those of the delta first. None of these is audio.
    pub fields: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// How many of the fields, from the start, were inside the delta.
    pub delta_field_count: usize,
    /// Log probabilities, as raw JSON.
    pub logprobs: Option<&'a str>,
}

impl<'a> Extras<'a> {
    with_methods! {
        with_fields(&'a [(Cow<'a, str>, Cow<'a, str>)]): fields = |fields| fields;
        with_delta_field_count(usize): delta_field_count = |count| count;
        with_logprobs(Option<&'a str>): logprobs = |logprobs| logprobs;
    }

    /// What an update brings beside its texts.
    #[inline]
    pub(crate) fn of_update(update: &'a Update<'_>) -> Self {
        Self {
            fields: &update.metadata,
            delta_field_count: update.delta_field_count,
            logprobs: update.logprobs.as_deref(),
        }
    }

    /// Whether nothing arrived.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.logprobs.is_none()
    }
}

impl<'a> TextDelta<'a> {
    with_methods! {
        with_kind(CompletionKind): kind = |kind| kind;
        with_role(Option<&'a str>): role = |role| role;
        with_extras(Extras<'a>): extras = |extras| extras;
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
            last_of_event: true,
            choice,
            kind: CompletionKind::Chat,
            role: None,
            text_kind,
            text,
            extras: Extras::default(),
        }
    }

    /// The text of an update that brings nothing else that a choice reads, apart from its role and the extras.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Update, internal::TextDelta};
    ///
    /// let update = Update::default().with_choice(ChoiceIndex(1)).with_content("Hi");
    /// assert_eq!(TextDelta::of_update(&update).unwrap().text, "Hi");
    /// assert!(TextDelta::of_update(&update.with_finish_reason("stop")).is_none());
    /// ```
    #[must_use]
    pub fn of_update(update: &'a Update<'_>) -> Option<Self> {
        let (text_kind, fragment) = update.only_text()?;
        let is_whole =
            fragment.low.is_none() && fragment.high.is_none() && !fragment.text.is_empty();
        let continues_text = is_whole
            && update.reasoning_source.is_none()
            && update.function_name.is_none()
            && update.function_arguments.is_none()
            && update.finish_reason.is_none()
            && !update.is_full_message
            && update.calls_are_announced()
            && update.audio().is_none();
        continues_text.then(|| Self {
            event_index: update.event_index,
            last_of_event: update.last_of_event,
            choice: update.choice.unwrap_or(ChoiceIndex(0)),
            kind: update.kind,
            role: update.role.as_deref(),
            text_kind,
            text: &fragment.text,
            extras: Extras::of_update(update),
        })
    }

    /// The equivalent update, without the envelope: that equals the last update's.
    #[must_use]
    pub fn to_update(&self) -> Update<'a> {
        let mut update = Update {
            event_index: self.event_index,
            last_of_event: self.last_of_event,
            is_chunk: true,
            choice: Some(self.choice),
            kind: self.kind,
            role: self.role.map(Cow::Borrowed),
            logprobs: self.extras.logprobs.map(Cow::Borrowed),
            metadata: self.extras.fields.to_vec(),
            delta_field_count: self.extras.delta_field_count,
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
        self.text.len() as u64 + DELTA_COST + entry + self.extras.cost()
    }
}

/// Usage beside the text of an event that matched a template: nothing else of the stream itself has changed.
#[derive(Clone, Copy)]
pub(crate) struct DeltaUsage<'a> {
    pub(crate) event_index: EventIndex,
    /// Raw JSON, as the server wrote it.
    pub(crate) raw: &'a str,
    /// Its length without white space.
    pub(crate) compact_len: usize,
    /// The usage objects of a stream that have the same number differ in integers only.
    pub(crate) form: u64,
}

impl<'a> DeltaUsage<'a> {
    /// The equivalent update.
    pub(crate) fn to_update(self) -> Update<'a> {
        Update {
            event_index: self.event_index,
            last_of_event: true,
            usage: Some(compact(self.raw)),
            is_chunk: true,
            ..Update::default()
        }
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
    /// Accepts the usage that ends the event of a text delta, or of the update in its place.
    fn delta_usage(&mut self, usage: &DeltaUsage<'_>);
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

    fn delta_usage(&mut self, usage: &DeltaUsage<'_>) {
        (self.0)(&usage.to_update());
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
            let fields = [("x".into(), "[1]".into()), ("y".into(), "2".into())];
            let extras = Extras::default().with_fields(&fields);
            let delta = delta.with_extras(extras.with_logprobs(Some("{}")));
            assert_eq!(delta.cost(), delta.to_update().cost(), "{kind:?}");
            let update = delta.to_update();
            assert!(
                TextDelta::of_update(&update) == Some(delta),
                "{kind:?} makes an update and back"
            );
        }
    }
}
