//! Which choices are let in, and what they may cost.

use super::{Route, Router, Sink, State};
use crate::{
    ChoiceIndex, End, Limit, LimitExceeded, Shape, StreamError, Update, Warning, event::Place,
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
            updates: 0,
            spent: 0,
        });
        sink.open(self.routes.len() - 1, index, shape);
        Some(self.routes.len() - 1)
    }

    /// E29: more choices than asked for. E12: an index that counts tokens.
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
        if self.counts_tokens(index) {
            let told = "the index seems to count tokens; expect one choice to fold it";
            self.warn(Warning::new("E12", place.at, told), place, sink);
        }
    }

    /// Whether the choices so far are 0, 1, 2 .., each of one chunk with one delta, and this is the next of them.
    fn counts_tokens(&self, index: ChoiceIndex) -> bool {
        const SUSPICIOUS: usize = 4; // two or three answers of one token each are nothing special yet
        let one_token = |(position, route): (usize, &Route)| {
            route.index.0 as usize == position
                && route.state == State::Open
                && (route.updates, route.deltas) == (1, 1)
        };
        self.options.expect_choices.is_none()
            && self.choices_in_event == 1
            && self.routes.len() >= SUSPICIOUS
            && index.0 as usize == self.routes.len()
            && self.routes.iter().enumerate().all(one_token)
    }

    /// Counts what an update costs; false if it was too much.
    pub(super) fn spend(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) -> bool {
        let per_choice = self.options.limits.choice_bytes;
        let Some(route) = self.routes.get_mut(slot).filter(|r| r.state != State::Shut) else {
            return false;
        };
        let cost = update.cost();
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
