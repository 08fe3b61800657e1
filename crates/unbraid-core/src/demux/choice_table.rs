//! Every choice's machine and transcript, and the order of their events.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Config, Sequenced, Text, Transcript, Update,
    choice::ChoiceMachine, event::Position, route::ChoiceSink, text_delta::Delta,
};

/// Every choice's machine and transcript, and the order of their events.
#[derive(Debug)]
pub(super) struct ChoiceTable {
    config: Arc<Config>,
    choices: Vec<Slot>,
    queue: VecDeque<Item>,
}

#[derive(Debug)]
struct Slot {
    machine: ChoiceMachine,
    transcript: Transcript,
    /// Events that were returned.
    read: usize,
    /// Events that are in the queue or were returned.
    queued: usize,
}

#[derive(Debug)]
enum Item {
    /// This many further events of a choice.
    Choice {
        slot: usize,
        events: usize,
    },
    Stream(Box<Sequenced<Text>>),
}

impl ChoiceTable {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        Self {
            config: Arc::clone(config),
            choices: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// The transcripts of all choices, in order of first appearance.
    pub(super) fn transcripts(&self) -> impl Iterator<Item = &Transcript> {
        self.choices.iter().map(|slot| &slot.transcript)
    }

    pub(super) fn transcript(&self, slot: usize) -> Option<&Transcript> {
        self.choices.get(slot).map(|slot| &slot.transcript)
    }

    pub(super) fn waiting_halves(&self, slot: usize) -> [Option<u16>; 4] {
        let choice = self.choices.get(slot);
        choice.map_or([None; 4], |slot| slot.machine.waiting_halves())
    }

    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Sequenced<&str>> {
        loop {
            let (slot, seq) = match self.queue.front_mut()? {
                Item::Stream(_) => return self.next_of_stream(),
                Item::Choice { slot, events } => {
                    let taken = self.choices.get_mut(*slot)?;
                    let position = (*slot, taken.read);
                    taken.read += 1;
                    *events -= 1;
                    if *events == 0 {
                        self.queue.pop_front();
                    }
                    position
                }
            };
            if self.choices.get(slot)?.transcript.has_event(seq) {
                return self.choices.get(slot)?.transcript.event(seq);
            }
        }
    }

    pub(super) fn skip_events(&mut self) {
        self.queue.clear();
        for choice in &mut self.choices {
            choice.read = choice.queued;
        }
    }

    #[cold]
    fn next_of_stream(&mut self) -> Option<Sequenced<&str>> {
        match self.queue.pop_front()? {
            Item::Stream(event) => Some(event.map(|_| "")), // its events contain no text
            Item::Choice { .. } => None,
        }
    }

    /// Lets a machine work, and queues the events that it wrote.
    fn with(&mut self, slot: usize, work: impl FnOnce(&mut ChoiceMachine, &mut Transcript)) {
        let Some(choice) = self.choices.get_mut(slot) else {
            return;
        };
        work(&mut choice.machine, &mut choice.transcript);
        let events = choice
            .transcript
            .event_count()
            .saturating_sub(choice.queued);
        choice.queued += events;
        if events > 0 {
            self.queue.push_back(Item::Choice { slot, events });
        }
    }
}

impl ChoiceSink for ChoiceTable {
    fn open(&mut self, _slot: usize, index: ChoiceIndex, kind: CompletionKind) {
        if self.choices.is_empty() {
            // A vector would begin with room for four choices, which are large. Most streams have one.
            self.choices.reserve_exact(1);
        }
        self.choices.push(Slot {
            machine: ChoiceMachine::new(Arc::clone(&self.config)),
            transcript: Transcript::new(index, kind),
            read: 0,
            queued: 0,
        });
    }

    fn delta(&mut self, slot: usize, delta: Delta<'_>, position: Position) {
        self.with(slot, |machine, transcript| {
            machine.apply(delta, position, transcript)
        });
    }

    fn late_update(&mut self, slot: usize, update: &Update<'_>, position: Position) {
        self.with(slot, |machine, transcript| {
            machine.apply_late(update, position, transcript)
        });
    }

    fn finish(&mut self, slot: usize, end: ChoiceEnd, position: Position) {
        self.with(slot, |machine, transcript| {
            machine.finish(end, position, transcript)
        });
    }

    fn finish_with_reason(&mut self, slot: usize, position: Position) {
        self.with(slot, |machine, transcript| {
            machine.finish_with_reason(position, transcript)
        });
    }

    fn finish_with_error(&mut self, slot: usize, end: ChoiceEnd, position: Position) {
        self.with(slot, |machine, transcript| {
            machine.finish_with_error(end, position, transcript)
        });
    }

    fn stream_event(&mut self, event: Sequenced<Text>) {
        self.queue.push_back(Item::Stream(Box::new(event)));
    }
}
