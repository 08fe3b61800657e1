//! Where the router's decisions go: one batch a choice and read, and the stream's own events.

use std::sync::Arc;

use ractor::{Actor, ActorCell, concurrency::JoinHandle};
use tokio::time::Instant;
use unbraid_core::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Config, Position, Sequenced, Update, piece::TextDelta,
    route::ChoiceSink,
};

use crate::{
    reader::choice_actor::ChoiceActor,
    reader::numbering::Numbering,
    state::batch::Batch,
    state::choice_log::{Log, Owner},
    state::completion::BoardWriter,
    sync::wait_list::Due,
};

#[derive(Debug)]
pub(crate) struct Outbox {
    options: Config,
    numbering: Numbering,
    started: Instant,
    lanes: Vec<Lane>,
    /// Slots with something in their batch.
    filled: Vec<usize>,
    /// Events of the stream itself.
    pub(crate) events: Vec<Sequenced>,
    /// Whether an error has ended a choice.
    pub(crate) told: bool,
}

/// The way to one choice.
#[derive(Debug)]
struct Lane {
    /// The index within the source.
    own: ChoiceIndex,
    /// The index within the completion.
    index: ChoiceIndex,
    shape: CompletionKind,
    batch: Batch,
    /// Whether it was given its end: nobody waits for more of it.
    ended: bool,
    /// Whether the log has taken its first batch, but nobody knows of it yet: the slot is among those that are filled.
    ahead: bool,
    /// `None` until the first batch is handed on.
    link: Option<Link>,
}

#[derive(Debug)]
struct Link {
    log: Log,
    actor: Option<JoinHandle<()>>,
    /// Who was woken when it last was given something.
    due: Due,
}

impl Outbox {
    pub(crate) fn new(options: Config, numbering: Numbering, started: Instant) -> Self {
        Self {
            options,
            numbering,
            started,
            lanes: Vec::new(),
            filled: Vec::new(),
            events: Vec::new(),
            told: false,
        }
    }

    /// How many choices have come.
    pub(crate) fn choices(&self) -> usize {
        self.lanes.len()
    }

    /// The slot of a choice, by its index within the completion.
    pub(crate) fn slot(&self, index: ChoiceIndex) -> Option<usize> {
        let has = |lane: &Lane| lane.index == index;
        // Nearly all servers begin their choices in order.
        let guess = self.numbering.offset(index);
        if self.lanes.get(guess).is_some_and(has) {
            return Some(guess);
        }
        self.lanes.iter().position(has)
    }

    /// The index of a slot's choice within the completion.
    pub(crate) fn index(&self, slot: usize) -> Option<ChoiceIndex> {
        self.lanes.get(slot).map(|lane| lane.index)
    }

    /// The index within the completion of a choice of this source.
    pub(crate) fn number(&self, own: ChoiceIndex) -> ChoiceIndex {
        let has = |lane: &&Lane| lane.own == own;
        let guess = self.lanes.get(own.0 as usize).filter(has);
        let lane = guess.or_else(|| self.lanes.iter().find(has));
        lane.map_or(own, |lane| lane.index)
    }

    /// Opens every choice of a source that failed before any came, so that they report the error (a source of several
    /// only): as many as were asked for, within the limit on choices.
    pub(crate) fn stand_in(&mut self, end: &ChoiceEnd) {
        let most = u32::try_from(self.options.limits.choices).unwrap_or(u32::MAX);
        for slot in 0..self.numbering.room().unwrap_or(0).min(most) {
            self.open(slot as usize, ChoiceIndex(slot), CompletionKind::Chat);
            self.fail(slot as usize, end.clone(), Position::default());
        }
    }

    fn mark_ended(&mut self, slot: usize) {
        if let Some(lane) = self.lanes.get_mut(slot) {
            lane.ended = true;
        }
    }

    fn fill(&mut self, slot: usize, work: impl FnOnce(&mut Batch)) {
        let Some(lane) = self.lanes.get_mut(slot) else {
            return;
        };
        if lane.batch.is_empty() && !lane.ahead {
            self.filled.push(slot);
        }
        work(&mut lane.batch);
    }

    /// Hands the batches on; false if some are for choices whose actors are still to be [`start`](Self::start)ed.
    pub(crate) fn deliver(&mut self) -> bool {
        let Self { lanes, filled, .. } = self;
        filled.retain(|slot| match lanes.get_mut(*slot) {
            Some(Lane {
                link: Some(link),
                ahead: false,
                batch,
                ended,
                ..
            }) => {
                link.log.give(batch, &mut link.due);
                if *ended {
                    link.due = Due::default(); // a cursor that is dropped from here on takes its waker along
                }
                false
            }
            Some(_) => true,
            None => false,
        });
        filled.is_empty()
    }

