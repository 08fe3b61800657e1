//! When choices end for reasons that lie outside of them, and when the stream closes.

use super::{ChoiceSink, Route, Router, State};
use crate::{
    BodyFormat, ChoiceEnd, EventIndex, FinishPolicy, StreamError, Warning,
    event::{Event, Position},
    usage::{LastUsage, UnreadUsage},
};

impl Router {
    /// Ends the choices whose finish reason has arrived, as the policy says: at the first event without a delta for them, or
    /// at the end of the event with the reason.
    pub(super) fn end_of_event(&mut self, event: EventIndex, sink: &mut impl ChoiceSink) {
        // Nearly every event ends here: choices finish once, and deltas arrive by the thousand.
        if self.finished == 0 {
            return;
        }
        let policy = self.config.finish_policy;
        let ends = move |r: &Route| match (r.state, policy) {
            (State::Finished(finished), FinishPolicy::NextEvent) => {
                // Both comparisons are needed: the event of the reason never ends the choice, and neither does a later one
                // that still brings a delta for it.
                finished < event && r.last_delta < event
            }
            (State::Finished(_), FinishPolicy::AtFinish) => true,
            (State::Finished(_), FinishPolicy::AtStreamEnd) => false,
            (State::Open | State::Ended | State::Discarding, _) => false,
        };
        self.finish_where(ends, Position::event_end(event), sink);
    }

    /// Ends an event whose last update was not marked when the next event begins. Only `AtFinish` needs that: other policies look at
    /// the next event that is marked.
    pub(super) fn end_of_last_event(&mut self, sink: &mut impl ChoiceSink) {
        if self.config.finish_policy == FinishPolicy::AtFinish {
            self.end_of_event(self.position.event, sink);
        }
    }

    /// No byte arrived for a while (250 ms in the actors): choices with a finish reason end.
    pub fn handle_idle(&mut self, sink: &mut impl ChoiceSink) {
        if self.after_done {
            return self.close(Ok(()), sink);
        }
        if self.config.finish_policy != FinishPolicy::AtStreamEnd {
            let last = self.next_event.previous();
            let is_finished = |r: &Route| matches!(r.state, State::Finished(_));
            self.finish_where(is_finished, Position::event_end(last), sink);
        }
    }

    /// Ends one choice for the caller: as `cancelled`, and its further updates are dropped, or as `finished` if it has its reason.
    /// False if it had already ended.
    pub fn cancel(&mut self, slot: usize, sink: &mut impl ChoiceSink) -> bool {
        let position = Position::event_end(self.next_event.previous());
        match self.routes.get(slot).map(|route| route.state) {
            Some(State::Open) => {
                self.set_state(slot, State::Discarding);
                sink.finish(slot, ChoiceEnd::Cancelled, position);
                true
            }
            Some(State::Finished(_)) => {
                self.set_state(slot, State::Ended);
                sink.finish_with_reason(slot, position);
                true
            }
            Some(State::Ended | State::Discarding) | None => false,
        }
    }

    /// Whether the updates of a choice are dropped, because it was cancelled or cut by a limit.
    #[must_use]
    pub fn drops(&self, slot: usize) -> bool {
        let route = self.routes.get(slot);
        route.is_some_and(|route| route.state == State::Discarding)
    }

    /// Ends one choice as another process has reported it. Its further updates are dropped. False if it had already ended.
    pub fn end_choice(&mut self, slot: usize, end: ChoiceEnd, sink: &mut impl ChoiceSink) -> bool {
        let state = self.routes.get(slot).map(|route| route.state);
        let Some(state) = state.filter(|state| state.is_open()) else {
            return false;
        };
        // Like a choice that was cancelled here, one that was cancelled there counts for closing the source.
        let is_cancelled = end == ChoiceEnd::Cancelled;
        let ended = if is_cancelled {
            State::Discarding
        } else {
            State::Ended
        };
        self.set_state(slot, ended);
        let position = Position::event_end(self.next_event.previous());
        match state {
            // A reason that has arrived stays.
            State::Finished(_) => sink.finish_with_reason(slot, position),
            State::Open | State::Ended | State::Discarding => sink.finish(slot, end, position),
        }
        true
    }

