//! The reader's commands: cancel one choice, cancel all, keep only some, drain the rest.

use std::sync::Arc;

use unbraid_core::{ChoiceIndex, StreamError};

use super::{Reader, Rest};
use crate::control::Command;

/// The choices that go on while all others are cancelled, once that is decided.
#[derive(Debug)]
pub(super) struct Selection {
    /// In ascending order.
    winners: Arc<[ChoiceIndex]>,
    /// Whether any other choice was still open, and was cancelled.
    has_cancelled: bool,
}

impl Selection {
    fn contains(&self, index: ChoiceIndex) -> bool {
        self.winners.binary_search(&index).is_ok()
    }
}

impl Reader {
    pub(super) fn handle_command(&mut self, command: Command) {
        match command {
            Command::CancelAll => self.cancel_all(),
            Command::Abandon => self.pipeline.abort(StreamError::Cancelled),
            Command::Drain => {
                self.rest = Rest::Drain;
                self.pipeline.abort(StreamError::Cancelled); // no handle is left to read it
            }
            // An index that has not appeared is ignored: its handle cannot exist.
            Command::Cancel(index) => self.cancel(index),
            Command::KeepOnly(winners) => self.select(winners),
        }
    }

    /// Cancels every choice but the winners, from here on. A choice that an earlier selection lacks stays out, even if it has
    /// not appeared yet.
    fn select(&mut self, winners: Arc<[ChoiceIndex]>) {
        self.selection = Some(match self.selection.take() {
            None => Selection {
                winners,
                has_cancelled: false,
            },
            Some(earlier) => Selection {
                winners: winners
                    .iter()
                    .copied()
                    .filter(|index| earlier.contains(*index))
                    .collect(),
                has_cancelled: earlier.has_cancelled,
            },
        });
    }

    /// Cancels everything for the caller. The source is informed, because it may be another process that generates.
    fn cancel_all(&mut self) {
        if self.pipeline.router().closed().is_none() {
            self.source.cancelled(None);
        }
        self.pipeline.abort(StreamError::Cancelled);
    }

    /// Cancels one choice. The source closes with the last of them. A choice that ended by itself keeps it open, because
    /// the usage has not arrived yet (U14).
    fn cancel(&mut self, index: ChoiceIndex) {
        let slot = self.outbox().slot(index);
        let cancelled = slot.is_some_and(|slot| self.cancel_slot(slot));
        // If it is not known how many choices were asked for, one more may appear, so the source stays open.
        if cancelled
            && self.expects_more_choices() == Some(false)
            && self.pipeline.router().all_cancelled()
        {
            self.cancel_all();
        }
    }

    /// Cancels the choice of a slot; returns false if it had ended before, or ends now because it has its finish reason.
    fn cancel_slot(&mut self, slot: usize) -> bool {
        let ended = self.pipeline.cancel(slot);
        let cancelled = ended && self.pipeline.router().drops(slot);
        if cancelled {
            self.outbox_mut().mark_cancelled(slot);
            let choice = self.pipeline.router().index(slot);
            self.source.cancelled(choice);
        }
        cancelled
    }

    /// Whether more choices are expected, if it is known how many were asked for.
    fn expects_more_choices(&self) -> Option<bool> {
        let capacity = self.outbox().capacity();
        let expected = self.config.expect_choices.or(capacity)?;
        Some(self.outbox().choices() < expected as usize)
    }

    /// Cancels every choice that was not selected, and closes the source once no selected choice is open.
    pub(super) fn apply_selection(&mut self) {
        // The selection is kept and applied after each read: a choice that appears later must be cancelled, too.
        let Some(mut selection) = self.selection.take() else {
            return;
        };
        let choices = self.outbox().choices();
        let mut winner_is_open = false;
        for slot in 0..choices {
            let index = self.outbox().index(slot);
            if index.is_some_and(|index| selection.contains(index)) {
                winner_is_open |= !self.pipeline.router().has_ended(slot);
            } else {
                selection.has_cancelled |= self.cancel_slot(slot);
            }
        }
        let closes_early =
            selection.has_cancelled || choices == 0 || self.expects_more_choices() == Some(true);
        if !winner_is_open && closes_early {
            self.cancel_all();
        }
        self.selection = Some(selection);
    }
}
