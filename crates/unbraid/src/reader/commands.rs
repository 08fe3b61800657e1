//! What handles ask of the reader: one choice cancelled, all of them, or all but the winners.

use unbraid_core::{ChoiceIndex, StreamError};

use super::Reader;
use crate::control::Request;

impl Reader {
    pub(super) fn asked(&mut self, request: Request) {
        match request {
            Request::CancelAll => self.pipeline.abort(StreamError::Cancelled),
            Request::Drain => {
                self.drain = true;
                self.pipeline.abort(StreamError::Cancelled); // nobody is left to read it
            }
            Request::Cancel(index) => self.cancel(index),
            Request::Keep(winners) => self.winners = Some(winners), // in order
        }
    }

    /// The caller ends one choice. The body closes with the last of them; a choice that ended by itself keeps it open,
    /// since the usage is still to come (U14).
    fn cancel(&mut self, index: ChoiceIndex) {
        let slot = self.pipeline.sink.slot(index);
        let cancelled = slot.is_some_and(|slot| self.cancel_slot(slot));
        if cancelled
            && self.more_may_come() == Some(false)
            && self.pipeline.router().all_cancelled()
        {
            self.pipeline.abort(StreamError::Cancelled);
        }
    }

    fn cancel_slot(&mut self, slot: usize) -> bool {
        let told = self.pipeline.sink.told;
        let cancelled = self.pipeline.cancel(slot);
        self.pipeline.sink.told = told; // that end was the caller's own wish
        cancelled
    }

    /// Whether choices are still to come, if it is known how many were asked for.
    fn more_may_come(&self) -> Option<bool> {
        let expected = self.options.expect_choices?;
        Some(self.pipeline.sink.choices() < expected as usize)
    }

    /// Cancels all that have not won, and closes the body when only they would still use it.
    pub(super) fn keep_winners(&mut self) {
        let Some(winners) = self.winners.clone() else {
            return;
        };
        let mut open = false;
        for slot in 0..self.pipeline.sink.choices() {
            if self
                .pipeline
                .sink
                .index(slot)
                .is_some_and(|index| winners.binary_search(&index).is_ok())
            {
                open |= !self.pipeline.router().has_ended(slot);
            } else {
                self.has_losers |= self.cancel_slot(slot);
            }
        }
        let none_came = self.pipeline.sink.choices() == 0;
        if !open && (self.has_losers || none_came || self.more_may_come() == Some(true)) {
            self.pipeline.abort(StreamError::Cancelled);
        }
    }
}
