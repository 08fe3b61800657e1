//! Receives the router's decisions: which choices the current event concerns, and which of them end.

use unbraid_core::{
    ChoiceEnd, ChoiceIndex, CompletionKind, EventIndex, Position, Sequenced, Text, Update,
    internal::{ChoiceSink, Delta, Router},
};

use super::TrackedChoice;
use crate::{End, Event, RecordBuilder};

#[derive(Debug)]
pub(super) struct Routed {
    /// The index that the choice of the body gets, if the body has one choice only.
    single: Option<ChoiceIndex>,
    /// The body's own index of its first choice.
    wire_index: Option<ChoiceIndex>,
    choices: Vec<TrackedChoice>,
    touched: Vec<ChoiceIndex>,
    /// Slots that ended with the current event.
    ended: Vec<usize>,
    /// Whether the current event contains usage.
    pub(super) has_usage: bool,
    /// Whether the current event contains a delta of a choice that is dropped.
    pub(super) has_dropped: bool,
    /// The choices of which deltas have arrived after they were cancelled.
    late: Vec<ChoiceIndex>,
    /// The choices of the current event that are not the one that was requested.
    refused: Vec<ChoiceIndex>,
}

impl Routed {
    pub(super) fn new(single: Option<ChoiceIndex>) -> Self {
        Self {
            single,
            wire_index: None,
            choices: Vec::new(),
            touched: Vec::new(),
            ended: Vec::new(),
            has_usage: false,
            has_dropped: false,
            late: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// A delta of a choice that is dropped has arrived.
    pub(super) fn note_dropped(&mut self, choice: ChoiceIndex) {
        self.has_dropped = true;
        if !self.late.contains(&choice) {
            self.late.push(choice);
        }
    }

    /// Whether a delta of a choice has arrived after it was cancelled.
    pub(super) fn has_dropped_from(&self, choice: ChoiceIndex) -> bool {
        self.late.contains(&choice)
    }

    pub(super) fn begin_event(&mut self) {
        self.touched.clear();
        self.has_usage = false;
        self.has_dropped = false;
        self.refused.clear();
    }

    /// Notes a choice of an update of the current event, after the router has routed it.
    pub(super) fn note(&mut self, choice: ChoiceIndex) {
        if self.single.is_some() && self.wire_index != Some(choice) {
            self.has_dropped = true;
            self.refused.push(choice);
        }
    }

    /// The body's own index of its first choice.
    pub(super) fn wire_index(&self) -> Option<ChoiceIndex> {
        self.wire_index
    }

    /// The choices of the current event that are not the one that was requested.
    pub(super) fn refused(&self) -> &[ChoiceIndex] {
        &self.refused
    }

    pub(super) fn clear_touched(&mut self) {
        self.touched.clear();
    }

    /// Opens the choice of a body that has one choice only, and ends without it. Otherwise nobody would learn how it ended.
    pub(super) fn open_single(&mut self, router: &mut Router, event: EventIndex) {
        if self.single.is_some() && self.wire_index.is_none() && router.closed().is_none() {
            let update = Update::default().with_event_index(event);
            router.update(&update.with_choice(ChoiceIndex(0)), self);
            self.clear_touched();
        }
    }

    /// The choices that the current event concerns, in the order of its entries.
    pub(super) fn touched(&self) -> &[ChoiceIndex] {
        &self.touched
    }

    pub(super) fn choices(&self) -> &[TrackedChoice] {
        &self.choices
    }

    pub(super) fn finish_reason(&self, index: ChoiceIndex) -> Option<&str> {
        let choice = self.choices.iter().find(|choice| choice.index == index)?;
        choice.finish_reason.as_deref()
    }

    /// The error with which a choice has just ended.
    pub(super) fn new_failure(&self) -> Option<End> {
        let ends = self
            .ended
            .iter()
            .filter_map(|slot| self.choices.get(*slot)?.end);
        ends.into_iter().find(|end| end.is_error())
    }

    /// Writes the ends that the current event has caused, after the event itself.
    pub(super) fn write_ends(&mut self, log: &mut RecordBuilder) {
        for slot in self.ended.drain(..) {
            if let Some(choice) = self.choices.get(slot)
                && let Some(end) = choice.end
            {
                log.push(&Event::ChoiceEnd {
                    choice: choice.index,
                    end,
                    finish_reason: choice.finish_reason.as_deref(),
                });
            }
        }
    }

    fn touch(&mut self, slot: usize) {
        if let Some(choice) = self.choices.get(slot)
            && !self.touched.contains(&choice.index)
        {
            self.touched.push(choice.index);
        }
    }

    fn end(&mut self, slot: usize, end: End) {
        // The only task that can be lost here is the producer.
        let end = if end == End::Lost {
            End::ProducerLost
        } else {
            end
        };
        if let Some(choice) = self.choices.get_mut(slot)
            && choice.end.is_none()
        {
            choice.end = Some(end);
            self.ended.push(slot);
        }
    }
}

impl ChoiceSink for Routed {
    fn open(&mut self, _slot: usize, index: ChoiceIndex, _kind: CompletionKind) {
        self.wire_index.get_or_insert(index);
        self.choices.push(TrackedChoice {
            index: self.single.unwrap_or(index),
            finish_reason: None,
            end: None,
        });
    }

    fn delta(&mut self, slot: usize, delta: Delta<'_>, _position: Position) {
        self.touch(slot);
        if let Delta::Update(update) = delta
            && let Some(reason) = update.finish_reason.as_deref().filter(|r| !r.is_empty())
            && let Some(choice) = self.choices.get_mut(slot)
            && choice.finish_reason.is_none()
        {
            choice.finish_reason = Some(reason.to_owned());
        }
    }

    fn late_update(&mut self, slot: usize, _update: &Update<'_>, _position: Position) {
        self.touch(slot);
    }

    fn finish(&mut self, slot: usize, end: ChoiceEnd, _position: Position) {
        let has_reason = self
            .choices
            .get(slot)
            .is_some_and(|choice| choice.finish_reason.is_some());
        let end = if has_reason {
            End::Finished
        } else {
            End::from(&end)
        };
        self.end(slot, end);
    }

    fn finish_with_reason(&mut self, slot: usize, _position: Position) {
        self.end(slot, End::Finished);
    }

    fn finish_with_error(&mut self, slot: usize, end: ChoiceEnd, _position: Position) {
        self.end(slot, End::from(&end));
    }

    fn stream_event(&mut self, _event: Sequenced<Text>) {}
}