    /// Whether every choice was cancelled or cut by a limit, so that nothing more is kept.
    #[must_use]
    pub fn all_cancelled(&self) -> bool {
        self.routes.iter().all(|r| r.state == State::Discarding)
    }

    /// Records what a part of the stream appears to be. A completion takes precedence over every other format, then the
    /// first known format counts.
    pub(crate) fn recognise(&mut self, format: BodyFormat) {
        let counts = match self.format {
            None | Some(BodyFormat::Json) => true,
            Some(_) => format == BodyFormat::Completion,
        };
        if counts {
            self.format = Some(format);
        }
    }

    /// Notes that the end of the body has cut an event, which began at this byte.
    pub(crate) fn note_cut(&mut self, event_index: EventIndex, offset: u64) {
        self.cut = Some(StreamError::Interrupted {
            event_index,
            offset,
        });
    }

    /// The error of a stream that contained an answer in another format and no choice.
    fn unsupported(&self) -> Option<StreamError> {
        let format = self.format?;
        let events = self.events;
        let foreign = format != BodyFormat::Completion && self.routes.is_empty();
        foreign.then_some(StreamError::UnsupportedFormat { format, events })
    }

    /// The source ended after this many bytes. `framed` says whether any field or comment of an event stream was among them.
    pub fn finish(&mut self, bytes: u64, framed: bool, sink: &mut impl ChoiceSink) {
        if self.closed.is_some() {
            return;
        }
        let events = self.events;
        let is_known = self.format.is_some_and(|format| format != BodyFormat::Json);
        let unsupported = self.unsupported().filter(|_| is_known);
        // Of one event that was cut nothing shows what the stream is.
        let has_only_cut = events <= 1 && self.routes.is_empty() && self.usage.is_none();
        if let Some(error) = self.cut.take_if(|_| has_only_cut).or(unsupported) {
            self.close(Err(error), sink);
        } else if self.is_chunk || !self.routes.is_empty() {
            self.close_with(&ChoiceEnd::Interrupted, None, Ok(()), sink);
        } else if bytes == 0 || (framed && events == 0) {
            self.close(Err(StreamError::Empty { events }), sink);
        } else {
            self.close(Err(StreamError::NotAStream { bytes, events }), sink);
        }
    }

    /// The error of a stream without an answer.
    fn empty(&mut self) -> StreamError {
        let events = self.events;
        self.cut.take().unwrap_or(StreamError::Empty { events })
    }

    /// Closes the stream with an error from outside.
    pub fn abort(&mut self, error: StreamError, sink: &mut impl ChoiceSink) {
        self.close(Err(error), sink);
    }

    /// Closes the stream: every open choice ends, then the stream's own last events are emitted.
    pub(super) fn close(&mut self, result: Result<(), StreamError>, sink: &mut impl ChoiceSink) {
        self.close_in(None, result, sink);
    }

    /// Closes the stream with an error of this event. A choice whose finish reason arrived in the same event ends with the
    /// error (X4).
    pub(super) fn close_in(
        &mut self,
        event: Option<EventIndex>,
        result: Result<(), StreamError>,
        sink: &mut impl ChoiceSink,
    ) {
        let end = result
            .as_ref()
            .map_or_else(ChoiceEnd::from, |()| ChoiceEnd::DoneWithoutFinish);
        self.close_with(&end, event, result, sink);
    }

