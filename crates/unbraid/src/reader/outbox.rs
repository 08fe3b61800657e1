//! Where the router's decisions go: the first delta of a read to the log, further ones to one batch per choice and read, and
//! the events of the stream itself.

use std::sync::Arc;

use ractor::ActorCell;
use smallvec::SmallVec;
use tokio::time::Instant;
use unbraid_core::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Config, Event, Position, Sequenced, Update, Usage,
    Warning,
    internal::{ChoiceSink, Delta, UnreadUsage, prefetch},
};

use super::{
    choice_actor::ChoiceActor,
    choice_route::{ChoiceRoute, RouteEnd, Stage},
    numbering::Numbering,
    owners::Owners,
};
use crate::{
    state::{
        batch::Batch, choice_log::ChoiceLog, completion::CompletionWriter, log_owner::LogOwner,
        stream_event::StreamEvent,
    },
    sync::{
        shared::Deferred,
        wait_list::{Interest, WakeList},
    },
};

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Outbox {
    config: Arc<Config>,
    numbering: Numbering,
    started: Instant,
    /// Of one source of several: the usage that it has reported. That of the only source is an event of the stream.
    usage: Option<Box<Usage>>,
    /// The slots with undelivered work, those whose choice is still to be announced, and those whose actor is still to be started.
    undelivered: SmallVec<[usize; 8]>,
    /// Events of the stream itself.
    events: Vec<StreamEvent>,
    /// One route per choice; the index is the router's slot.
    routes: Vec<ChoiceRoute>,
}

