//! The fast path of the router: a text delta for an open choice.

use super::{ChoiceSink, Router, State};
use crate::{
    ChoiceIndex, Config, ThinkTags,
    text_delta::{Delta, DeltaKind, DeltaUsage, TextDelta},
};

/// Whether the configuration can have a use for the update of a text delta. A shortcut: `is_ignored` decides for each delta.
pub(super) fn inspects(config: &Config) -> bool {
    config.expect_choices == Some(1) || config.think_tags != ThinkTags::Off
}

impl Router {
    /// Routes a text delta, which has the envelope of the last update.
    #[inline]
    pub(crate) fn text_delta(&mut self, delta: &TextDelta<'_>, sink: &mut impl ChoiceSink) {
        // The state after `[DONE]` needs no check: no choice is open then, so `fast_slot` finds none.
        if self.closed.is_some() {
            return;
        }
        let cost = delta.cost();
        let Some(slot) = self.fast_slot(delta, cost) else {
            return self.apply(&delta.to_update(), sink);
        };
        let position = self.next_position(delta.event_index);
        self.finishes.choice(true);
        self.is_chunk = true;
        self.cost = self.cost.saturating_add(cost);
        if let Some(route) = self.routes.get_mut(slot) {
            route.cost = route.cost.saturating_add(cost);
            route.last_delta = position.event;
            route.deltas += 1;
        }
        sink.delta(slot, Delta::Text(delta), position);
        // Other choices that have finished end with their event; this one is open.
        if delta.last_of_event {
            self.end_of_event(delta.event_index, sink);
        }
    }

    /// Takes the usage beside the text delta before it, as [`update`](Self::update) takes its update.
    #[inline]
    pub(crate) fn delta_usage(&mut self, usage: &DeltaUsage<'_>, sink: &mut impl ChoiceSink) {
        let follows_delta = self.closed.is_none()
            && !self.after_done
            && usage.event_index == self.position.event
            && self.finishes.has_choices();
        if !follows_delta {
            return self.update(&usage.to_update(), sink);
        }
        // The update would have no id, so the one of the next text delta is compared again.
        self.id_changed = false;
        self.next_position(usage.event_index);
        self.cost = self.cost.saturating_add(usage.compact_len as u64);
        if !self.within_completion(sink) {
            return;
        }
        self.envelope_usage(usage.raw, Some(usage.form));
        self.end_of_event(usage.event_index, sink);
    }

    /// The slot of the choice, if only the choice needs the delta.
    #[inline]
    fn fast_slot(&self, delta: &TextDelta<'_>, cost: u64) -> Option<usize> {
        // The fast path emits no warnings, and a delta has the envelope of the last update, a changed id included.
        if self.id_changed || (self.inspects_text_deltas && !self.is_ignored(delta)) {
            return None;
        }
        let slot = self.slot(delta.choice)?;
        let route = self.routes.get(slot)?;
        let fits = route.state == State::Open && self.fits_limits(route.cost, cost);
        fits.then_some(slot)
    }

    /// Whether the configuration has no use for the update of this delta.
    #[cold]
    fn is_ignored(&self, delta: &TextDelta<'_>) -> bool {
        let folds = self.config.expect_choices == Some(1)
            && !(delta.choice == ChoiceIndex(0) && self.folded.continues(delta));
        // Only an update is charged for the tags in it.
        let splits =
            delta.text_kind == DeltaKind::Content && self.config.think_tags != ThinkTags::Off;
        !folds && !splits
    }
}
