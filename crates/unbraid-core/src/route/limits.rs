//! The limits that the router enforces: how many choices there may be, and how many bytes they may cost.

use super::{ChoiceSink, Route, Router, State};
use crate::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Limit, LimitExceeded, StreamError, Update, Warning,
    choice::think::split_cost, event::Position,
};

impl Router {
    /// Opens a choice; `None` if the limit on choices refuses it (E11).
    pub(super) fn open(
        &mut self,
        index: ChoiceIndex,
        kind: CompletionKind,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) -> Option<usize> {
        self.finishes.bring();
        let max = self.config.limits.choices;
        if self.routes.len() >= max {
            self.refused = Some(LimitExceeded {
                limit: Limit::Choices,
                max: max as u64,
            });
            self.warn(
                Warning::new(
                    "E11",
                    position.event,
                    "a choice beyond the limit was refused",
                ),
                position,
                sink,
            );
            return None;
        }
        // Before the choice is counted, and only for one that is opened: a choice beyond the limit has its own warning.
        self.warn_if_unexpected(index, position, sink);
        if self.routes.is_empty() {
            // A vector would begin with room for four. Most streams have one choice.
            const MOST: u32 = 16;
            let expected = self.config.expect_choices.unwrap_or(1).clamp(1, MOST);
            self.routes.reserve_exact(expected as usize);
        }
        self.routes.push(Route::new(index));
        self.open += 1;
        let slot = self.routes.len() - 1;
        self.remember(index, slot);
        sink.open(slot, index, kind);
        Some(slot)
    }

    /// Remembers the slot of a small index, so that each update finds it without a search. Other indices are searched
    /// for, with the same result, at a cost that grows with the number of choices.
    fn remember(&mut self, index: ChoiceIndex, slot: usize) {
        const SMALL: usize = 128; // what the API caps `n` at
        let index = index.0 as usize;
        if index == slot || index >= SMALL {
            return;
        }
        let length = self.slots.len().max(index + 1);
        self.slots.resize(length, None);
        if let Some(entry) = self.slots.get_mut(index) {
            *entry = Some(slot);
        }
    }

    /// E29: more choices appeared than were requested.
    fn warn_if_unexpected(
        &mut self,
        index: ChoiceIndex,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        if self
            .config
            .expect_choices
            .is_some_and(|n| self.routes.len() >= n as usize)
        {
            self.warn(
                Warning::new("E29", position.event, "more choices than were asked for")
                    .with_choice(index),
                position,
                sink,
            );
        }
    }

    /// Whether a choice that has cost `spent` bytes may cost `more`.
    #[inline]
    pub(super) fn fits_limits(&self, spent: u64, more: u64) -> bool {
        spent.saturating_add(more) <= self.choice_bytes
            && self.cost.saturating_add(more) <= self.completion_bytes
    }

    /// Charges the choice and the completion for an update; false if the update must be dropped.
    pub(super) fn charge(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) -> bool {
        let per_choice = self.choice_bytes;
        let Some(route) = self.routes.get_mut(slot) else {
            return false;
        };
        if route.state == State::Discarding {
            return self.charge_dropped(update, sink);
        }
        let cost = update.cost() + split_cost(self.config.think_tags, update);
        route.cost = route.cost.saturating_add(cost);
        self.cost = self.cost.saturating_add(cost);
        // The choice is checked before the completion: if both are exceeded, the narrower error leaves the other choices
        // alive.
        if route.cost > per_choice {
            let has_ended = route.state == State::Ended;
            self.set_state(slot, State::Discarding);
            if !has_ended {
                sink.finish_with_error(
                    slot,
                    ChoiceEnd::LimitExceeded(LimitExceeded {
                        limit: Limit::ChoiceBytes,
                        max: per_choice,
                    }),
                    position,
                );
            }
            return false;
        }
        self.within_completion(sink)
    }

    /// Charges the completion for what is dropped once no choice is open, so that such a stream ends. Always false.
    #[cold]
    fn charge_dropped(&mut self, update: &Update<'_>, sink: &mut impl ChoiceSink) -> bool {
        if self.open == 0 {
            self.cost = self.cost.saturating_add(update.cost());
            let _closes = !self.within_completion(sink);
        }
        false
    }

    /// Closes the stream if all choices together cost too much; false if they do.
    pub(super) fn within_completion(&mut self, sink: &mut impl ChoiceSink) -> bool {
        let max = self.completion_bytes;
        if self.cost <= max {
            return true;
        }
        let limit = Limit::CompletionBytes;
        self.close(Err(StreamError::Limit(LimitExceeded { limit, max })), sink);
        false
    }
}
