//! Decides which choice an update belongs to, and ends choices for reasons that lie outside of them.
//!
//! The router is the only state that [`Demux`](crate::Demux) and the actors share about a stream as a whole. Both give it
//! every update in order, and it calls a [`ChoiceSink`] for each choice, so both agree on every stream.

mod after_done;
mod ends;
mod finishes;
mod folded;
mod late;
mod limits;
mod queries;
mod sink;
mod state;
mod summary;
mod text_deltas;

use std::sync::Arc;

use finishes::Finishes;
use folded::FoldedIndices;
pub use sink::ChoiceSink;
use state::{Route, State};
use summary::RefusedChoices;

use crate::{
    BodyFormat, ChoiceEnd, ChoiceIndex, Config, EventIndex, LimitExceeded, Metadata, ServerError,
    StreamError, Update, Warning,
    event::{Event, Position, Sequenced},
    prefetch::prefetch,
    text::Text,
    text_delta::Delta,
    usage::Reported,
    warning::Warnings,
};

/// Routes the updates of one stream.
///
/// # Examples
///
/// ```
/// use unbraid_core::{
///     ChoiceIndex, ChoiceEnd, Config, Position, CompletionKind, Sequenced, Text, Update,
///     internal::{ChoiceSink, Delta, Router},
/// };
///
/// /// Records which choices open and end.
/// #[derive(Default)]
/// struct Records(Vec<String>);
///
/// impl ChoiceSink for Records {
///     fn open(&mut self, _slot: usize, index: ChoiceIndex, _kind: CompletionKind) {
///         self.0.push(format!("{index} opens"));
///     }
///     fn delta(&mut self, _slot: usize, _delta: Delta<'_>, _position: Position) {}
///     fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _position: Position) {}
///     fn finish(&mut self, slot: usize, end: ChoiceEnd, _position: Position) {
///         self.0.push(format!("slot {slot} ends: {}", end.as_str()));
///     }
///     fn finish_with_reason(&mut self, slot: usize, _position: Position) {
///         self.0.push(format!("slot {slot} has finished"));
///     }
///     fn finish_with_error(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
///     fn stream_event(&mut self, _event: Sequenced<Text>) {}
/// }
///
/// let (mut router, mut records) = (Router::new(Config::default()), Records::default());
/// let update = Update::default().with_choice(ChoiceIndex(7)).with_content("Hi");
/// router.update(&update, &mut records);
/// router.update(&Update::default().with_event_index(1).with_done(true), &mut records);
/// assert_eq!(records.0, ["7 opens", "slot 0 ends: done_without_finish"]);
/// ```
#[derive(Debug)]
// What a text delta needs comes first, in this order, so that it lies in few cache lines: with many streams at once, each
// event finds the lines of its own stream cold.
#[repr(C)]
pub struct Router {
    closed: Option<Result<(), StreamError>>,
    routes: Vec<Route>,
    /// The slots of small indices that are not their slots, for a lookup without a search.
    slots: Vec<Option<usize>>,
    /// Routes in the state `Finished`.
    finished: usize,
    /// Routes whose choice has not ended.
    open: usize,
    /// Bytes that the updates of all choices cost so far.
    cost: u64,
    /// The limits on the bytes of a choice and of all choices.
    choice_bytes: u64,
    completion_bytes: u64,
    position: Position,
    next_event: EventIndex,
    events: u64,
    /// Updates so far, not counting text deltas.
    updates: u64,
    finishes: Finishes,
    is_chunk: bool,
    /// Whether the configuration can have a use for the update of a text delta. It is computed once, because nearly every
    /// event of a stream is a text delta.
    inspects_text_deltas: bool,
    /// Whether the last update's envelope had another id than the first one.
    id_changed: bool,
    /// Whether `[DONE]` arrived and only usage is still read (U13).
    after_done: bool,
    config: Arc<Config>,
    /// What the events without choices appear to be.
    format: Option<BodyFormat>,
    /// The number of the next event of the stream itself.
    seq: u64,
    metadata: Metadata,
    warnings: Warnings,
    /// Reported usage. Boxed, because it is large and most streams report some only at their end.
    usage: Option<Box<Reported>>,
    /// The limit on choices, if it refused one.
    refused: Option<LimitExceeded>,
    refused_choices: RefusedChoices,
    folded: FoldedIndices,
    /// The error of a stream of which only a cut event could have contained an answer.
    cut: Option<StreamError>,
}

