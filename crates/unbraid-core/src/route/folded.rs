//! What is remembered of the indices that `expect_choices(1)` reads as 0, so that several answers are not mixed unnoticed.

use crate::{ChoiceIndex, Update, limits::MAX_CHOICES, text_delta::TextDelta};

/// The indices that were read as 0.
#[derive(Debug, Default)]
pub(super) struct Folded {
    /// In order of appearance, and no more of them than a completion may have choices.
    seen: Vec<Seen>,
    last: Option<Seen>,
    /// Whether an index came again after another one had come.
    returned: bool,
    /// Whether it did so with a role or a finish reason.
    returned_with_own: bool,
}

/// An index, and whether a role or a finish reason of its own came with it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    index: ChoiceIndex,
    own: bool,
}

impl Folded {
    /// Takes the index that an update had on the wire.
    pub(super) fn note(&mut self, index: ChoiceIndex, update: &Update<'_>) {
        let own = named(update.role.as_deref()) || update.finish_reason.is_some();
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

    /// Whether a piece continues the last index and says nothing new of it.
    pub(super) fn knows(&self, piece: &TextDelta<'_>) -> bool {
        self.last
            .is_some_and(|last| last.index == piece.choice && (last.own || !named(piece.role)))
    }

    /// How many answers were mixed, if more than one was.
    ///
    /// A server that counts tokens in the index (E12) goes on from each index to the next. Answers that stand side by side
    /// come back to theirs, and each has a role and a finish reason of its own.
    pub(super) fn interleaved(&self) -> Option<usize> {
        let owners = self.seen.iter().filter(|seen| seen.own).count();
        let mixed = self.returned_with_own || (self.returned && owners > 1);
        mixed.then_some(self.seen.len())
    }
}

fn named(role: Option<&str>) -> bool {
    role.is_some_and(|role| !role.is_empty())
}
