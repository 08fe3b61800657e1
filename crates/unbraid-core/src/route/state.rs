//! What the router remembers of each choice.

use super::late::SecondAnswer;
use crate::{ChoiceIndex, EventIndex, FinishReason, Update};

/// Where a choice is between its first update and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Its finish reason arrived in this event.
    Finished(EventIndex),
    Ended,
    /// Ended by a limit or by the caller. Its further updates are dropped.
    Discarding,
}

impl State {
    /// Whether the choice has not ended yet.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Finished(_))
    }
}

/// One choice, as the router knows it.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) index: ChoiceIndex,
    pub(super) state: State,
    /// The last event with a delta.
    pub(super) last_delta: EventIndex,
    /// Updates with a delta.
    pub(super) deltas: u64,
    /// Updates without a delta: a role, a finish reason.
    pub(super) bare_updates: u64,
    /// Deltas without text of their own: log probabilities, audio, the header of a call, a message that repeats the deltas.
    pub(super) textless_deltas: u64,
    /// Full messages that brought text in place of deltas (E21).
    pub(super) full_messages: u64,
    pub(super) has_finish_reason: bool,
    /// The reason with which the choice finished; `None` if it ended without one, whatever came later.
    pub(super) first_reason: Option<FinishReason>,
    pub(super) second: SecondAnswer,
    /// Bytes that its updates cost so far.
    pub(super) cost: u64,
}

impl Route {
    pub(super) fn new(index: ChoiceIndex) -> Self {
        Self {
            index,
            state: State::Open,
            last_delta: EventIndex::default(),
            deltas: 0,
            bare_updates: 0,
            textless_deltas: 0,
            full_messages: 0,
            has_finish_reason: false,
            first_reason: None,
            second: SecondAnswer::default(),
            cost: 0,
        }
    }

    /// Counts an update with a delta. A full message whose text has already arrived in deltas is not read, so it brings no
    /// text (E21).
    pub(super) fn count_delta(&mut self, update: &Update<'_>) {
        let in_deltas = self.deltas - self.textless_deltas - self.full_messages;
        let repeats = update.is_full_message && in_deltas > 0;
        let has_text = update.has_text() && !repeats;
        self.deltas += 1;
        self.textless_deltas += u64::from(!has_text);
        self.full_messages += u64::from(has_text && update.is_full_message);
    }
}
