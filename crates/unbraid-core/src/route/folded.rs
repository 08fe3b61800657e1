//! Remembers the indices that `expect_choices(1)` reads as 0, so that mixed answers do not go unnoticed.

use crate::{ChoiceIndex, Update, limits::MAX_CHOICES, text_delta::TextDelta};

/// The indices that were read as 0.
#[derive(Debug, Default)]
pub(super) struct FoldedIndices {
    /// In order of appearance, at most as many as a completion may have choices.
    seen: Vec<Seen>,
    last: Option<Seen>,
    /// Whether an index returned after another one.
    returned: bool,
    /// Whether it returned with a role or a finish reason.
    returned_with_own: bool,
}

/// An index, and whether it had a role or a finish reason of its own.
#[derive(Debug, Clone, Copy)]
struct Seen {
    index: ChoiceIndex,
    own: bool,
}

impl FoldedIndices {
    /// Records the index that an update had on the wire.
    pub(super) fn record(&mut self, index: ChoiceIndex, update: &Update<'_>) {
        let own = update.names_role() || update.finish_reason.is_some();
        // Only a return to an earlier index counts: the latest index again is one answer that goes on.
        let after_another = self.last.is_none_or(|last| last.index != index);
        let seen = match self.seen.iter_mut().find(|seen| seen.index == index) {
            Some(seen) => {
                self.returned |= after_another;
                self.returned_with_own |= after_another && own;
                seen.own |= own;
                *seen
            }
            None => {
                let seen = Seen { index, own };
                if self.seen.len() < MAX_CHOICES {
                    self.seen.push(seen);
                }
                seen
            }
        };
        self.last = Some(seen);
    }

    /// Whether a text delta continues the last index without a new role, so that it needs no record.
    pub(super) fn continues(&self, delta: &TextDelta<'_>) -> bool {
        self.last
            .is_some_and(|last| last.index == delta.choice && (last.own || !is_named(delta.role)))
    }

    /// How many answers were mixed, if there was more than one.
    ///
    /// A server that counts tokens in the index (E12) never returns to an earlier index. Interleaved answers do, and each
    /// has a role and a finish reason of its own.
    pub(super) fn interleaved(&self) -> Option<usize> {
        let owners = self.seen.iter().filter(|seen| seen.own).count();
        let mixed = self.returned_with_own || (self.returned && owners > 1);
        mixed.then_some(self.seen.len())
    }
}

fn is_named(role: Option<&str>) -> bool {
    role.is_some_and(|role| !role.is_empty())
}
