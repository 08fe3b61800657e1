//! `ProducerMachine`: what the producer of a stream does with its log.

mod lease;
mod results;

use std::time::Duration;

use lease::OwnLease;

use super::backoff::Backoff;
use crate::Seq;

/// How long the log's last confirmation of its tail is trusted. A seal after a longer silence is preceded by a probe.
const CONFIRMED_FOR: Duration = Duration::from_millis(500);

/// The numbers of the events of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) first: Seq,
    pub(crate) last: Seq,
}

/// The rules of one stream, which do not change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProducerRules {
    /// Whether readers get events although the log fails. Otherwise the stream ends with the first failure.
    pub(crate) degrades: bool,
    /// How often the lease is renewed.
    pub(crate) renew_every: Duration,
    /// After how long without a renewal another gateway may seal the log.
    pub(crate) lease: Duration,
}

/// What the driver does next. While a call has no result, it is [`Wait`](Self::Wait).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ProducerAction {
    /// Call `reopen`, and report to [`ProducerMachine::opened`].
    Open,
    /// Choose how many of the events from this number on go into the next record: [`ProducerMachine::formed`].
    Form { first: Seq },
    /// Append this record: [`ProducerMachine::appended`].
    Append(Span),
    /// Extend the lease: [`ProducerMachine::renewed`].
    Renew,
    /// Seal the log: [`ProducerMachine::sealed`].
    Seal,
    /// Read the status of the stream: [`ProducerMachine::checked`].
    Check,
    /// Wait for events, for a result, or until this time.
    Wait(Option<Duration>),
    /// The log has an end, or refuses the producer.
    Done,
}

/// A call that has no result yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    Open,
    /// With whether it is a probe: the last record again.
    Append(Span, bool),
    Renew,
    Seal,
    Check,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    /// The log has no writer yet, or has lost the stream.
    Opening,
    Running,
    /// The seal was acknowledged. Which end the log has, and whether it still has everything, is to be checked.
    Sealed,
    /// The log refuses an append.
    Refused {
        /// Whether it contains another record at the same number: then its status does not say why.
        is_final: bool,
    },
    Done,
}

/// The producer's side of one stream.
///
/// There is one call at a time. A record does not change once it is formed, whatever happens to the log: so a request that
/// arrives late is either a repetition or refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProducerMachine {
    rules: ProducerRules,
    phase: Phase,
    /// Whether a writer was given.
    has_writer: bool,
    call: Option<Call>,
    /// The lengths of all records, in order.
    records: Vec<u32>,
    /// The last event in a record, and the last one that there is.
    formed: Seq,
    received: Seq,
    /// The next record to append, and the log's tail before it.
    next: usize,
    tail: Seq,
    /// The log may have the events up to this one, or get them late: an append of them had no answer.
    in_doubt: Seq,
    /// Readers may get the events up to this one.
    released: Seq,
    /// Whether readers get what the log does not have.
    is_degraded: bool,
    is_finished: bool,
    /// Whether the stream has ended because the log failed, and nothing more is appended to it.
    has_failed: bool,
    /// Whether events were dropped then.
    is_cut: bool,
    backoff: Backoff,
    renew_at: Duration,
    lease: OwnLease,
    /// When the log last confirmed its tail.
    confirmed_at: Duration,
    /// Whether the tail is to be confirmed.
    probes: bool,
    repairs: u64,
}

impl ProducerMachine {
    /// A producer of a stream that is open, or has to be opened. The opening began now.
    pub(crate) fn new(rules: ProducerRules, is_open: bool, now: Duration) -> Self {
        let mut machine = Self {
            phase: if is_open {
                Phase::Running
            } else {
                Phase::Opening
            },
            has_writer: is_open,
            call: None,
            records: Vec::new(),
            formed: Seq::START,
            received: Seq::START,
            next: 0,
            tail: Seq::START,
            in_doubt: Seq::START,
            released: Seq::START,
            is_degraded: false,
            is_finished: false,
            has_failed: false,
            is_cut: false,
            backoff: Backoff::of_producer(rules.lease),
            renew_at: now + rules.renew_every,
            lease: OwnLease::new(rules.lease, now),
            confirmed_at: now,
            probes: false,
            repairs: 0,
            rules,
        };
        if !is_open {
            machine.unavailable(now);
        }
        machine
    }

