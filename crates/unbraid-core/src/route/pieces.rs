//! The fast path of the router: a text delta for an open choice.

use super::{ChoiceSink, Router, State};
use crate::{
    ChoiceIndex, Config, ThinkTags,
    text_delta::{DeltaKind, TextDelta},
};

/// Whether the configuration can have a use for the update of a text delta.
pub(super) fn inspects(config: &Config) -> bool {
    config.expect_choices == Some(1) || config.think_tags != ThinkTags::Off
}

impl Router {
    /// Routes a text delta, which has the envelope of the last update.
    #[inline]
    pub(crate) fn piece(&mut self, piece: &TextDelta<'_>, sink: &mut impl ChoiceSink) {
        if self.closed.is_some() {
            return;
        }
        let Some(slot) = self.fast_slot(piece) else {
            return self.apply(&piece.to_update(), sink);
        };
        let position = self.next_position(piece.event_index);
        self.choices_in_event += 1;
        self.is_chunk = true;
        self.cost = self.cost.saturating_add(piece.cost());
        if let Some(route) = self.routes.get_mut(slot) {
            route.cost = route.cost.saturating_add(piece.cost());
            route.last_delta = position.event;
            route.deltas += 1;
        }
        sink.text_delta(slot, piece, position);
        self.end_of_event(piece.event_index, sink);
    }

    /// The slot of the choice, if only the choice needs the delta.
    #[inline]
    fn fast_slot(&self, piece: &TextDelta<'_>) -> Option<usize> {
        if self.id_changed || (self.inspects_text_deltas && !self.is_ignored(piece)) {
            return None;
        }
        let slot = self.slot(piece.choice)?;
        let route = self.routes.get(slot)?;
        let fits = route.state == State::Open && self.fits_limits(route.cost, piece.cost());
        fits.then_some(slot)
    }

    /// Whether the configuration has no use for the update of this delta.
    #[cold]
    fn is_ignored(&self, piece: &TextDelta<'_>) -> bool {
        let folds = self.config.expect_choices == Some(1)
            && !(piece.choice == ChoiceIndex(0) && self.folded.continues(piece));
        // Only an update is charged for the tags in it.
        let splits =
            piece.text_kind == DeltaKind::Content && self.config.think_tags != ThinkTags::Off;
        !folds && !splits
    }
}
