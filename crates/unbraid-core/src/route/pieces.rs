//! The bulk of a stream: a piece of text for a choice that is open, with nothing else to look at.

use super::{ChoiceSink, Router, State};
use crate::{
    ChoiceIndex, ThinkTags,
    text_delta::{DeltaKind, TextDelta},
};

impl Router {
    /// Takes a piece of text, which has the envelope of the last update.
    #[inline]
    pub(crate) fn piece(&mut self, piece: &TextDelta<'_>, sink: &mut impl ChoiceSink) {
        if self.closed.is_some() {
            return;
        }
        let Some(slot) = self.plain(piece) else {
            return self.take(&piece.to_update(), sink);
        };
        let place = self.place(piece.event_index);
        self.choices_in_event += 1;
        self.is_chunk = true;
        self.spent = self.spent.saturating_add(piece.cost());
        if let Some(route) = self.routes.get_mut(slot) {
            route.spent = route.spent.saturating_add(piece.cost());
            route.last_delta = place.event;
            route.deltas += 1;
        }
        sink.piece(slot, piece, place);
        self.end_of_event(piece.event_index, sink);
    }

    /// The slot of a piece that nothing has to be told of but the choice.
    #[inline]
    fn plain(&self, piece: &TextDelta<'_>) -> Option<usize> {
        let folds = self.options.expect_choices == Some(1)
            && !(piece.choice == ChoiceIndex(0) && self.folded.knows(piece));
        // Only an update is charged for the tags in it.
        let splits =
            piece.text_kind == DeltaKind::Content && self.options.think_tags != ThinkTags::Off;
        if self.id_changed || folds || splits {
            return None;
        }
        let slot = self.slot(piece.choice)?;
        let route = self.routes.get(slot)?;
        let fits = route.state == State::Open && self.can_spend(route.spent, piece.cost());
        fits.then_some(slot)
    }
}
