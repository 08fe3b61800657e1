//! Which choice an update belongs to, and when a choice ends for reasons that lie outside of it.
//!
//! The router is all that [`Demux`](crate::Demux) and the actors share of a stream's state: both give it every update
//! in order, and it tells a [`Sink`] what reaches which choice. So both agree on every stream.

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
    BodyFormat, ChoiceIndex, End, LimitExceeded, Metadata, Options, ServerError, Shape,
    StreamError, Update, Usage, Warning,
    event::{Event, Place, Stamped},
    piece::Piece,
    text::Text,
    usage::{Known, Reported, Source},
    warning::Warnings,
};

/// What the router decides, to be carried out. `slot` counts choices in order of appearance.
pub trait Sink {
    /// A choice appeared; its first update follows at once.
    fn open(&mut self, slot: usize, index: ChoiceIndex, shape: Shape);
    /// The choice's machine takes an update.
    fn update(&mut self, slot: usize, update: &Update<'_>, place: Place);
    /// The choice's machine takes a piece of text, and nothing else.
    fn piece(&mut self, slot: usize, piece: &Piece<'_>, place: Place) {
        self.update(slot, &piece.to_update(), place);
    }
    /// The choice has ended, and this came behind its end.
    fn late(&mut self, slot: usize, update: &Update<'_>, place: Place);
    /// The choice ends, unless it has already.
    fn end(&mut self, slot: usize, end: End, place: Place);
    /// The choice ends by an error of its own.
    fn fail(&mut self, slot: usize, end: End, place: Place);
    /// The choice ends by the stream's error although its finish reason came: both came in one event (X4).
    fn fail_with_stream(&mut self, slot: usize, end: End, place: Place) {
        self.fail(slot, end, place);
    }
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
    /// The last of them.
    Several(ChoiceIndex),
}

impl Finish {
    /// A choice finishes once, so `index` is another than those before.
    fn and(self, index: ChoiceIndex) -> Self {
        match self {
            Self::None => Self::One(index),
            Self::One(_) | Self::Several(_) => Self::Several(index),
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
///     ChoiceIndex, End, Options, Place, Shape, Stamped, Text, Update,
///     route::{Router, Sink},
/// };
///
/// /// Notes which choices open and end.
/// #[derive(Default)]
/// struct Notes(Vec<String>);
///
/// impl Sink for Notes {
///     fn open(&mut self, _slot: usize, index: ChoiceIndex, _shape: Shape) {
///         self.0.push(format!("{index} opens"));
///     }
///     fn update(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {}
///     fn late(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {}
///     fn end(&mut self, slot: usize, end: End, _place: Place) {
///         self.0.push(format!("slot {slot} ends: {}", end.name()));
///     }
///     fn fail(&mut self, _slot: usize, _end: End, _place: Place) {}
///     fn stream(&mut self, _event: Stamped<Text>) {}
/// }
///
/// let (mut router, mut notes) = (Router::new(Options::default()), Notes::default());
/// let update = Update { choice_index: Some(ChoiceIndex(7)), content_update: Some("Hi".into()), ..Update::default() };
/// router.update(&update, &mut notes);
/// router.update(&Update { at: 1, done: true, ..Update::default() }, &mut notes);
/// assert_eq!(notes.0, ["7 opens", "slot 0 ends: done_without_finish"]);
/// ```
#[derive(Debug)]
pub struct Router {
    options: Options,
    routes: Vec<Route>,
    /// The slots of small indices.
    slots: Vec<Option<usize>>,
    finished: usize,
    spent: u64,
    position: Place,
    next_at: u64,
    events: u64,
    recognised: bool,
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
    pub fn new(options: Options) -> Self {
        Self {
            options,
            routes: Vec::new(),
            slots: Vec::new(),
            finished: 0,
            spent: 0,
            position: Place::default(),
            next_at: 0,
            events: 0,
            recognised: false,
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
    pub fn update(&mut self, update: &Update<'_>, sink: &mut impl Sink) {
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

    fn take(&mut self, update: &Update<'_>, sink: &mut impl Sink) {
        if self.after_done {
            return; // a piece of text, which holds no usage
        }
        // Before the first event nothing has finished, so that nothing ends.
        if update.at != self.position.at {
            self.end_of_last_event(sink);
        }
        let place = self.place(update.at);
        self.recognised |= update.recognised;
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

    fn place(&mut self, at: u64) -> Place {
        let first = self.events == 0 || at != self.position.at;
        self.position = if first {
            Place { at, position: 0 }
        } else {
            Place {
                at,
                position: self.position.position + 1,
            }
        };
        if first {
            self.events += 1;
            self.choices_in_event = 0;
            self.finish_before = std::mem::take(&mut self.finish_now);
        }
        self.next_at = at + 1;
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
            self.folded.note(index, update);
            ChoiceIndex(0)
        } else {
            index
        };
        let Some(slot) = self
            .slot(index)
            .or_else(|| self.open(index, update.shape, place, sink))
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
            route.delta_at = place.at;
            route.deltas += 1;
            route.wordless += u64::from(!update.has_text());
        } else {
            route.bare += 1;
        }
        self.settle(slot, update, place, sink);
    }

    fn settle(&mut self, slot: usize, update: &Update<'_>, place: Place, sink: &mut impl Sink) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        let reason = update.finish_reason.as_deref().unwrap_or_default();
        if !reason.is_empty() && route.state == State::Open {
            route.state = State::Finished(place.at);
            route.reason = true;
            self.finished += 1;
            self.finish_now = self.finish_now.and(route.index);
        }
        if let Some(raw) = &update.error {
            let error = Arc::new(ServerError::new(raw, place.at));
            self.set_state(slot, State::Ended);
            sink.fail(slot, End::ServerError(error), place);
        }
    }

    fn set_state(&mut self, slot: usize, state: State) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        self.finished -= usize::from(matches!(route.state, State::Finished(_)));
        route.state = state;
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
            let error = StreamError::Server(Arc::new(ServerError::new(raw, place.at)));
            return self.close_in(Some(place.at), Err(error), sink);
        }
        if update.done {
            self.done(sink);
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