    fn close_with(
        &mut self,
        end: &ChoiceEnd,
        event: Option<EventIndex>,
        result: Result<(), StreamError>,
        sink: &mut impl ChoiceSink,
    ) {
        if self.closed.is_some() {
            return;
        }
        self.finish_all(end, event, sink);
        // The stream was complete at `[DONE]`. Without the option nobody would see an error after it.
        let result = if self.after_done { Ok(()) } else { result };
        let usage = self.last_usage();
        let empty = self.routes.is_empty() && result.is_ok() && usage.is_absent();
        // JSON of another API is never a success. If its format is not known either, the stream counts as empty.
        let unknown = empty && self.format == Some(BodyFormat::Json);
        let unsupported = self.unsupported().filter(|_| !unknown);
        let result = match (result, self.refused, unsupported) {
            (Ok(()), Some(limit), _) => Err(StreamError::Limit(limit)),
            (Ok(()), None, Some(error)) => Err(error),
            (Ok(()), None, None) if empty => Err(self.empty()),
            (result, ..) => result,
        };
        let position = Position::close(self.next_event);
        self.warn_at_close(&result, position, sink);
        if usage.is_below_received() {
            let message = "fewer completion tokens were reported than deltas with text arrived";
            let last = self.next_event.previous();
            self.warn(Warning::new("U15", last, message), position, sink);
        }
        if self
            .usage
            .as_ref()
            .is_some_and(|usage| usage.has_odd_counts())
        {
            let message = "a count in the usage is not a whole number, and was kept as it is";
            let last = self.next_event.previous();
            self.warn(Warning::new("U9", last, message), position, sink);
        }
        match usage {
            LastUsage::Absent => {}
            LastUsage::Read(usage) => self.emit(Event::Usage(usage), position, sink),
            LastUsage::Unread(usage) => {
                let rest = sink.usage(usage, self.seq, position);
                self.usage = rest.map(UnreadUsage::into_reported);
                self.seq += 1;
            }
        }
        if let Err(error) = &result {
            self.emit(Event::Error(error.clone()), position, sink);
        }
        self.closed = Some(result);
    }

    /// Ends every choice that has not ended, in the order of their indices. `event` is that of the error, if one ended the
    /// stream.
    pub(super) fn finish_all(
        &mut self,
        end: &ChoiceEnd,
        event: Option<EventIndex>,
        sink: &mut impl ChoiceSink,
    ) {
        // Before the events of the stream's close.
        let position = Position::event_end(self.next_event);
        for slot in self.ordered_slots() {
            let state = self.routes.get(slot).map(|route| route.state);
            if !state.is_some_and(State::is_open) {
                continue;
            }
            self.set_state(slot, State::Ended);
            match state {
                Some(State::Finished(finished)) if event == Some(finished) => {
                    sink.finish_with_stream_error(slot, end.clone(), position);
                }
                // The choice was complete, so the stream's error does not reach it.
                Some(State::Finished(_)) => sink.finish_with_reason(slot, position),
                _ => sink.finish(slot, end.clone(), position),
            }
        }
    }

    /// Ends these choices, which have their finish reasons.
    fn finish_where(
        &mut self,
        ends: impl Fn(&Route) -> bool,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        // Asked at each event while a choice has its reason, and usually none ends.
        if !self.routes.iter().any(&ends) {
            return;
        }
        for slot in self.ordered_slots() {
            if self.routes.get(slot).is_some_and(&ends) {
                self.set_state(slot, State::Ended);
                sink.finish_with_reason(slot, position);
            }
        }
    }

    /// The slots of all choices in the order of their indices, which is the order of the events.
    fn ordered_slots(&self) -> impl Iterator<Item = usize> + use<> {
        let index_of = |slot: &usize| self.routes.get(*slot).map(|route| route.index);
        let slots = 0..self.routes.len();
        // Slots are in order of appearance. The two orders differ if a server begins with choice 1.
        let sorted = (!slots.clone().is_sorted_by_key(|slot| index_of(&slot))).then(|| {
            let mut sorted: Vec<usize> = slots.clone().collect();
            sorted.sort_unstable_by_key(index_of);
            sorted
        });
        slots.map(move |nth| {
            let slot = sorted.as_ref().and_then(|sorted| sorted.get(nth));
            slot.map_or(nth, |slot| *slot)
        })
    }
}
