//! Which choice an update belongs to, and when a choice ends for reasons that lie outside of it.
//!
//! The router is all that [`Demux`](crate::Demux) and the actors share of a stream's state: both give it every update
//! in order, and it tells a [`Sink`] what reaches which choice. So both agree on every stream.

use std::sync::Arc;

use crate::{
    ChoiceIndex, End, FinishPolicy, Limit, LimitExceeded, Metadata, Options, ServerError, Shape,
    StreamError, Update, Usage, Warning,
    event::{Event, Place, Stamped},
    text::Text,
    usage::{Reported, Source},
    warning::Warnings,
};

/// What the router decides, to be carried out. `slot` counts choices in order of appearance.
pub trait Sink {
    /// A choice appeared; its first update follows at once.
    fn open(&mut self, slot: usize, index: ChoiceIndex, shape: Shape);
    /// The choice's machine takes an update.
    fn update(&mut self, slot: usize, update: &Update<'_>, place: Place);
    /// The choice has ended, and this came behind its end.
    fn late(&mut self, slot: usize, update: &Update<'_>, place: Place);
    /// The choice ends, unless it has already.
    fn end(&mut self, slot: usize, end: End, place: Place);
    /// The choice ends by an error of its own.
    fn fail(&mut self, slot: usize, end: End, place: Place);
    /// The stream itself has news.
    fn stream(&mut self, event: Stamped<Text>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Its finish reason came with the event of this ordinal.
    Finished(u64),
    Ended,
    /// Ended by a limit or by the caller: nothing more is kept of it.
    Shut,
}

/// Whose finish reason an event brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Finish {
    #[default]
    None,
    One(ChoiceIndex),
    Several,
}

impl Finish {
    fn and(self, index: ChoiceIndex) -> Self {
        match self {
            Self::None => Self::One(index),
            Self::One(known) if known == index => self,
            Self::One(_) | Self::Several => Self::Several,
        }
    }
}

#[derive(Debug)]
struct Route {
    index: ChoiceIndex,
    state: State,
    /// The last event that brought a delta.
    delta_at: u64,
    deltas: u64,
    updates: u64,
    spent: u64,
}

/// Routes the updates of one stream.
#[derive(Debug)]
pub struct Router {
    options: Options,
    routes: Vec<Route>,
    finished: usize,
    spent: u64,
    position: Place,
    next_at: u64,
    events: u64,
    recognised: bool,
    choices_in_event: u32,
    /// Whose reason came in the last event, and in this one.
    finish_before: Finish,
    finish_now: Finish,
    seq: u64,
    metadata: Metadata,
    warnings: Warnings,
    usage: Reported,
    refused: Option<LimitExceeded>,
    closed: Option<Result<(), StreamError>>,
}

impl Router {
    /// A router for one stream.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            routes: Vec::new(),
            finished: 0,
            spent: 0,
            position: Place::default(),
            next_at: 0,
            events: 0,
            recognised: false,
            choices_in_event: 0,
            finish_before: Finish::None,
            finish_now: Finish::None,
            seq: 0,
            metadata: Metadata::default(),
            warnings: Warnings::default(),
            usage: Reported::default(),
            refused: None,
            closed: None,
        }
    }

    /// What the stream came to, once it is over.
    #[must_use]
    pub fn closed(&self) -> Option<&Result<(), StreamError>> {
        self.closed.as_ref()
    }

