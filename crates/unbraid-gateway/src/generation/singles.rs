//! The choices that an upstream did not give: each is requested with a request of its own.

use unbraid_core::ChoiceIndex;
use unbraid_log::End;

use super::{
    Generation,
    part::Part,
    tracker::{Role, TrackedChoice},
};

impl Generation {
    /// Requests the choices that the first body did not have, once it has ended with one.
    pub(super) fn request_missing(&mut self) {
        let (Some(first), Some(singles)) = (self.parts.first(), &mut self.singles) else {
            return;
        };
        if self.registration.is_counted() && !first.is_closed() {
            return;
        }
        let known = first.tracker.choices();
        // A choice that was cancelled before it appeared is known without having arrived.
        let has_arrived = |choice: &&TrackedChoice| {
            !self.cancelled_unseen.contains(&choice.index)
                || first.tracker.has_dropped_from(choice.index)
        };
        let seen = known.iter().filter(has_arrived).count();
        if seen > 1 {
            self.registration.set_fan_out(false);
            singles.request = None;
        }
        if !first.is_closed() {
            return;
        }
        let Some(mut singles) = self.singles.take() else {
            return;
        };
        let missing: Vec<ChoiceIndex> = (0..singles.n)
            .map(ChoiceIndex)
            .filter(|choice| !self.cancelled_unseen.contains(choice))
            .filter(|choice| !known.iter().any(|known| known.index == *choice))
            .collect();
        // A body that was cut may lack the other choices for that reason.
        let is_clean = first.tracker.closed().is_some_and(Result::is_ok);
        let has_ended = |choice: &TrackedChoice| {
            choice.finish_reason.is_some() || choice.end == Some(End::Cancelled)
        };
        let is_done = first.tracker.is_done();
        let is_complete = is_clean && (is_done || known.iter().filter(has_arrived).all(has_ended));
        // If every other choice was cancelled before it appeared, nothing can be concluded.
        let is_single = is_complete && singles.prompts == 1 && seen == 1 && !missing.is_empty();
        let mut indices = known.iter().map(|choice| choice.index.0 as usize);
        let has_one_each = singles.prompts > 1
            && known.len() == singles.prompts
            && indices.all(|index| index < singles.prompts);
        let gives_one_choice = is_single || (is_complete && has_one_each && !missing.is_empty());
        for part in &mut self.parts {
            part.tracker
                .resolve_held(!is_single, &mut self.keeper.events);
        }
        self.registration.set_fan_out(is_single);
        // Without the end mark, a body may have been cut between two choices.
        if gives_one_choice && is_done {
            (singles.remember)();
        }
        let Some(request) = singles.request.as_mut().filter(|_| is_single) else {
            return;
        };
        self.is_fan_out = true;
        for choice in missing {
            let source = request(choice);
            self.parts
                .push(Part::new(source, Role::Single(choice), self.max_choices));
        }
    }
}
