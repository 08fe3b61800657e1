//! Which choice an update belongs to, and when a choice ends for reasons that lie outside of it.
//!
//! The router is all that [`Demux`](crate::Demux) and the actors share of a stream's state: both give it every update
//! in order, and it tells a [`ChoiceSink`] what reaches which choice. So both agree on every stream.

mod admit;
mod after_done;
mod ends;
mod folded;
mod pieces;
mod summary;

use std::sync::Arc;

use folded::Folded;
use summary::Beyond;

use crate::{
    BodyFormat, ChoiceEnd, ChoiceIndex, CompletionKind, Config, EventIndex, LimitExceeded,
    Metadata, ServerError, StreamError, Update, Usage, Warning,
    event::{Event, Position, Sequenced},
    text::Text,
    text_delta::TextDelta,
    usage::{Known, Reported, Source},
    warning::Warnings,
};

/// What the router decides, to be carried out. `slot` counts choices in order of appearance.
pub trait ChoiceSink {
    /// A choice appeared; its first update follows at once.
    fn open(&mut self, slot: usize, index: ChoiceIndex, shape: CompletionKind);
    /// The choice's machine takes an update.
    fn update(&mut self, slot: usize, update: &Update<'_>, place: Position);
    /// The choice's machine takes a piece of text, and nothing else.
    fn piece(&mut self, slot: usize, piece: &TextDelta<'_>, place: Position) {
        self.update(slot, &piece.to_update(), place);
    }
    /// The choice has ended, and this came behind its end.
    fn late(&mut self, slot: usize, update: &Update<'_>, place: Position);
    /// The choice ends, unless it has already.
    fn end(&mut self, slot: usize, end: ChoiceEnd, place: Position);
    /// The choice ends by an error of its own.
    fn fail(&mut self, slot: usize, end: ChoiceEnd, place: Position);
    /// The choice ends by the stream's error although its finish reason came: both came in one event (X4).
    fn fail_with_stream(&mut self, slot: usize, end: ChoiceEnd, place: Position) {
        self.fail(slot, end, place);
    }
    /// The stream itself has news.
    fn stream(&mut self, event: Sequenced<Text>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Its finish reason came with the event of this ordinal.
    Finished(EventIndex),
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
    /// The last of them.
    Several(ChoiceIndex),
}

impl Finish {
    fn and(self, index: ChoiceIndex) -> Self {
        match self {
            Self::None => Self::One(index),
            Self::One(known) if known == index => self,
            Self::One(_) | Self::Several(_) => Self::Several(index),
        }
    }
}

#[derive(Debug)]
struct Route {
    index: ChoiceIndex,
    state: State,
    /// The last event that brought a delta.
    last_delta: EventIndex,
    deltas: u64,
    /// Updates without a delta: a role, a reason.
    bare: u64,
    /// Those of them that brought no text: log probabilities, sound, the header of a call.
    wordless: u64,
    /// Whether a finish reason came.
    reason: bool,
    spent: u64,
}

/// Routes the updates of one stream.
///
/// # Examples
///
/// ```
/// use unbraid_core::{
///     ChoiceIndex, ChoiceEnd, Config, Position, CompletionKind, Sequenced, Text, Update,
///     route::{Router, ChoiceSink},
/// };
///
/// /// Notes which choices open and end.
/// #[derive(Default)]
/// struct Notes(Vec<String>);
///
/// impl ChoiceSink for Notes {
///     fn open(&mut self, _slot: usize, index: ChoiceIndex, _kind: CompletionKind) {
///         self.0.push(format!("{index} opens"));
///     }
///     fn update(&mut self, _slot: usize, _update: &Update<'_>, _place: Position) {}
///     fn late(&mut self, _slot: usize, _update: &Update<'_>, _place: Position) {}
///     fn end(&mut self, slot: usize, end: ChoiceEnd, _place: Position) {
///         self.0.push(format!("slot {slot} ends: {}", end.as_str()));
///     }
///     fn fail(&mut self, _slot: usize, _end: ChoiceEnd, _place: Position) {}
///     fn stream(&mut self, _event: Sequenced<Text>) {}
/// }
///
/// let (mut router, mut notes) = (Router::new(Config::default()), Notes::default());
/// let update = Update::default().with_choice(ChoiceIndex(7)).with_content("Hi");
/// router.update(&update, &mut notes);
/// router.update(&Update::default().with_event_index(1).with_done(true), &mut notes);
/// assert_eq!(notes.0, ["7 opens", "slot 0 ends: done_without_finish"]);
/// ```
#[derive(Debug)]
pub struct Router {
    options: Config,
    routes: Vec<Route>,
    /// The slots of small indices.
    slots: Vec<Option<usize>>,
    finished: usize,
    spent: u64,
    position: Position,
    next_event: EventIndex,
    events: u64,
    is_chunk: bool,
    /// What the events without choices appear to be.
    format: Option<BodyFormat>,
    choices_in_event: u32,
    /// Whose reason came in the last event, and in this one.
    finish_before: Finish,
    finish_now: Finish,
    seq: u64,
    metadata: Metadata,
    /// Whether the last update's envelope had another id than the first.
    id_changed: bool,
    /// Updates that came, mere pieces of text left out.
    updates: u64,
    warnings: Warnings,
    usage: Reported,
    refused: Option<LimitExceeded>,
    beyond: Beyond,
    folded: Folded,
    /// `[DONE]` came, and only usage is still read (U13).
    after_done: bool,
    closed: Option<Result<(), StreamError>>,
}

impl Router {
    /// A router for one stream.
    #[must_use]
    pub fn new(options: Config) -> Self {
        Self {
            options,
            routes: Vec::new(),
            slots: Vec::new(),
            finished: 0,
            spent: 0,
            position: Position::default(),
            next_event: EventIndex::default(),
            events: 0,
            is_chunk: false,
            format: None,
            choices_in_event: 0,
            finish_before: Finish::None,
            finish_now: Finish::None,
            seq: 0,
            metadata: Metadata::default(),
            id_changed: false,
            updates: 0,
            warnings: Warnings::default(),
            usage: Reported::default(),
            refused: None,
            beyond: Beyond::default(),
            folded: Folded::default(),
            after_done: false,
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

    /// How many warnings found no room among [`warnings`](Self::warnings).
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        self.warnings.dropped()
    }

    /// A count that stands still while nothing comes but pieces of text: they leave [`metadata`](Self::metadata) as it is.
    #[doc(hidden)]
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Reported usage so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let received = |r: &Route| (r.index, r.deltas.saturating_sub(r.wordless));
        let received: Vec<_> = self.routes.iter().map(received).collect();
        self.usage.usage(&Known {
            received: &received,
            finished: self.routes.iter().all(|route| route.reason),
            choices_per_prompt: self.options.choices_per_prompt,
        })
    }

    /// Whether a choice has its finish reason but has not ended: then [`quiet`](Self::handle_idle) has something to do.
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

    /// Whether the choice of a slot has ended, however it did.
    #[must_use]
    pub fn has_ended(&self, slot: usize) -> bool {
        let over = |r: &Route| matches!(r.state, State::Ended | State::Shut);
        self.routes.get(slot).is_some_and(over)
    }

    /// The slot of a choice that has appeared.
    #[must_use]
    pub fn slot(&self, index: ChoiceIndex) -> Option<usize> {
        match self.slots.get(index.0 as usize) {
            Some(slot) => *slot,
            None => self.routes.iter().position(|r| r.index == index),
        }
    }

    /// Takes the next update of the stream.
    pub fn update(&mut self, update: &Update<'_>, sink: &mut impl ChoiceSink) {
        if self.closed.is_some() {
            return; // S26: nothing counts behind the end.
        }
        if self.after_done {
            return self.usage_after_done(update);
        }
        self.updates += 1;
        self.id_changed = self.metadata.absorb(update);
        self.take(update, sink);
    }

    fn take(&mut self, update: &Update<'_>, sink: &mut impl ChoiceSink) {
        if self.after_done {
            return; // a piece of text, which holds no usage
        }
        if self.events > 0 && update.event_index != self.position.event {
            self.end_of_last_event(sink);
        }
        let place = self.place(update.event_index);
        self.is_chunk |= update.is_chunk;
        if let Some(format) = update.format {
            self.recognise(format);
        }
        let folded = self.options.expect_choices == Some(1);
        for warning in &update.warnings {
            let mut warning = warning.clone();
            if folded && warning.choice.is_some() {
                warning.choice = Some(ChoiceIndex(0));
            }
            self.warn(warning, place, sink);
        }
        if self.id_changed {
            self.warn(
                Warning::new("E16", update.event_index, "the completion id changed"),
                place,
                sink,
            );
        }
        match update.choice {
            Some(index) => self.choice(index, update, place, sink),
            None => self.news(update, place, sink),
        }
        if update.last_of_event && self.closed.is_none() {
            self.end_of_event(update.event_index, sink);
        }
    }

    fn place(&mut self, event: EventIndex) -> Position {
        let first = self.events == 0 || event != self.position.event;
        self.position = if first {
            Position { event, update: 0 }
        } else {
            Position {
                event,
                update: self.position.update + 1,
            }
        };
        if first {
            self.events += 1;
            self.choices_in_event = 0;
            self.finish_before = std::mem::take(&mut self.finish_now);
        }
        self.next_event = event.next();
        self.position
    }

    fn choice(
        &mut self,
        index: ChoiceIndex,
        update: &Update<'_>,
        place: Position,
        sink: &mut impl ChoiceSink,
    ) {
        self.choices_in_event += 1;
        let index = if self.options.expect_choices == Some(1) {
            self.folded.note(index, update);
            ChoiceIndex(0)
        } else {
            index
        };
        let Some(slot) = self
            .slot(index)
            .or_else(|| self.open(index, update.kind, place, sink))
        else {
            return self.beyond.note(index, update);
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
        if update.has_delta() {
            route.last_delta = place.event;
            route.deltas += 1;
            route.wordless += u64::from(!update.has_text());
        } else {
            route.bare += 1;
        }
        self.settle(slot, update, place, sink);
    }

    fn settle(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        place: Position,
        sink: &mut impl ChoiceSink,
    ) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        let reason = update.finish_reason.as_deref().unwrap_or_default();
        if !reason.is_empty() && route.state == State::Open {
            route.state = State::Finished(place.event);
            route.reason = true;
            self.finished += 1;
            self.finish_now = self.finish_now.and(route.index);
        }
        if let Some(raw) = &update.error {
            let error = Arc::new(ServerError::new(raw, place.event));
            self.set_state(slot, State::Ended);
            sink.fail(slot, ChoiceEnd::ServerError(error), place);
        }
    }

    fn set_state(&mut self, slot: usize, state: State) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        self.finished -= usize::from(matches!(route.state, State::Finished(_)));
        route.state = state;
    }

    fn late(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        place: Position,
        sink: &mut impl ChoiceSink,
    ) {
        sink.late(slot, update, place);
        if update.has_delta() {
            let index = self.routes.get(slot).map_or(ChoiceIndex(0), |r| r.index);
            self.warn(
                Warning::new(
                    "F6",
                    place.event,
                    "text or calls after the choice had ended",
                )
                .with_choice(index),
                place,
                sink,
            );
        }
    }

    fn news(&mut self, update: &Update<'_>, place: Position, sink: &mut impl ChoiceSink) {
        self.spent = self.spent.saturating_add(update.cost());
        if !self.within_completion(sink) {
            return;
        }
        if let Some(raw) = &update.usage {
            let last = self.routes.iter().all(|route| route.reason);
            let source = match (self.choices_in_event, self.finish_before, self.finish_now) {
                (1.., _, Finish::One(choice)) => Source::AtFinish {
                    choice,
                    shared: false,
                    last,
                },
                (1.., _, Finish::Several(choice)) => Source::AtFinish {
                    choice,
                    shared: true,
                    last,
                },
                (1.., _, Finish::None) => Source::WithChoices,
                (0, Finish::One(choice), _) => Source::AfterFinish { choice, last },
                (0, Finish::None | Finish::Several(_), _) => Source::Bare,
            };
            self.usage.envelope(raw, source);
        }
        if let Some(raw) = &update.error {
            let error = StreamError::Server(Arc::new(ServerError::new(raw, place.event)));
            return self.close_in(Some(place.event), Err(error), sink);
        }
        if update.done {
            self.done(sink);
        }
    }

    fn warn(&mut self, warning: Warning, place: Position, sink: &mut impl ChoiceSink) {
        if self.warnings.keep(&warning, self.options.limits.warnings) {
            self.tell(Event::Warning(warning), place, sink);
        }
    }

    fn tell(&mut self, event: Event<Text>, place: Position, sink: &mut impl ChoiceSink) {
        sink.stream(Sequenced {
            choice: None,
            seq: self.seq,
            position: place,
            event,
        });
        self.seq += 1;
    }
}

#[cfg(test)]
mod tests;
