//! What the router knows about the stream, for its callers.

use serde_json::Value;

use super::{Route, Router};
use crate::{
    ChoiceIndex, EventIndex, Metadata, StreamError, Usage, Warning,
    usage::{Known, LastUsage, Reported, UnreadUsage},
};

impl Router {
    /// The result of the stream, once it is closed.
    #[must_use]
    pub fn closed(&self) -> Option<&Result<(), StreamError>> {
        self.closed.as_ref()
    }

    /// The envelope so far.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Warnings about the stream, and warnings about choices that only the router can see.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.kept()
    }

    /// How many further warnings there were, beyond [`Limits::warnings`](crate::Limits::warnings).
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        self.warnings.dropped()
    }

    /// How many updates arrived, not counting text deltas: those do not change [`metadata`](Self::metadata).
    #[doc(hidden)]
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Reported usage so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let Some(usage) = self.usage.as_ref().filter(|usage| !usage.is_empty()) else {
            return Usage::default(); // as of most streams, all of whose choices would be listed for nothing
        };
        usage.usage(&self.known(&self.received()))
    }

    /// The same when the stream closes, so that no more usage is reported.
    pub(super) fn last_usage(&mut self) -> LastUsage {
        let Some(mut reported) = self.usage.take_if(|usage| !usage.is_empty()) else {
            return LastUsage::Absent;
        };
        let received = self.received();
        let known = self.known(&received);
        if reported.may_stay_unread(&known) {
            let (finished, per_prompt) = (known.finished, known.choices_per_prompt);
            let unread = UnreadUsage::new(reported, received, finished, per_prompt);
            return LastUsage::Unread(unread);
        }
        let usage = reported.take_usage(&known);
        self.usage = Some(reported);
        match usage.raw {
            Value::Null => LastUsage::Absent,
            _ => LastUsage::Read(Box::new(usage)),
        }
    }

    /// The deltas with text that were received for each choice.
    fn received(&self) -> Vec<(ChoiceIndex, u64)> {
        let received = |r: &Route| (r.index, r.deltas.saturating_sub(r.textless_deltas));
        self.routes.iter().map(received).collect()
    }

    fn known<'r>(&self, received: &'r [(ChoiceIndex, u64)]) -> Known<'r> {
        Known {
            received,
            finished: self.routes.iter().all(|route| route.has_finish_reason),
            choices_per_prompt: self.config.choices_per_prompt,
        }
    }

    pub(super) fn usage_mut(&mut self) -> &mut Reported {
        self.usage.get_or_insert_default()
    }

    /// Whether a choice has its finish reason but has not ended. Only then does [`handle_idle`](Self::handle_idle) end one.
    #[must_use]
    pub fn has_finished_choices(&self) -> bool {
        self.finished > 0
    }

    /// Whether as many choices as requested appeared, and all of them have ended.
    #[must_use]
    pub fn all_ended(&self) -> bool {
        if self.open > 0 {
            return false;
        }
        // Without a choice nothing has ended yet.
        let expected = self.config.expect_choices.map_or(1, |n| n as usize).max(1);
        self.routes.len() >= expected
    }

    /// Whether the choice of a slot has ended.
    #[must_use]
    pub fn has_ended(&self, slot: usize) -> bool {
        self.routes
            .get(slot)
            .is_some_and(|route| !route.state.is_open())
    }

    /// The slot of a choice that has appeared.
    #[must_use]
    #[inline]
    pub fn slot(&self, index: ChoiceIndex) -> Option<usize> {
        // Nearly all servers begin their choices in order, so an index is its slot.
        let guess = index.0 as usize;
        if self.routes.get(guess).is_some_and(|r| r.index == index) {
            return Some(guess);
        }
        // A small index that has not appeared is `Some(None)`, so it needs no search either.
        match self.slots.get(guess) {
            Some(slot) => *slot,
            None => self.routes.iter().position(|r| r.index == index),
        }
    }

    /// The choice of a slot.
    #[must_use]
    pub fn index(&self, slot: usize) -> Option<ChoiceIndex> {
        self.routes.get(slot).map(|route| route.index)
    }

    /// The event of the last update.
    #[must_use]
    pub fn last_event(&self) -> EventIndex {
        self.next_event.previous()
    }
}
