//! When choices end for reasons that lie outside of them, and when the stream is over.

use super::{Route, Router, Sink, State};
use crate::{
    BodyFormat, ChoiceIndex, End, FinishPolicy, StreamError, Warning,
    event::{Event, Place},
};

impl Router {
    /// A choice that has its reason ends at the first event that brings nothing for it, or with the event that brought it.
    pub(super) fn end_of_event(&mut self, at: u64, sink: &mut impl Sink) {
        if self.finished == 0 {
            return;
        }
        let policy = self.options.finish_policy;
        let over = move |r: &Route| match (r.state, policy) {
            (State::Finished(finished), FinishPolicy::NextEvent) => {
                finished < at && r.delta_at < at
            }
            (State::Finished(_), FinishPolicy::AtFinish) => true,
            (State::Finished(_), FinishPolicy::AtStreamEnd) => false,
            (State::Open | State::Ended | State::Shut, _) => false,
        };
        self.end_where(over, &End::DoneWithoutFinish, Place::event_end(at), sink);
    }

    /// An event is over at the latest where the next one begins: updates that were made elsewhere need not mark the last.
    pub(super) fn end_of_last_event(&mut self, sink: &mut impl Sink) {
        if self.options.finish_policy == FinishPolicy::AtFinish {
            self.end_of_event(self.position.at, sink);
        }
    }

    /// No byte has come for a while: what is finished has ended (250 ms in the actors).
    pub fn quiet(&mut self, sink: &mut impl Sink) {
        if self.after_done {
            return self.close(Ok(()), sink);
        }
        if self.options.finish_policy != FinishPolicy::AtStreamEnd {
            let at = self.next_at.saturating_sub(1);
            self.end_where(
                |r| matches!(r.state, State::Finished(_)),
                &End::DoneWithoutFinish,
                Place::event_end(at),
                sink,
            );
        }
    }

    /// The caller ends one choice; what still comes for it is dropped. False if it had ended before.
    pub fn cancel(&mut self, slot: usize, sink: &mut impl Sink) -> bool {
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
        open
    }

    /// Whether of every choice that came nothing more is kept: the caller cancelled it, or a limit ended it.
    #[must_use]
    pub fn all_cancelled(&self) -> bool {
        self.routes.iter().all(|r| r.state == State::Shut)
    }

    /// Notes what some of the stream appears to be. A completion is what it is, whatever else is in it; else the first
    /// format that is known counts.
    pub(crate) fn recognise(&mut self, format: BodyFormat) {
        let counts = match self.format {
            None | Some(BodyFormat::Json) => true,
            Some(_) => format == BodyFormat::Completion,
        };
        if counts {
            self.format = Some(format);
        }
    }

    /// The error of a stream that held an answer in another format, and no choice.
    fn unsupported(&self) -> Option<StreamError> {
        let format = self.format?;
        let events = self.events;
        let foreign = format != BodyFormat::Completion && self.routes.is_empty();
        foreign.then_some(StreamError::UnsupportedFormat { format, events })
    }

    /// The source ended after so many bytes; `framed` if any of them was a field or comment of an event stream.
    pub fn finish(&mut self, bytes: u64, framed: bool, sink: &mut impl Sink) {
        if self.closed.is_some() {
            return;
        }
        let events = self.events;
        let named = self.format.is_some_and(|format| format != BodyFormat::Json);
        let unsupported = self.unsupported().filter(|_| named);
        if let Some(error) = unsupported {
            self.close(Err(error), sink);
        } else if self.recognised || !self.routes.is_empty() {
            self.end_all(&End::Interrupted, None, sink);
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
    pub(super) fn close(&mut self, result: Result<(), StreamError>, sink: &mut impl Sink) {
        self.close_in(None, result, sink);
    }

    /// As [`close`](Self::close), by an error that stood in this event: a choice whose reason came with it has not
    /// finished, whatever the reason says (X4).
    pub(super) fn close_in(
        &mut self,
        event: Option<u64>,
        result: Result<(), StreamError>,
        sink: &mut impl Sink,
    ) {
        if self.closed.is_some() {
            return;
        }
        let end = result
            .as_ref()
            .map_or_else(End::from, |()| End::DoneWithoutFinish);
        self.end_all(&end, event, sink);
        // What goes wrong after `[DONE]` is no fault of the stream's: without the option nobody would see it.
        let result = if self.after_done { Ok(()) } else { result };
        let usage = self.usage();
        let empty = self.routes.is_empty() && result.is_ok() && usage.raw.is_null();
        // Foreign JSON is never a success; where nothing is known of it and nothing came of it, it is merely empty.
        let unknown = empty && self.format == Some(BodyFormat::Json);
        let unsupported = self.unsupported().filter(|_| !unknown);
        let result = match (result, self.refused, unsupported) {
            (Ok(()), Some(limit), _) => Err(StreamError::Limit(limit)),
            (Ok(()), None, Some(error)) => Err(error),
            (Ok(()), None, None) if empty => Err(StreamError::Empty {
                events: self.events,
            }),
            (result, ..) => result,
        };
        let place = Place::close(self.next_at);
        self.summarise(&result, place, sink);
        if usage.below_received {
            let message = "fewer completion tokens were reported than deltas with text came";
            let last = self.next_at.saturating_sub(1);
            self.warn(Warning::new("U15", last, message), place, sink);
        }
        if !usage.raw.is_null() {
            self.tell(Event::Usage(Box::new(usage)), place, sink);
        }
        if let Err(error) = &result {
            self.tell(Event::Error(error.clone()), place, sink);
        }
        self.closed = Some(result);
    }

    /// Ends every choice that has not ended, in the order of the indices.
    pub(super) fn end_all(&mut self, end: &End, event: Option<u64>, sink: &mut impl Sink) {
        let place = Place {
            position: u32::MAX - 1,
            ..Place::close(self.next_at)
        };
        for slot in self.slots_where(|r| matches!(r.state, State::Open | State::Finished(_))) {
            let state = self.routes.get(slot).map(|route| route.state);
            self.set_state(slot, State::Ended);
            match state {
                Some(State::Finished(at)) if event == Some(at) => {
                    sink.fail_with_stream(slot, end.clone(), place);
                }
                // Its reason is its end, and no error of the stream reaches it.
                Some(State::Finished(_)) => sink.end(slot, End::DoneWithoutFinish, place),
                _ => sink.end(slot, end.clone(), place),
            }
        }
    }

    fn end_where(
        &mut self,
        over: impl Fn(&Route) -> bool,
        end: &End,
        place: Place,
        sink: &mut impl Sink,
    ) {
        for slot in self.slots_where(over) {
            self.set_state(slot, State::Ended);
            sink.end(slot, end.clone(), place);
        }
    }

    /// In the order of the indices, which is the order of the events.
    fn slots_where(&self, wanted: impl Fn(&Route) -> bool) -> Vec<usize> {
        let routes = self.routes.iter().enumerate();
        let mut slots: Vec<(ChoiceIndex, usize)> = routes
            .filter(|(_, r)| wanted(r))
            .map(|(slot, r)| (r.index, slot))
            .collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }
}