    /// Hands on what a large event has brought, and applies it, so that no task has to: that takes time in proportion, too.
    /// Choices that are new stay to be [`start`](Self::start)ed.
    pub(crate) fn apply(&mut self) {
        let Self {
            lanes,
            filled,
            options,
            started,
            ..
        } = self;
        filled.retain(|slot| {
            lanes
                .get_mut(*slot)
                .is_some_and(|lane| !lane.apply(options, *started))
        });
    }

    /// Starts the actors of choices that are new, and gives their logs in order of appearance. Where the stream is `over`
    /// nothing more comes for any of them, and none has a life that an actor would own.
    ///
    /// Each choice's owner holds the board, too. The outbox does not: it may be with a job that outlives the reader.
    pub(crate) async fn start(
        &mut self,
        me: &ActorCell,
        board: &Arc<BoardWriter>,
        over: bool,
    ) -> Vec<Log> {
        let mut new = Vec::new();
        self.filled.sort_unstable();
        for slot in self.filled.drain(..) {
            if let Some(lane) = self.lanes.get_mut(slot) {
                let log = lane.open(&self.options, self.started);
                let owner = Owner::new(log.clone(), Arc::clone(board));
                if over {
                    drop(owner);
                } else {
                    lane.start(owner, me).await;
                }
                new.push(log);
            }
        }
        new
    }

    /// Tells all choices that nothing more comes, and waits until they have done their work.
    pub(crate) async fn join(&mut self) {
        let links = self.lanes.iter_mut().filter_map(|lane| lane.link.as_mut());
        let mut links: Vec<&mut Link> = links.collect();
        for link in &links {
            link.log.close();
        }
        for actor in links.iter_mut().filter_map(|link| link.actor.take()) {
            let _ended = actor.await;
        }
        // However an actor ended, its owner has sealed the log; unless that owner is on its way to the mailbox of the
        // reader, which reads none.
        links.iter().for_each(|link| link.log.seal());
    }
}

impl Lane {
    /// Applies the batch; false if nobody knows of the choice yet.
    fn apply(&mut self, options: &Config, started: Instant) -> bool {
        match &mut self.link {
            Some(link) if !self.ahead => {
                link.log.give_applied(&mut self.batch, &mut link.due);
                if self.ended {
                    link.due = Due::default(); // as in `deliver`
                }
                true
            }
            _ => {
                self.open(options, started).read(|_| {}); // a look applies it
                self.ahead = true;
                false
            }
        }
    }

    /// Makes the choice's log, unless that was done ahead, and puts the first batch into it.
    fn open(&mut self, options: &Config, started: Instant) -> Log {
        self.ahead = false;
        if let Some(link) = &mut self.link {
            if !self.batch.is_empty() {
                link.log.give(&mut self.batch, &mut link.due);
            }
            return link.log.clone();
        }
        let log = Log::of_choice(self.index, self.shape, options, started);
        let mut due = Due::default();
        log.give(&mut self.batch, &mut due);
        self.link = Some(Link {
            log: log.clone(),
            actor: None,
            due,
        });
        log
    }

    /// Starts the choice's actor. If that fails the dropped owner has sealed the log.
    async fn start(&mut self, owner: Owner, me: &ActorCell) {
        let spawned = ChoiceActor::spawn_linked(None, ChoiceActor, owner, me.clone()).await;
        if let (Some(link), Ok((_, actor))) = (&mut self.link, spawned) {
            link.actor = Some(actor);
        }
    }
}

impl ChoiceSink for Outbox {
    fn open(&mut self, _slot: usize, index: ChoiceIndex, shape: CompletionKind) {
        self.lanes.push(Lane {
            own: index,
            index: self.numbering.number(index),
            shape,
            batch: Batch::default(),
            ended: false,
            ahead: false,
            link: None,
        });
    }

    fn update(&mut self, slot: usize, update: &Update<'_>, place: Position) {
        self.fill(slot, |batch| batch.update(update, place));
    }

    fn piece(&mut self, slot: usize, piece: &TextDelta<'_>, place: Position) {
        self.fill(slot, |batch| batch.piece(piece, place));
    }

    fn late(&mut self, slot: usize, update: &Update<'_>, place: Position) {
        self.fill(slot, |batch| batch.late(update, place));
    }

    fn end(&mut self, slot: usize, end: ChoiceEnd, place: Position) {
        self.told |= end.is_error();
        self.mark_ended(slot);
        self.fill(slot, |batch| batch.end(end, place));
    }

    fn fail(&mut self, slot: usize, end: ChoiceEnd, place: Position) {
        self.mark_ended(slot);
        self.fill(slot, |batch| batch.fail(end, place));
    }

    fn fail_with_stream(&mut self, slot: usize, end: ChoiceEnd, place: Position) {
        self.told = true;
        self.fail(slot, end, place);
    }

    fn stream(&mut self, event: Sequenced) {
        self.events.push(event);
    }
}
