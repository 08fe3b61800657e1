//! Commands to a generation. Nearly all of them cancel.

use tokio::sync::oneshot;
use unbraid_core::{ChoiceIndex, StreamError};
use unbraid_log::{End, Event, RecordBuilder, Seq};

use super::{
    Generation,
    tracker::{Role, TextChunks},
};
use crate::{
    metrics::UpstreamState,
    streams::{Cancelled, Command},
};

impl Generation {
    pub(super) fn handle_command(&mut self, command: Command) {
        match command {
            Command::Cancel(Some(choice), reply) => self.cancel_choice(choice, reply),
            Command::Cancel(None, reply) => {
                let cancelled = self.cancel_all();
                self.replies.extend(reply.map(|reply| (reply, cancelled)));
            }
            Command::ReaderLeft(at) => self.clock.reader_left(at),
            Command::ReadElsewhere => self.clock.read_elsewhere(),
            Command::EndAsLost => self.abort(End::ProducerLost, &StreamError::Lost),
        }
    }

    fn cancel_choice(&mut self, choice: ChoiceIndex, reply: Option<oneshot::Sender<Cancelled>>) {
        let has_begun = self.start.is_none() || !self.parts.is_empty();
        let cancelled = if has_begun {
            self.cancel_one(choice)
        } else {
            self.cancel_early(choice)
        };
        self.replies.extend(reply.map(|reply| (reply, cancelled)));
    }

    /// Cancels a choice before the answer has begun. Its own request is dropped, if it has one, or else its part of the answer
    /// when it arrives. With the last choice the request is dropped: nothing is waited for any more.
    fn cancel_early(&mut self, choice: ChoiceIndex) -> Cancelled {
        let is_new = !self.cancelled_unseen.contains(&choice);
        if is_new {
            self.write_cancelled(choice);
        }
        let mut is_closed = self.dropped.insert(choice);
        if self.open_choices().is_empty() {
            self.end_as(End::Cancelled);
            is_closed = true;
        }
        let upstream = if is_closed {
            UpstreamState::Closed
        } else {
            UpstreamState::Continues
        };
        if is_new {
            self.metrics.choice_cancelled(upstream);
        }
        Cancelled {
            end: End::Cancelled,
            upstream,
        }
    }

    /// Drops the parts of an answer that has begun whose choices were cancelled before.
    pub(super) fn discard_cancelled(&mut self) {
        // Their ends are in the log.
        let mut written = RecordBuilder::new(Seq(1));
        for &choice in &self.cancelled_unseen {
            let mut parts = self.parts.iter_mut().rev();
            let Some(part) = parts.find(|part| part.tracker.role.may_have(choice)) else {
                continue;
            };
            match part.tracker.role {
                Role::Single(_) => part.close(),
                Role::Whole | Role::MaybeWhole => {
                    part.tracker.cancel(choice, &self.identity, &mut written);
                }
            }
        }
    }

    /// Reports what was done, once the log has it: a caller reads the log next.
    pub(super) fn send_replies(&mut self) {
        for (reply, cancelled) in self.replies.drain(..) {
            // A caller that no longer waits reads the result from the log.
            let _left = reply.send(cancelled);
        }
    }

    fn cancel_one(&mut self, choice: ChoiceIndex) -> Cancelled {
        let known = self.choices().find(|known| known.index == choice);
        let is_unseen = known.is_none();
        let end = match known {
            Some(known) => known.end,
            // No body has the end of a choice that was cancelled before it could appear.
            None => self.cancelled_unseen.get(&choice).map(|_| End::Cancelled),
        };
        if let Some(end) = end {
            return Cancelled {
                end,
                upstream: self.upstream_state(),
            };
        }
        // The last one wins: a choice's own body follows the one that has all of them.
        let mut parts = self.parts.iter_mut().rev();
        let part = parts.find(|part| part.tracker.role.may_have(choice));
        let mut upstream = UpstreamState::Continues;
        if let Some(part) = part {
            let single = matches!(part.tracker.role, Role::Single(_));
            if part
                .tracker
                .cancel(choice, &self.identity, &mut self.keeper.events)
            {
                if is_unseen && !single {
                    self.cancelled_unseen.insert(choice);
                }
                if single {
                    part.close();
                    upstream = UpstreamState::Closed;
                }
            } else if is_unseen {
                // The first body has ended, and the request for this choice was not sent.
                self.cancelled_unseen.insert(choice);
                self.write_cancelled(choice);
            }
        }
        if self.close_if_cancelled() {
            upstream = UpstreamState::Closed;
        }
        self.metrics.choice_cancelled(upstream);
        let end = self.choices().find(|known| known.index == choice);
        Cancelled {
            end: end.and_then(|known| known.end).unwrap_or(End::Cancelled),
            upstream,
        }
    }

    /// Cancels every open choice, also those that have not appeared, and closes the upstream.
    pub(super) fn cancel_all(&mut self) -> Cancelled {
        let cancelled = Cancelled {
            end: End::Cancelled,
            upstream: UpstreamState::Closed,
        };
        let open: Vec<ChoiceIndex> = self.open_choices();
        for &choice in &open {
            let identity = &self.identity;
            let log = &mut self.keeper.events;
            let mut parts = self.parts.iter_mut().rev();
            let part = parts.find(|part| part.tracker.role.may_have(choice));
            let is_written = part.is_some_and(|part| part.tracker.cancel(choice, identity, log));
            if !is_written {
                self.write_cancelled(choice);
            }
            self.metrics.choice_cancelled(UpstreamState::Closed);
        }
        // A choice with a finish reason ends as `finished` all the same. If no other was open, the stream was not cancelled.
        let is_cancelled = |index: &ChoiceIndex| {
            let choice = self.choices().find(|choice| choice.index == *index);
            choice.is_none_or(|choice| choice.end == Some(End::Cancelled))
        };
        let end = match open.iter().any(is_cancelled) {
            true => End::Cancelled,
            false => self.merged_end(),
        };
        self.end_as(end);
        cancelled
    }

    /// Writes the end of a choice that no body has.
    fn write_cancelled(&mut self, choice: ChoiceIndex) {
        let chunk = TextChunks::of(&self.identity).cancelled(choice);
        self.keeper.events.push(&Event::Synthetic {
            choices: (&[choice][..]).into(),
            payload: chunk.as_bytes(),
        });
        self.keeper.events.push(&Event::ChoiceEnd {
            choice,
            end: End::Cancelled,
            finish_reason: None,
        });
        self.cancelled_unseen.insert(choice);
    }

    /// Closes the upstream if a choice was cancelled and no choice is open any more.
    pub(super) fn close_if_cancelled(&mut self) -> bool {
        // Asked for each read: most generations have no choice that was cancelled.
        let may_be_cancelled = self.parts.iter().any(|part| part.tracker.has_cancelled());
        let any_cancelled = may_be_cancelled
            && self
                .choices()
                .any(|choice| choice.end == Some(End::Cancelled));
        let closes = any_cancelled && self.end.is_none() && self.open_choices().is_empty();
        if closes && !self.has_read_all() {
            self.end_as(self.merged_end());
        }
        closes
    }

    /// Closes the upstream, because a cancel has left no choice open.
    fn end_as(&mut self, end: End) {
        self.end = Some(end);
        self.start = None;
        self.singles = None;
        self.release_held();
        for part in &mut self.parts {
            part.close();
        }
    }

    fn upstream_state(&self) -> UpstreamState {
        if self.has_read_all() || self.end.is_some() || self.is_fan_out {
            UpstreamState::Closed
        } else {
            UpstreamState::Continues
        }
    }
}
