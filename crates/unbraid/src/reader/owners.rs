//! The logs that the reader owns itself, because their choices have no actor.

use smallvec::SmallVec;

use crate::state::log_owner::LogOwner;

/// The owners of the logs whose choices have no actor, by slot.
#[derive(Debug, Default)]
pub(super) struct Owners(SmallVec<[Option<LogOwner>; 1]>);

impl Owners {
    pub(super) fn insert(&mut self, slot: usize, owner: LogOwner) {
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        if let Some(place) = self.0.get_mut(slot) {
            *place = Some(owner);
        }
    }

    pub(super) fn take(&mut self, slot: usize) -> Option<LogOwner> {
        self.0.get_mut(slot)?.take()
    }
}