    /// The envelope so far.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Warnings about the stream, and about choices where the stream saw them.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.kept()
    }

    /// Reported usage so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage.usage()
    }

    /// Whether a choice has its finish reason but has not ended: then [`quiet`](Self::quiet) has something to do.
    #[must_use]
    pub fn has_finished_choices(&self) -> bool {
        self.finished > 0
    }

    /// Whether every choice has ended and as many have come as were asked for.
    #[must_use]
    pub fn all_ended(&self) -> bool {
        let expected = self.options.expect_choices.map_or(1, |n| n as usize).max(1);
        self.routes.len() >= expected
            && self
                .routes
                .iter()
                .all(|r| matches!(r.state, State::Ended | State::Shut))
    }

    /// The slot of a choice that has appeared.
    #[must_use]
    pub fn slot(&self, index: ChoiceIndex) -> Option<usize> {
        self.routes.iter().position(|r| r.index == index)
    }

    /// Takes the next update of the stream.
    pub fn update(&mut self, update: &Update<'_>, sink: &mut impl Sink) {
        if self.closed.is_some() {
            return; // S26: nothing counts behind the end.
        }
        let place = self.place(update);
        self.recognised |= update.recognised;
        let folded = self.options.expect_choices == Some(1);
        for warning in &update.warnings {
            let mut warning = warning.clone();
            if folded && warning.choice.is_some() {
                warning.choice = Some(ChoiceIndex(0));
            }
            self.warn(warning, place, sink);
        }
        if self.metadata.absorb(update) {
            self.warn(
                Warning::new("E16", update.at, "the completion id changed"),
                place,
                sink,
            );
        }
        match update.choice_index {
            Some(index) => self.choice(index, update, place, sink),
            None => self.news(update, place, sink),
        }
        if update.last && self.closed.is_none() {
            self.end_of_event(update.at, sink);
        }
    }

    fn place(&mut self, update: &Update<'_>) -> Place {
        let first = self.events == 0 || update.at != self.position.at;
        self.position = if first {
            Place {
                at: update.at,
                position: 0,
            }
        } else {
            Place {
                at: update.at,
                position: self.position.position + 1,
            }
        };
        if first {
            self.events += 1;
            self.choices_in_event = 0;
            self.finish_before = std::mem::take(&mut self.finish_now);
        }
        self.next_at = update.at + 1;
        self.position
    }

    fn choice(
        &mut self,
        index: ChoiceIndex,
        update: &Update<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) {
        self.choices_in_event += 1;
        let index = if self.options.expect_choices == Some(1) {
            ChoiceIndex(0)
        } else {
            index
        };
        let Some(slot) = self
            .slot(index)
            .or_else(|| self.open(index, update.shape, place, sink))
        else {
            return;
        };
        if let Some(raw) = &update.usage {
            self.usage.choice(index, raw);
        }
        if !self.spend(slot, update, place, sink) {
            return;
        }
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        match route.state {
            State::Shut => return,
            State::Ended => return self.late(slot, update, place, sink),
            State::Open | State::Finished(_) => sink.update(slot, update, place),
        }
        route.updates += 1;
        if update.has_delta() {
            route.delta_at = place.at;
            route.deltas += 1;
        }
        self.settle(slot, update, place, sink);
    }

    fn settle(&mut self, slot: usize, update: &Update<'_>, place: Place, sink: &mut impl Sink) {
        let policy = self.options.finish_policy;
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        if update.finish_reason.is_some() && route.state == State::Open {
            route.state = State::Finished(place.at);
            self.finished += 1;
            self.finish_now = self.finish_now.and(route.index);
        }
        if let Some(raw) = &update.error {
            let error = Arc::new(ServerError::new(raw, place.at));
            self.set_state(slot, State::Ended);
            sink.fail(slot, End::ServerError(error), place);
        } else if policy == FinishPolicy::AtFinish && matches!(route.state, State::Finished(_)) {
            self.set_state(slot, State::Ended);
            sink.end(slot, End::DoneWithoutFinish, place);
        }
    }

    fn set_state(&mut self, slot: usize, state: State) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        self.finished -= usize::from(matches!(route.state, State::Finished(_)));
        route.state = state;
    }

    fn open(
        &mut self,
        index: ChoiceIndex,
        shape: Shape,
        place: Place,
        sink: &mut impl Sink,
    ) -> Option<usize> {
        let max = self.options.limits.choices;
        if self.routes.len() >= max {
            self.refused = Some(LimitExceeded {
                limit: Limit::Choices,
                max: max as u64,
            });
            self.warn(
                Warning::new("E11", place.at, "a choice beyond the limit was refused"),
                place,
                sink,
            );
            return None;
        }
        self.suspect(index, place, sink);
        self.routes.push(Route {
            index,
            state: State::Open,
            delta_at: 0,
            deltas: 0,
            updates: 0,
            spent: 0,
        });
        sink.open(self.routes.len() - 1, index, shape);
        Some(self.routes.len() - 1)
    }

    /// E29: more choices than asked for. E12: an index that counts tokens.
    fn suspect(&mut self, index: ChoiceIndex, place: Place, sink: &mut impl Sink) {
        if self
            .options
            .expect_choices
            .is_some_and(|n| self.routes.len() >= n as usize)
        {
            self.warn(
                Warning::new("E29", place.at, "more choices than were asked for").on(index),
                place,
                sink,
            );
        }
        if self.counts_tokens(index) {
            let told = "the index seems to count tokens; expect one choice to fold it";
            self.warn(Warning::new("E12", place.at, told), place, sink);
        }
    }

    /// Whether the choices so far are 0, 1, 2 .., each of one chunk with one delta, and this is the next of them.
    fn counts_tokens(&self, index: ChoiceIndex) -> bool {
        const SUSPICIOUS: usize = 4; // two or three answers of one token each are nothing special yet
        let one_token = |(position, route): (usize, &Route)| {
            route.index.0 as usize == position
                && route.state == State::Open
                && (route.updates, route.deltas) == (1, 1)
        };
        self.options.expect_choices.is_none()
            && self.choices_in_event == 1
            && self.routes.len() >= SUSPICIOUS
            && index.0 as usize == self.routes.len()
            && self.routes.iter().enumerate().all(one_token)
    }

    /// Counts what an update costs; false if it was too much.
    fn spend(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) -> bool {
        let limits = &self.options.limits;
        let (per_choice, whole) = (limits.choice_bytes, limits.completion_bytes);
        let Some(route) = self.routes.get_mut(slot).filter(|r| r.state != State::Shut) else {
            return false;
        };
        let cost = update.cost();
        route.spent = route.spent.saturating_add(cost);
        self.spent = self.spent.saturating_add(cost);
        if route.spent > per_choice {
            let late = route.state == State::Ended;
            self.set_state(slot, State::Shut);
            if !late {
                sink.fail(
                    slot,
                    End::LimitExceeded(LimitExceeded {
                        limit: Limit::ChoiceBytes,
                        max: per_choice,
                    }),
                    place,
                );
            }
            return false;
        }
        if self.spent > whole {
            self.close(
                Err(StreamError::Limit(LimitExceeded {
                    limit: Limit::CompletionBytes,
                    max: whole,
                })),
                sink,
            );
            return false;
        }
        true
    }

    fn late(&mut self, slot: usize, update: &Update<'_>, place: Place, sink: &mut impl Sink) {
        sink.late(slot, update, place);
        if update.has_delta() {
            let index = self.routes.get(slot).map_or(ChoiceIndex(0), |r| r.index);
            self.warn(
                Warning::new("F6", place.at, "text or calls after the choice had ended").on(index),
                place,
                sink,
            );
        }
    }

    fn news(&mut self, update: &Update<'_>, place: Place, sink: &mut impl Sink) {
        if let Some(raw) = &update.usage {
            let source = match self.finish_before {
                _ if self.choices_in_event > 0 => Source::WithChoices,
                Finish::One(choice) => Source::AfterFinish(choice),
                Finish::None | Finish::Several => Source::Bare,
            };
            self.usage.envelope(raw, source);
        }
        if let Some(raw) = &update.error {
            let error = StreamError::Server(Arc::new(ServerError::new(raw, place.at)));
            return self.close(Err(error), sink);
        }
        if update.done {
            self.close(Ok(()), sink);
        }
    }

    /// A choice that has its reason ends at the first event that brings nothing for it.
    fn end_of_event(&mut self, at: u64, sink: &mut impl Sink) {
        if self.finished == 0 || self.options.finish_policy != FinishPolicy::NextEvent {
            return;
        }
        let over = |r: &Route| matches!(r.state, State::Finished(finished) if finished < at && r.delta_at < at);
        self.end_where(over, &End::DoneWithoutFinish, Place::event_end(at), sink);
    }

    /// No byte has come for a while: what is finished has ended (250 ms in the actors).
    pub fn quiet(&mut self, sink: &mut impl Sink) {
        if self.options.finish_policy == FinishPolicy::NextEvent {
            let at = self.next_at.saturating_sub(1);
            self.end_where(
                |r| matches!(r.state, State::Finished(_)),
                &End::DoneWithoutFinish,
                Place::event_end(at),
                sink,
            );
        }
    }

    /// The caller ends one choice; what still comes for it is dropped.
    pub fn cancel(&mut self, slot: usize, sink: &mut impl Sink) {
        let open = self
            .routes
            .get(slot)
            .is_some_and(|r| matches!(r.state, State::Open | State::Finished(_)));
        if open {
            self.set_state(slot, State::Shut);
            sink.end(
                slot,
                End::Cancelled,
                Place::event_end(self.next_at.saturating_sub(1)),
            );
        }
    }

    /// The source ended after so many bytes; `framed` if any of them was a field or comment of an event stream.
    pub fn finish(&mut self, bytes: u64, framed: bool, sink: &mut impl Sink) {
        if self.closed.is_some() {
            return;
        }
        let events = self.events;
        if self.recognised || !self.routes.is_empty() {
            self.end_all(&End::Interrupted, sink);
            self.close(Ok(()), sink);
        } else if bytes == 0 || (framed && events == 0) {
            self.close(Err(StreamError::Empty { events }), sink);
        } else {
            self.close(Err(StreamError::NotAStream { bytes, events }), sink);
        }
    }

    /// Something outside ended the stream.
    pub fn fail(&mut self, error: StreamError, sink: &mut impl Sink) {
        self.close(Err(error), sink);
    }

    /// The stream is over: every choice that is open ends by it, and the stream's own last news are told.
    fn close(&mut self, result: Result<(), StreamError>, sink: &mut impl Sink) {
        if self.closed.is_some() {
            return;
        }
        let end = result
            .as_ref()
            .map_or_else(End::from, |()| End::DoneWithoutFinish);
        self.end_all(&end, sink);
        let empty = self.routes.is_empty() && result.is_ok() && self.usage.usage().raw.is_null();
        let result = match (result, self.refused) {
            (Ok(()), Some(limit)) => Err(StreamError::Limit(limit)),
            (Ok(()), None) if empty => Err(StreamError::Empty {
                events: self.events,
            }),
            (result, _) => result,
        };
        let place = Place::close(self.next_at);
        let usage = self.usage.usage();
        if !usage.raw.is_null() {
            self.tell(Event::Usage(usage), place, sink);
        }
        if let Err(error) = &result {
            self.tell(Event::Error(error.clone()), place, sink);
        }
        self.closed = Some(result);
    }

    fn end_all(&mut self, end: &End, sink: &mut impl Sink) {
        let place = Place {
            position: u32::MAX - 1,
            ..Place::close(self.next_at)
        };
        self.end_where(
            |r| matches!(r.state, State::Open | State::Finished(_)),
            end,
            place,
            sink,
        );
    }

    /// In the order of the indices, which is the order of the events.
    fn end_where(
        &mut self,
        over: impl Fn(&Route) -> bool,
        end: &End,
        place: Place,
        sink: &mut impl Sink,
    ) {
        let mut slots: Vec<(ChoiceIndex, usize)> = self
            .routes
            .iter()
            .enumerate()
            .filter(|(_, r)| over(r))
            .map(|(slot, r)| (r.index, slot))
            .collect();
        slots.sort_unstable();
        for (_, slot) in slots {
            self.set_state(slot, State::Ended);
            sink.end(slot, end.clone(), place);
        }
    }

    fn warn(&mut self, warning: Warning, place: Place, sink: &mut impl Sink) {
        if self.warnings.keep(&warning, self.options.limits.warnings) {
            self.tell(Event::Warning(warning), place, sink);
        }
    }

    fn tell(&mut self, event: Event<Text>, place: Place, sink: &mut impl Sink) {
        sink.stream(Stamped {
            choice: None,
            seq: self.seq,
            place,
            event,
        });
        self.seq += 1;
    }
}

#[cfg(test)]
mod tests;