/// Where the next work for a choice goes.
enum Target<'r> {
    /// The log of a choice that is not announced yet.
    Log(&'r ChoiceLog),
    Route(&'r mut ChoiceRoute),
}

impl Outbox {
    pub(crate) fn new(
        config: impl Into<Arc<Config>>,
        numbering: Numbering,
        started: Instant,
    ) -> Self {
        Self {
            config: config.into(),
            numbering,
            started,
            routes: Vec::new(),
            undelivered: SmallVec::new(),
            events: Vec::new(),
            usage: None,
        }
    }

    /// Loads what the next event most likely needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        /// Any of the choices may be next, and what is loaded for the others is loaded in vain.
        const MOST: usize = 4;
        for route in self.routes.iter().take(MOST) {
            route.log.prefetch();
            route.wake_list.prefetch();
            prefetch(route.batch.is_empty().into());
        }
    }

    /// How many choices have appeared.
    pub(crate) fn choices(&self) -> usize {
        self.routes.len()
    }

    /// The slot of a choice, by its index within the completion.
    pub(crate) fn slot(&self, index: ChoiceIndex) -> Option<usize> {
        let matches = |route: &ChoiceRoute| route.log.index() == index;
        // Nearly all servers begin their choices in order. Any other choice is searched for.
        let guess = self.numbering.offset(index);
        if self.routes.get(guess).is_some_and(matches) {
            return Some(guess);
        }
        self.routes.iter().position(matches)
    }

    /// The index within the completion of a slot's choice.
    pub(crate) fn index(&self, slot: usize) -> Option<ChoiceIndex> {
        self.routes.get(slot).map(|route| route.log.index())
    }

    /// The index within the completion of a choice of this source.
    pub(crate) fn assigned_index(&self, source_index: ChoiceIndex) -> ChoiceIndex {
        let matches = |route: &&ChoiceRoute| route.source_index == source_index;
        let guess = self.routes.get(source_index.0 as usize).filter(matches);
        let route = guess.or_else(|| self.routes.iter().find(matches));
        route.map_or(source_index, |route| route.log.index())
    }

    /// Replaces the choice that a warning names by its index within the completion. A warning about the whole of a source that
    /// may have one choice concerns that choice.
    pub(crate) fn assign_choice(&self, warning: &mut Warning) {
        let choice = warning.choice.map(|choice| self.assigned_index(choice));
        warning.choice = self.numbering.only_index().or(choice);
    }

    /// How many choices the source may have; `None` if it is the only source.
    pub(crate) fn capacity(&self) -> Option<u32> {
        self.numbering.capacity()
    }

    /// Whether a choice ended with an error that the stream reports. A choice that the caller cancelled did not.
    pub(crate) fn has_failed_choice(&self) -> bool {
        self.routes
            .iter()
            .any(|route| route.end == RouteEnd::Failed)
    }

    /// Notes that the end of a slot's choice is the caller's.
    pub(crate) fn mark_cancelled(&mut self, slot: usize) {
        self.set_end(slot, RouteEnd::Cancelled);
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the usage that one source of several has reported.
    pub(crate) fn take_usage(&mut self) -> Option<Box<Usage>> {
        self.usage.take()
    }

    /// Takes the stream's own events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// Opens every choice of a source that failed before any appeared, so that they report the error: as many as were asked
    /// for, within the limit on choices. Does nothing for the only source of a completion.
    pub(crate) fn fail_unopened_choices(&mut self, end: &ChoiceEnd) {
        let most = u32::try_from(self.config.limits.choices).unwrap_or(u32::MAX);
        for slot in 0..self.numbering.capacity().unwrap_or(0).min(most) {
            self.open(slot as usize, ChoiceIndex(slot), CompletionKind::Chat);
            self.finish_with_error(slot as usize, end.clone(), Position::default());
        }
    }

    fn set_end(&mut self, slot: usize, end: RouteEnd) {
        if let Some(route) = self.routes.get_mut(slot) {
            route.end = end;
        }
    }

    /// Where work for a slot goes. The caller writes to it directly, so a text delta allocates nothing.
    fn target(&mut self, slot: usize) -> Option<Target<'_>> {
        let route = self.routes.get_mut(slot)?;
        if route.stage == Stage::New {
            return Some(Target::Log(&route.log));
        }
        // The first work after a delivery marks the slot, so each slot is listed once and `deliver` visits only choices with
        // work, not all of them.
        if !route.has_work() {
            self.undelivered.push(slot);
        }
        Some(Target::Route(route))
    }

    /// Delivers the batches; returns false if choices are still to be announced or their actors to be started, which
    /// [`advance`](Self::advance) does.
    pub(crate) fn deliver(&mut self) -> bool {
        self.deliver_by(ChoiceLog::append);
        self.undelivered.is_empty()
    }

    /// Delivers what a large event has brought, and applies it at once: that takes time in proportion to the event, too, so
    /// it must not be left to a task. Choices that are new stay to be announced.
    pub(crate) fn apply(&mut self) {
        self.deliver_by(ChoiceLog::append_and_apply);
    }

    fn deliver_by(
        &mut self,
        append: impl Fn(&ChoiceLog, Interest, &mut Batch, &mut WakeList) -> Deferred,
    ) {
        let Self {
            routes,
            undelivered,
            ..
        } = self;
        // What stays in the list belongs to choices that are still to be announced or started.
        undelivered.retain(|slot| {
            let route = routes.get_mut(*slot);
            route.is_some_and(|route| {
                // It is empty if the actor was not started after the last delivery.
                if route.has_work() {
                    route.deliver(&append);
                }
                match route.stage {
                    Stage::New => true,
                    Stage::Announced => route.needs_actor(),
                    Stage::Started => false,
                }
            })
        });
    }

    /// Takes choices to their next stage: starts the actors of those that stayed open, if they have a supervisor, and returns the
    /// logs of new ones in order of appearance.
    ///
    /// The owners are the reader's and not the outbox's: that may be with a job that outlives the reader.
    pub(super) fn advance(
        &mut self,
        supervisor: Option<&ActorCell>,
        completion: &Arc<CompletionWriter>,
        owners: &mut Owners,
    ) -> Vec<ChoiceLog> {
        let mut new = Vec::new();
        // A choice is listed when it opens, so new slots are in order of appearance.
        for slot in self.undelivered.drain(..) {
            let Some(route) = self.routes.get_mut(slot) else {
                continue;
            };
            if route.stage == Stage::New {
                route.stage = Stage::Announced;
                let owner = LogOwner::new(route.log.clone(), Arc::clone(completion));
                owners.insert(slot, owner);
                new.push(route.log.clone());
            } else if let Some(supervisor) = supervisor
                && let Some(owner) = owners.take(slot)
            {
                route.stage = Stage::Started;
                // If the actor does not start, the dropped owner seals the log.
                route.actor = ChoiceActor::start(owner, supervisor);
            }
        }
        new
    }

    /// Completes all choices, and waits until their actors have done their work.
    pub(super) async fn join(&mut self, owners: &mut Owners) {
        // All are completed before any is waited for, so that they finish in parallel.
        let started = self.routes.iter().filter(|route| route.actor.is_some());
        started.for_each(|route| route.log.complete());
        for route in &mut self.routes {
            if let Some(actor) = route.actor.take() {
                let _ended = actor.await;
            }
        }
        // Without an actor, the dropped owner applies what is pending, and seals the log.
        *owners = Owners::default();
        // However an actor ended, its owner has sealed the log. A choice that was never announced has no owner.
        let new = self.routes.iter().filter(|route| route.stage == Stage::New);
        new.for_each(|route| route.log.seal());
    }
}

