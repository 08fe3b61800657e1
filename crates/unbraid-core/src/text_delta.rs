//! The bulk of every stream: one piece of text of one choice, and nothing else.
//!
//! It says what an [`Update`] with that one field says. Whoever has no quicker way takes it as such.

use std::borrow::Cow;

use crate::{ChoiceIndex, CompletionKind, Fragment, ToolCallUpdate, Update, limits::DELTA_COST};

/// Which of a choice's texts a piece continues.
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

/// An event that brings one piece of text and no other news.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, CompletionKind, internal::{DeltaKind, TextDelta}};
///
/// let piece = TextDelta { event_index: 7, choice: ChoiceIndex(1), kind: CompletionKind::Chat, role: None, text_kind: DeltaKind::Content, text: "Hi" };
/// assert_eq!(piece.to_update().content.unwrap().text, "Hi");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TextDelta<'a> {
    /// Ordinal of the server-sent event, from 0.
    pub event_index: u64,
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
    /// The update that says the same, but for the envelope: that is the last update's.
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
        let piece = Some(Fragment::from(Cow::Borrowed(self.text)));
        match self.text_kind {
            DeltaKind::Content => update.content = piece,
            DeltaKind::Reasoning => update.reasoning = piece,
            DeltaKind::Refusal => update.refusal = piece,
            DeltaKind::Arguments(index) => update.tool_calls.push(ToolCallUpdate {
                wire_index: Some(index),
                arguments: piece,
                ..ToolCallUpdate::default()
            }),
        }
        update
    }

    /// As [`Update::cost`].
    pub(crate) fn cost(&self) -> u64 {
        let entry = match self.text_kind {
            DeltaKind::Content | DeltaKind::Reasoning | DeltaKind::Refusal => 0,
            DeltaKind::Arguments(_) => DELTA_COST,
        };
        self.text.len() as u64 + DELTA_COST + entry
    }
}

/// Takes what a decoder tells.
pub(crate) trait UpdateSink {
    /// Takes an update.
    fn update(&mut self, update: &Update<'_>);
    /// Takes a piece; it follows, without another update between them, an update with the same envelope.
    fn piece(&mut self, piece: &TextDelta<'_>);
    /// Whether pieces are welcome; otherwise each comes as an update.
    fn takes_pieces(&self) -> bool {
        true
    }
}

/// Takes updates only.
pub(crate) struct Updates<'s>(pub(crate) &'s mut dyn FnMut(&Update<'_>));

impl UpdateSink for Updates<'_> {
    fn update(&mut self, update: &Update<'_>) {
        (self.0)(update);
    }

    fn piece(&mut self, piece: &TextDelta<'_>) {
        (self.0)(&piece.to_update());
    }

    fn takes_pieces(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_costs_what_its_update_costs() {
        for lane in [
            DeltaKind::Content,
            DeltaKind::Reasoning,
            DeltaKind::Refusal,
            DeltaKind::Arguments(3),
        ] {
            let piece = TextDelta {
                event_index: 0,
                choice: ChoiceIndex(0),
                kind: CompletionKind::Chat,
                role: None,
                text_kind: lane,
                text: "four",
            };
            assert_eq!(piece.cost(), piece.to_update().cost(), "{lane:?}");
        }
    }
}
