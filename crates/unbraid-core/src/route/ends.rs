//! When choices end for reasons that lie outside of them, and when the stream is over.

use super::{Route, Router, Sink, State};
use crate::{
    ChoiceIndex, End, FinishPolicy, StreamError, Warning,
    event::{Event, Place},
};

impl Router {
    /// A choice that has its reason ends at the first event that brings nothing for it.
    pub(super) fn end_of_event(&mut self, at: u64, sink: &mut impl Sink) {
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
    pub(super) fn close(&mut self, result: Result<(), StreamError>, sink: &mut impl Sink) {
        if self.closed.is_some() {
            return;
        }
        let end = result
            .as_ref()
            .map_or_else(End::from, |()| End::DoneWithoutFinish);
        self.end_all(&end, sink);
        let usage = self.usage();
        let empty = self.routes.is_empty() && result.is_ok() && usage.raw.is_null();
        let result = match (result, self.refused) {
            (Ok(()), Some(limit)) => Err(StreamError::Limit(limit)),
            (Ok(()), None) if empty => Err(StreamError::Empty {
                events: self.events,
            }),
            (result, _) => result,
        };
        let place = Place::close(self.next_at);
        if self.counted_tokens() {
            let told = "the index seems to have counted tokens; expect one choice to fold it";
            let last = self.next_at.saturating_sub(1);
            self.warn(Warning::new("E12", last, told), place, sink);
        }
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

    /// E12: the choices were 0, 1, 2 .., of one delta each, and only the last had a reason. Before the close nothing tells
    /// such a stream from several answers whose first tokens come in turn.
    fn counted_tokens(&self) -> bool {
        const SUSPICIOUS: usize = 4; // two or three answers of one token each are nothing special
        let last = self.routes.len().saturating_sub(1);
        let one_token = |(position, route): (usize, &Route)| {
            route.index.0 as usize == position
                && route.deltas == 1
                && route.reason == (position == last)
        };
        self.options.expect_choices.is_none()
            && last >= SUSPICIOUS
            && self.routes.iter().enumerate().all(one_token)
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
}