    /// There are events up to this number.
    pub(crate) fn receive(&mut self, last: Seq) {
        if !self.is_finished {
            self.received = self.received.max(last);
            self.release();
        }
    }

    /// There are no more events.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// This process has not run for a while: a call that fails now may have been answered in time.
    ///
    /// If that was long, another gateway may have sealed the log. Then readers of a degraded stream get nothing more until the
    /// log has answered, or has not for another lease.
    pub(crate) fn slept(&mut self, length: Duration, now: Duration) {
        self.lease.slept(length);
        let is_long = length >= self.rules.renew_every;
        if is_long && self.is_degraded && self.lease.may_be_over(now) {
            self.is_degraded = false;
            self.lease.doubts_anew();
            self.backoff.succeeded();
            self.renew_at = self.renew_at.min(now);
        }
    }

    /// The numbers up to which readers may get events.
    pub(crate) fn released(&self) -> Seq {
        self.released
    }

    /// Whether readers may get the end of the stream.
    pub(crate) fn end_is_released(&self) -> bool {
        self.phase == Phase::Done || (self.is_finished && (self.is_degraded || self.has_failed))
    }

    /// Whether readers get what the log does not have.
    pub(crate) fn is_degraded(&self) -> bool {
        self.is_degraded
    }

    /// Whether the log refuses events, and it is not known yet why.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.phase, Phase::Refused { .. })
    }

    /// Whether the stream has ended because the log is not available.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether events were dropped because the log is not available: the stream must not end like one that is complete.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many records the log had lost.
    pub(crate) fn repairs(&self) -> u64 {
        self.repairs
    }

    pub(crate) fn poll(&mut self, now: Duration) -> ProducerAction {
        if self.phase == Phase::Done {
            return ProducerAction::Done;
        }
        if self.call.is_some() {
            return ProducerAction::Wait(None);
        }
        if let Some(until) = self.backoff.until(now) {
            if self.phase != Phase::Running {
                return ProducerAction::Wait(Some(until));
            }
            // A log that refuses events, because it is full, renews all the same. Without that another gateway would seal it.
            if self.renew_at > now {
                return ProducerAction::Wait(Some(until.min(self.renew_at)));
            }
        }
        match self.phase {
            Phase::Opening => self.call(Call::Open, ProducerAction::Open, now),
            Phase::Sealed | Phase::Refused { .. } => {
                self.call(Call::Check, ProducerAction::Check, now)
            }
            Phase::Running | Phase::Done => self.poll_running(now),
        }
    }

    fn poll_running(&mut self, now: Duration) -> ProducerAction {
        // First, so that no number of appends delays it.
        if self.renew_at <= now {
            return self.call(Call::Renew, ProducerAction::Renew, now);
        }
        if self.probes
            && let Some(span) = self.last_appended()
        {
            return self.call(Call::Append(span, true), ProducerAction::Append(span), now);
        }
        if let Some(length) = self.records.get(self.next) {
            let last = Seq(self.tail.0 + u64::from(*length));
            let first = self.tail.next();
            let span = Span { first, last };
            return self.call(Call::Append(span, false), ProducerAction::Append(span), now);
        }
        if self.formed < self.received {
            let first = self.formed.next();
            return ProducerAction::Form { first };
        }
        if !self.is_finished {
            return ProducerAction::Wait(Some(self.renew_at));
        }
        let is_confirmed = now < self.confirmed_at + CONFIRMED_FOR;
        if !is_confirmed && let Some(span) = self.last_appended() {
            return self.call(Call::Append(span, true), ProducerAction::Append(span), now);
        }
        self.call(Call::Seal, ProducerAction::Seal, now)
    }

    fn call(&mut self, call: Call, action: ProducerAction, now: Duration) -> ProducerAction {
        self.call = Some(call);
        self.lease.called(now);
        action
    }

    /// The record before the next one.
    fn last_appended(&self) -> Option<Span> {
        let length = self.records.get(self.next.checked_sub(1)?)?;
        let first = Seq((self.tail.0 + 1).saturating_sub(u64::from(*length)));
        let last = self.tail;
        Some(Span { first, last })
    }

    /// The next record ends with this event.
    pub(crate) fn formed(&mut self, last: Seq) {
        let last = last.clamp(self.formed.next(), self.received.max(self.formed.next()));
        let length = u32::try_from(last.0 - self.formed.0).unwrap_or(u32::MAX);
        self.records.push(length);
        self.formed = Seq(self.formed.0 + u64::from(length));
    }
}
