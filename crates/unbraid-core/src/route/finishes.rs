//! The order of finish reasons and usage, which decides whom a usage of the envelope describes (U16).

use crate::{ChoiceIndex, usage::Source};

/// Which choices finished in the current chunk, and in the last chunk before it that brought anything.
///
/// A chunk that brings nothing does not come between a finish reason and its usage: a keep-alive, a lost event, a repeated
/// finish reason (F4), an empty delta.
#[derive(Debug, Default)]
pub(super) struct Finishes {
    before: Finished,
    here: Finished,
    /// Whether the current chunk has choices.
    has_choices: bool,
    /// Whether the current chunk has brought something so far.
    brings: bool,
}

/// The choices whose finish reasons arrived in one chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Finished {
    #[default]
    None,
    One(ChoiceIndex),
    /// Several choices; this is the last of them.
    Several(ChoiceIndex),
}

impl Finishes {
    /// A chunk begins.
    #[inline]
    pub(super) fn next_chunk(&mut self) {
        if self.brings {
            self.before = std::mem::take(&mut self.here);
        }
        self.has_choices = false;
        self.brings = false;
    }

    /// The chunk has an update of a choice.
    #[inline]
    pub(super) fn choice(&mut self, brings: bool) {
        self.has_choices = true;
        self.brings |= brings;
    }

    /// The chunk has the first finish reason of this choice, which therefore is none of those that finished before.
    pub(super) fn finish(&mut self, index: ChoiceIndex) {
        self.brings = true;
        self.here = match self.here {
            Finished::None => Finished::One(index),
            Finished::One(_) | Finished::Several(_) => Finished::Several(index),
        };
    }

    /// The chunk brings something else: it opens a choice, or has usage.
    pub(super) fn bring(&mut self) {
        self.brings = true;
    }

    #[inline]
    pub(super) fn has_choices(&self) -> bool {
        self.has_choices
    }

    /// Where usage in the envelope of the current chunk lies. `all_finished` says whether every choice has a finish reason.
    pub(super) fn source(&self, all_finished: impl FnOnce() -> bool) -> Source {
        match (self.has_choices, self.before, self.here) {
            (true, _, Finished::One(choice)) => Source::AtFinish {
                choice,
                shared: false,
                last: all_finished(),
            },
            (true, _, Finished::Several(choice)) => Source::AtFinish {
                choice,
                shared: true,
                last: all_finished(),
            },
            (true, _, Finished::None) => Source::WithChoices,
            (false, Finished::One(choice), _) => Source::AfterFinish {
                choice,
                last: all_finished(),
            },
            (false, Finished::None | Finished::Several(_), _) => Source::Bare,
        }
    }
}