impl ChoiceSink for Outbox {
    fn open(&mut self, slot: usize, source_index: ChoiceIndex, kind: CompletionKind) {
        if self.routes.is_empty() {
            // A vector would begin with room for four routes, which are large. Most streams have one choice.
            const MOST: u32 = 16;
            let expected = self.config.expect_choices.unwrap_or(1).min(MOST);
            self.routes.reserve_exact(expected as usize);
        }
        let index = self.numbering.assign(source_index);
        let log = ChoiceLog::new(index, kind, &self.config, self.started);
        self.routes.push(ChoiceRoute::new(source_index, log));
        self.undelivered.push(slot); // until it is announced
    }

    fn delta(&mut self, slot: usize, delta: Delta<'_>, position: Position) {
        match self.target(slot) {
            Some(Target::Log(log)) => log.apply_delta(delta, position),
            Some(Target::Route(route)) => route.delta(delta, position),
            None => {}
        }
    }

    fn late_update(&mut self, slot: usize, update: &Update<'_>, position: Position) {
        match self.target(slot) {
            Some(Target::Log(log)) => log.write(position, |machine, transcript| {
                machine.apply_late(update, position, transcript);
            }),
            Some(Target::Route(route)) => route.batch.push_late(update, position),
            None => {}
        }
    }

    fn finish(&mut self, slot: usize, end: ChoiceEnd, position: Position) {
        self.set_end(
            slot,
            if end.is_error() {
                RouteEnd::Failed
            } else {
                RouteEnd::Ended
            },
        );
        match self.target(slot) {
            Some(Target::Log(log)) => log.write(position, |machine, transcript| {
                machine.finish(end, position, transcript);
            }),
            Some(Target::Route(route)) => route.batch.push_finish(end, position),
            None => {}
        }
    }

    fn finish_with_reason(&mut self, slot: usize, position: Position) {
        self.set_end(slot, RouteEnd::Ended);
        match self.target(slot) {
            Some(Target::Log(log)) => log.write(position, |machine, transcript| {
                machine.finish_with_reason(position, transcript);
            }),
            Some(Target::Route(route)) => route.batch.push_finish_with_reason(position),
            None => {}
        }
    }

    fn finish_with_error(&mut self, slot: usize, end: ChoiceEnd, position: Position) {
        self.set_end(slot, RouteEnd::Ended);
        match self.target(slot) {
            Some(Target::Log(log)) => log.write(position, |machine, transcript| {
                machine.finish_with_error(end, position, transcript);
            }),
            Some(Target::Route(route)) => route.batch.push_finish_with_error(end, position),
            None => {}
        }
    }

    fn finish_with_stream_error(&mut self, slot: usize, end: ChoiceEnd, position: Position) {
        self.finish_with_error(slot, end, position);
        // After `finish_with_error`, which notes an end of the choice itself.
        self.set_end(slot, RouteEnd::Failed);
    }

    fn stream_event(&mut self, mut event: Sequenced) {
        match &mut event.event {
            Event::Warning(warning) => self.assign_choice(warning),
            // The usage of one source of several does not become an event of the completion.
            Event::Usage(usage) if self.capacity().is_some() => {
                self.usage = Some(std::mem::take(usage));
                return;
            }
            _ => {}
        }
        let Sequenced {
            position, event, ..
        } = event;
        self.events.push(StreamEvent::new(position, event));
    }

    fn usage(&mut self, usage: UnreadUsage, _seq: u64, position: Position) -> Option<UnreadUsage> {
        if self.capacity().is_some() {
            self.usage = Some(Box::new(usage.read()));
        } else {
            self.events.push(StreamEvent::usage(position, usage));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_log_that_got_no_end_is_sealed_before_the_stream_closes() {
        let mut outbox = Outbox::new(Config::default(), Numbering::default(), Instant::now());
        outbox.open(0, ChoiceIndex(0), CompletionKind::Chat);
        let update = Update::default().with_content("a");
        outbox.delta(0, Delta::Update(&update), Position::default());
        outbox.apply();
        let log = outbox.routes[0].log.clone();
        assert!(log.read(|state| state.transcript.end().is_none()));
        outbox.join(&mut Owners::default()).await;
        assert!(log.read(|state| matches!(state.transcript.end(), Some(ChoiceEnd::Lost))));
    }

    #[tokio::test]
    async fn a_choice_to_which_events_are_applied_twice_still_has_to_be_started() {
        let mut outbox = Outbox::new(Config::default(), Numbering::default(), Instant::now());
        let update = Update::default().with_content("a");
        outbox.open(0, ChoiceIndex(0), CompletionKind::Chat);
        for _ in 0..2 {
            outbox.delta(0, Delta::Update(&update), Position::default());
            outbox.apply();
            assert!(!outbox.deliver(), "the choice is not announced yet");
            assert_eq!(*outbox.undelivered, [0], "and is announced once");
        }
    }
}
