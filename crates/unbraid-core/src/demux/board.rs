//! Every choice's machine and transcript, and the order in which they had something to tell.

use std::collections::VecDeque;

use crate::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Config, Sequenced, Text, Transcript, Update,
    choice::ChoiceMachine, event::Position, route::ChoiceSink, text_delta::TextDelta,
};

/// Every choice's machine and transcript, and the order of what has happened.
#[derive(Debug)]
pub(super) struct Board {
    options: Config,
    choices: Vec<Slot>,
    queue: VecDeque<Item>,
}

#[derive(Debug)]
struct Slot {
    machine: ChoiceMachine,
    log: Transcript,
    /// Events that were taken.
    read: usize,
    /// Events that stand in the queue or were taken.
    queued: usize,
}

#[derive(Debug)]
enum Item {
    /// The next so many events of a choice.
    Choice {
        slot: usize,
        events: usize,
    },
    Stream(Box<Sequenced<Text>>),
}

impl Board {
    pub(super) fn new(options: &Config) -> Self {
        Self {
            options: options.clone(),
            choices: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// The records of all choices, in order of first appearance.
    pub(super) fn logs(&self) -> impl Iterator<Item = &Transcript> {
        self.choices.iter().map(|slot| &slot.log)
    }

    pub(super) fn log(&self, slot: usize) -> Option<&Transcript> {
        self.choices.get(slot).map(|slot| &slot.log)
    }

    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Sequenced<&str>> {
        loop {
            let (slot, seq) = match self.queue.front_mut()? {
                Item::Stream(_) => return self.next_of_stream(),
                Item::Choice { slot, events } => {
                    let taken = self.choices.get_mut(*slot)?;
                    let place = (*slot, taken.read);
                    taken.read += 1;
                    *events -= 1;
                    if *events == 0 {
                        self.queue.pop_front();
                    }
                    place
                }
            };
            if self.choices.get(slot)?.log.tells(seq) {
                return self.choices.get(slot)?.log.event(seq);
            }
        }
    }

    #[cold]
    fn next_of_stream(&mut self) -> Option<Sequenced<&str>> {
        match self.queue.pop_front()? {
            Item::Stream(event) => Some(event.map(|_| "")), // its events hold no text
            Item::Choice { .. } => None,
        }
    }

    /// Lets a machine work, and queues what it told.
    fn with(&mut self, slot: usize, work: impl FnOnce(&mut ChoiceMachine, &mut Transcript)) {
        let Some(choice) = self.choices.get_mut(slot) else {
            return;
        };
        work(&mut choice.machine, &mut choice.log);
        let events = choice.log.event_count().saturating_sub(choice.queued);
        choice.queued += events;
        if events > 0 {
            self.queue.push_back(Item::Choice { slot, events });
        }
    }
}

impl ChoiceSink for Board {
    fn open(&mut self, _slot: usize, index: ChoiceIndex, shape: CompletionKind) {
        self.choices.push(Slot {
            machine: ChoiceMachine::new(&self.options),
            log: Transcript::new(index, shape),
            read: 0,
            queued: 0,
        });
    }

    fn update(&mut self, slot: usize, update: &Update<'_>, place: Position) {
        self.with(slot, |machine, log| machine.apply(update, place, log));
    }

    fn piece(&mut self, slot: usize, piece: &TextDelta<'_>, place: Position) {
        self.with(slot, |machine, log| machine.apply_text(piece, place, log));
    }

    fn late(&mut self, slot: usize, update: &Update<'_>, place: Position) {
        self.with(slot, |machine, log| machine.apply_late(update, place, log));
    }

    fn end(&mut self, slot: usize, end: ChoiceEnd, place: Position) {
        self.with(slot, |machine, log| machine.finish(end, place, log));
    }

    fn fail(&mut self, slot: usize, end: ChoiceEnd, place: Position) {
        self.with(slot, |machine, log| {
            machine.finish_with_error(end, place, log)
        });
    }

    fn stream(&mut self, event: Sequenced<Text>) {
        self.queue.push_back(Item::Stream(Box::new(event)));
    }
}
