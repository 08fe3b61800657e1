//! Which choices are let in, and what they may cost.

use super::{Route, Router, Sink, State};
use crate::{
    ChoiceIndex, End, Limit, LimitExceeded, Shape, StreamError, Update, Warning,
    choice::think::split_cost, event::Place,
};

impl Router {
    pub(super) fn open(
        &mut self,
        index: ChoiceIndex,
        shape: Shape,
        place: Place,
        sink: &mut impl Sink,
    ) -> Option<usize> {
        let max = self.options.limits.choices;
        if self.routes.len() >= max {
            self.refused = Some(LimitExceeded {
                limit: Limit::Choices,
                max: max as u64,
            });
            self.warn(
                Warning::new("E11", place.at, "a choice beyond the limit was refused"),
                place,
                sink,
            );
            return None;
        }
        self.suspect(index, place, sink);
        self.routes.push(Route {
            index,
            state: State::Open,
            delta_at: 0,
            deltas: 0,
            bare: 0,
            wordless: 0,
            reason: false,
            spent: 0,
        });
        let slot = self.routes.len() - 1;
        self.remember(index, slot);
        sink.open(slot, index, shape);
        Some(slot)
    }

    /// Small indices find their slot at once; the rest are searched for. Without this every index would be, with the same
    /// result, but at a cost that grows with the number of choices.
    fn remember(&mut self, index: ChoiceIndex, slot: usize) {
        const SMALL: usize = 128; // what the API caps `n` at
        let at = index.0 as usize;
        if at >= SMALL {
            return;
        }
        let length = self.slots.len().max(at + 1);
        self.slots.resize(length, None);
        if let Some(place) = self.slots.get_mut(at) {
            *place = Some(slot);
        }
    }

    /// E29: more choices than asked for.
    fn suspect(&mut self, index: ChoiceIndex, place: Place, sink: &mut impl Sink) {
        if self
            .options
            .expect_choices
            .is_some_and(|n| self.routes.len() >= n as usize)
        {
            self.warn(
                Warning::new("E29", place.at, "more choices than were asked for").on(index),
                place,
                sink,
            );
        }
    }

    /// Whether a choice that has spent so much may spend more.
    pub(super) fn can_spend(&self, spent: u64, more: u64) -> bool {
        let limits = &self.options.limits;
        spent.saturating_add(more) <= limits.choice_bytes.min(u64::from(u32::MAX))
            && self.spent.saturating_add(more) <= limits.completion_bytes
    }

    /// Counts what an update costs; false if it was too much.
    pub(super) fn spend(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) -> bool {
        let per_choice = self.options.limits.choice_bytes.min(u64::from(u32::MAX));
        let Some(route) = self.routes.get_mut(slot).filter(|r| r.state != State::Shut) else {
            return false;
        };
        let cost = update.cost() + split_cost(self.options.think_tags, update);
        route.spent = route.spent.saturating_add(cost);
        self.spent = self.spent.saturating_add(cost);
        if route.spent > per_choice {
            let late = route.state == State::Ended;
            self.set_state(slot, State::Shut);
            if !late {
                sink.fail(
                    slot,
                    End::LimitExceeded(LimitExceeded {
                        limit: Limit::ChoiceBytes,
                        max: per_choice,
                    }),
                    place,
                );
            }
            return false;
        }
        self.within_completion(sink)
    }

    pub(super) fn within_completion(&mut self, sink: &mut impl Sink) -> bool {
        let max = self.options.limits.completion_bytes;
        if self.spent <= max {
            return true;
        }
        let limit = Limit::CompletionBytes;
        self.close(Err(StreamError::Limit(LimitExceeded { limit, max })), sink);
        false
    }
}