impl Router {
    /// A router at the start of a stream.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        let config = config.into();
        Self {
            closed: None,
            routes: Vec::new(),
            slots: Vec::new(),
            finished: 0,
            open: 0,
            cost: 0,
            // The upper bound is that of the offsets in a transcript, which are 32 bits wide.
            choice_bytes: config.limits.choice_bytes.min(u64::from(u32::MAX)),
            completion_bytes: config.limits.completion_bytes,
            position: Position::default(),
            next_event: EventIndex::default(),
            events: 0,
            updates: 0,
            finishes: Finishes::default(),
            is_chunk: false,
            inspects_text_deltas: text_deltas::inspects(&config),
            id_changed: false,
            after_done: false,
            config,
            format: None,
            seq: 0,
            metadata: Metadata::default(),
            warnings: Warnings::default(),
            usage: None,
            refused: None,
            refused_choices: RefusedChoices::default(),
            folded: FoldedIndices::default(),
            cut: None,
        }
    }

    /// Loads what the next event most likely needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        let routes = [self.routes.first(), self.routes.last()];
        let costs = routes.into_iter().flatten().map(|route| route.cost);
        prefetch(costs.sum::<u64>() + self.cost + self.updates);
    }

    /// Routes the next update of the stream.
    pub fn update(&mut self, update: &Update<'_>, sink: &mut impl ChoiceSink) {
        if self.closed.is_some() {
            return; // S26: what follows the end is ignored.
        }
        if self.after_done {
            return self.usage_after_done(update);
        }
        // The actors compare the metadata with those published whenever this number has moved. One too many costs a
        // comparison, and one too few would hide a change.
        self.updates += 1;
        // Before anything of it is kept: the fields beside an error repeat its message.
        let redacted = self.config.redact.update(update);
        let update = redacted.as_ref().unwrap_or(update);
        self.id_changed = self.metadata.absorb(update);
        self.apply(update, sink);
    }

    /// Routes an update whose envelope has been read.
    fn apply(&mut self, update: &Update<'_>, sink: &mut impl ChoiceSink) {
        if self.after_done {
            return; // a text delta, which contains no usage
        }
        // Before the first event nothing has finished, so nothing ends here.
        if update.event_index != self.position.event {
            self.end_of_last_event(sink);
        }
        let position = self.next_position(update.event_index);
        if update.begins_chunk {
            self.finishes.next_chunk();
        }
        self.is_chunk |= update.is_chunk;
        if let Some(format) = update.format {
            self.recognise(format);
        }
        let folded = self.config.expect_choices == Some(1);
        for warning in &update.warnings {
            let mut warning = warning.clone();
            if folded && warning.choice.is_some() {
                warning.choice = Some(ChoiceIndex(0));
            }
            self.warn(warning, position, sink);
        }
        if self.id_changed {
            self.warn(
                Warning::new("E16", update.event_index, "the completion id changed"),
                position,
                sink,
            );
        }
        // The warnings come first, so that a consumer that reads in order knows of a deviation before it sees what it led to.
        match update.choice {
            Some(index) => self.choice_update(index, update, position, sink),
            None => self.stream_update(update, position, sink),
        }
        if update.last_of_event && self.closed.is_none() {
            self.end_of_event(update.event_index, sink);
        }
    }

    /// The position of the next update, which belongs to this event.
    fn next_position(&mut self, event: EventIndex) -> Position {
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
            self.finishes.next_chunk();
        }
        self.next_event = event.next();
        self.position
    }

    /// Routes an update to its choice, which may have to be opened first.
    fn choice_update(
        &mut self,
        index: ChoiceIndex,
        update: &Update<'_>,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        // A refused choice counts, too: usage in the same chunk belongs to a chunk with choices all the same.
        self.finishes
            .choice(update.has_delta() || update.delta_field_count > 0);
        let index = if self.config.expect_choices == Some(1) {
            self.folded.record(index, update);
            ChoiceIndex(0)
        } else {
            index
        };
        let Some(slot) = self
            .slot(index)
            .or_else(|| self.open(index, update.kind, position, sink))
        else {
            return self.refused_choices.record(index, update);
        };
        // Recorded before the charge: a choice that its limit cuts off, or that the caller has cancelled, was still paid for.
        if let Some(raw) = &update.usage {
            self.usage_mut().choice(index, raw);
        }
        if !self.charge(slot, update, position, sink) {
            return self.note_finish(slot, update);
        }
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        match route.state {
            State::Discarding => return,
            State::Ended => {
                self.late_update(slot, update, position, sink);
                return self.note_finish(slot, update);
            }
            State::Open | State::Finished(_) => {
                if route.first_reason.is_some() {
                    route.second.note(update);
                }
                sink.delta(slot, Delta::Update(update), position);
            }
        }
        // Counted only for a choice that was open. What follows an end would otherwise decide E12, and how much text was
        // received.
        if update.has_delta() {
            route.last_delta = position.event;
            route.count_delta(update);
        } else {
            route.bare_updates += 1;
        }
        self.after_update(slot, update, position, sink);
    }

    /// Updates the state of a choice after its update: a finish reason or an error may have arrived.
    fn after_update(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        let reason = update.finish_reason.as_deref().unwrap_or_default();
        // The first reason counts. A later one changes neither the event in which the choice finished nor the number of those
        // that have finished.
        if !reason.is_empty() && route.state == State::Open {
            route.state = State::Finished(position.event);
            route.has_finish_reason = true;
            route.first_reason = Some(reason.into());
            self.finished += 1;
            self.finishes.finish(route.index);
        }
        // After the reason, which an error inside the choice overrides.
        if let Some(raw) = &update.error {
            let error = Arc::new(ServerError::new(raw, position.event));
            self.set_state(slot, State::Ended);
            sink.finish_with_error(slot, ChoiceEnd::ServerError(error), position);
        }
    }

    fn set_state(&mut self, slot: usize, state: State) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        // `finished` and `open` are the numbers of routes in these states, so that nobody need search for one. All
        // transitions out of them pass through here.
        self.finished -= usize::from(matches!(route.state, State::Finished(_)));
        self.open -= usize::from(route.state.is_open() && !state.is_open());
        route.state = state;
    }

    /// Applies an update of the stream itself: usage, an error, or the end mark.
    fn stream_update(
        &mut self,
        update: &Update<'_>,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        self.cost = self.cost.saturating_add(update.cost());
        // An update without a choice is charged as well, or a server could send unknown fields of the envelope without end.
        if !self.within_completion(sink) {
            return;
        }
        if let Some(raw) = &update.usage {
            self.envelope_usage(raw, None);
        }
        if let Some(raw) = &update.error {
            let error = StreamError::Server(Arc::new(ServerError::new(raw, position.event)));
            return self.close_in(Some(position.event), Err(error), sink);
        }
        if update.done {
            self.done(sink);
        }
    }

    /// Records usage of the envelope, which belongs to the choices that its place among their finishes says.
    fn envelope_usage(&mut self, raw: &str, form: Option<u64>) {
        let routes = &self.routes;
        let source = self
            .finishes
            .source(|| routes.iter().all(|route| route.has_finish_reason));
        if self.usage_mut().envelope(raw, source, form) {
            self.finishes.bring();
        }
    }

    fn warn(&mut self, warning: Warning, position: Position, sink: &mut impl ChoiceSink) {
        if self.warnings.keep(&warning, self.config.limits.warnings) {
            self.emit(Event::Warning(warning), position, sink);
        }
    }

    /// Emits an event of the stream itself.
    fn emit(&mut self, event: Event<Text>, position: Position, sink: &mut impl ChoiceSink) {
        sink.stream_event(Sequenced {
            choice: None,
            seq: self.seq,
            position,
            event,
        });
        self.seq += 1;
    }
}

#[cfg(test)]
mod tests;
