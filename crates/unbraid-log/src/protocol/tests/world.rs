//! The world: one stream, its producer, its log and its readers.

mod faults;
mod readers;

use std::{fmt, time::Duration};

use readers::new_reader;

use super::broker::{Broker, Reply, Request, Status};
use crate::{
    End, LogError, Seq,
    protocol::{ProducerAction, ProducerMachine, ProducerRules, ReaderMachine},
};

/// Longer than every pause.
const PAUSE: Duration = Duration::from_secs(10);
const RENEW_EVERY: Duration = Duration::from_secs(3600);
const LEASE: Duration = Duration::from_secs(4 * 3600);
/// Longer than every patience.
const FOREVER: Duration = Duration::from_secs(1_000_000);

/// What may happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) degrades: bool,
    pub(super) events: u64,
    /// Calls that get no answer in time, whether or not they are carried out.
    pub(super) timeouts: u8,
    /// Losses of the log.
    pub(super) losses: u8,
    /// Leases that pass although the producer lives.
    pub(super) expiries: u8,
    pub(super) crashes: u8,
    /// Renewals.
    pub(super) ticks: u8,
    /// How often the producer's process does not run for longer than its lease.
    pub(super) sleeps: u8,
}

/// A rule that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Broken {
    /// The producer's gateway delivers what was not acknowledged.
    DeliversEarly,
    /// The log accepts records after its seal.
    NoFence,
    /// The log accepts records that do not follow its tail.
    AcceptsGaps,
    /// The log is sealed although it has lost acknowledged records.
    SealsOverLoss,
    /// A reader takes whole records.
    NoTrim,
    /// The producer's readers get its end, and not that of the log.
    OwnEnd,
    /// The producer takes a call that it has slept through for a failure of the log.
    TrustsSleep,
    /// The producer's readers do not get the events of an append without an answer before the end of a stream that has failed.
    EndsBeforeDoubt,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Source {
    /// The memory of the producer's gateway.
    Local,
    /// The log, through another gateway.
    Log(Box<ReaderMachine>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reader {
    source: Source,
    /// The last event that it got.
    seen: u64,
    end: Option<End>,
    /// Whether it was cut off: its log failed for too long.
    is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Producer {
    machine: ProducerMachine,
    produced: u64,
    is_finished: bool,
    /// The call in flight, and its answer.
    call: Option<Request>,
    reply: Option<Reply>,
    /// The last event whose append was acknowledged, as its writer knows it.
    appended: Seq,
    /// The end of the log, as it was read last.
    log_end: Option<End>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    left: Bounds,
    pub(super) broken: Option<Broken>,
    broker: Broker,
    /// `None` once its gateway has died.
    producer: Option<Producer>,
    produced: u64,
    /// A request that was given up, and has not arrived.
    late: Option<Request>,
    readers: [Reader; 2],
    /// The producer's clock. That of the readers stands still: the model decides when they check.
    clock: Duration,
    has_lost: bool,
    /// Whether a call got no answer although the producer was awake.
    has_timed_out: bool,
    /// Whether the lease has passed, or the producer has died.
    may_be_lost: bool,
    was_degraded: bool,
    has_failed: bool,
    pub(super) violation: Option<&'static str>,
}

/// What can happen next.
struct Steps {
    list: Vec<(String, World)>,
    named: bool,
}

impl Steps {
    fn add(&mut self, name: fmt::Arguments<'_>, next: World) {
        let name = if self.named {
            name.to_string()
        } else {
            String::new()
        };
        self.list.push((name, next));
    }
}

impl World {
    pub(super) fn new(bounds: Bounds, broken: Option<Broken>) -> Self {
        let rules = ProducerRules {
            degrades: bounds.degrades,
            renew_every: RENEW_EVERY,
            lease: match broken {
                Some(Broken::TrustsSleep) => FOREVER,
                _ => LEASE,
            },
        };
        let remote = Source::Log(Box::new(new_reader(0)));
        let reader = |source| Reader {
            source,
            seen: 0,
            end: None,
            is_cut: false,
        };
        Self {
            left: bounds,
            broken,
            broker: Broker::new(),
            producer: Some(Producer {
                machine: ProducerMachine::new(rules, true, Duration::ZERO),
                produced: 0,
                is_finished: false,
                call: None,
                reply: None,
                appended: Seq::START,
                log_end: None,
            }),
            produced: 0,
            late: None,
            readers: [reader(Source::Local), reader(remote)],
            clock: Duration::ZERO,
            has_lost: false,
            has_timed_out: false,
            may_be_lost: false,
            was_degraded: false,
            has_failed: false,
            violation: None,
        }
    }

    /// Everything that can happen next, and whether nothing but faults can.
    ///
    /// The names of the steps are for people, and cost most of the time.
    pub(super) fn steps(&self, named: bool) -> (Vec<(String, Self)>, bool) {
        let mut steps = Steps {
            list: Vec::new(),
            named,
        };
        self.producer_steps(&mut steps);
        for index in 0..self.readers.len() {
            self.reader_steps(index, &mut steps);
        }
        steps.list.retain(|(_, next)| next != self);
        let is_stuck = steps.list.is_empty() && self.late.is_none();
        if let Some(request) = self.late {
            let mut next = self.clone();
            next.late = None;
            let reply = next.broker.handle(request, next.broken);
            steps.add(format_args!("late {request:?} -> {reply:?}"), next);
        }
        self.fault_steps(&mut steps);
        for (_, next) in &mut steps.list {
            next.observe();
        }
        (steps.list, is_stuck)
    }

    fn observe(&mut self) {
        if let Some(producer) = &self.producer {
            self.was_degraded |= producer.machine.is_degraded();
            self.has_failed |= producer.machine.has_failed();
        }
    }

    fn producer_steps(&self, steps: &mut Steps) {
        let Some(producer) = &self.producer else {
            return;
        };
        if producer.produced < self.left.events {
            let mut next = self.clone();
            next.produced += 1;
            let producer = next.producer.as_mut().unwrap();
            producer.produced += 1;
            producer.machine.receive(Seq(producer.produced));
            steps.add(format_args!("produce"), next);
        } else if !producer.is_finished {
            let mut next = self.clone();
            let producer = next.producer.as_mut().unwrap();
            producer.is_finished = true;
            producer.machine.finish();
            steps.add(format_args!("finish"), next);
        }
        match (producer.call, &producer.reply) {
            (Some(request), None) => {
                let mut next = self.clone();
                let reply = next.broker.handle(request, next.broken);
                next.producer.as_mut().unwrap().reply = Some(reply.clone());
                steps.add(format_args!("{request:?} -> {reply:?}"), next);
            }
            (Some(request), Some(reply)) => {
                let mut next = self.clone();
                next.producer
                    .as_mut()
                    .unwrap()
                    .answer(request, Some(reply.clone()), self.clock);
                steps.add(format_args!("answer {reply:?}"), next);
            }
            (None, _) => self.poll_steps(steps),
        }
    }

    fn poll_steps(&self, steps: &mut Steps) {
        let mut next = self.clone();
        let clock = next.clock;
        let producer = next.producer.as_mut().unwrap();
        let mut action = producer.machine.poll(clock);
        if let ProducerAction::Wait(Some(until)) = action
            && until <= clock + PAUSE
        {
            action = producer.machine.poll(clock + PAUSE);
        }
        match action {
            ProducerAction::Form { first } => {
                // One record of everything, or of one event.
                let mut single = next.clone();
                single.producer.as_mut().unwrap().machine.formed(first);
                steps.add(format_args!("{action:?}, one"), single);
                let last = Seq(next.produced);
                next.producer.as_mut().unwrap().machine.formed(last);
                return steps.add(format_args!("{action:?}"), next);
            }
            ProducerAction::Open => producer.call = Some(Request::Open),
            ProducerAction::Append(span) => producer.call = Some(Request::Append(span)),
            ProducerAction::Renew => producer.call = Some(Request::Renew),
            ProducerAction::Seal => {
                let end = if producer.machine.is_cut() {
                    End::ServerError
                } else {
                    End::Finished
                };
                producer.call = Some(Request::Seal(producer.appended, end));
            }
            ProducerAction::Check => producer.call = Some(Request::Check),
            ProducerAction::Wait(_) | ProducerAction::Done => {}
        }
        steps.add(format_args!("{action:?}"), next);
    }

    /// Checks a state.
    pub(super) fn check(&self) -> Option<&'static str> {
        let is_exact = !self.has_lost && !self.was_degraded && !self.has_failed;
        let tail = self.broker.tail().0;
        if is_exact && self.readers.iter().any(|reader| reader.seen > tail) {
            return Some("a reader has what the log does not have");
        }
        if self.was_degraded && !self.has_lost && !self.has_timed_out {
            return Some("a stream is degraded although its log answers");
        }
        if self
            .readers
            .iter()
            .any(|reader| reader.seen > self.produced)
        {
            return Some("a reader has what was not produced");
        }
        let [one, other] = &self.readers;
        if let (Some(end), Some(other_end), true) = (one.end, other.end, is_exact) {
            if end != other_end {
                return Some("readers got different ends");
            }
            if one.seen != other.seen {
                return Some("readers with the same end have different events");
            }
        }
        None
    }

    /// Checks a state in which nothing happens any more unless something fails.
    pub(super) fn check_final(&self) -> Option<&'static str> {
        let has_ended = |reader: &Reader| reader.end.is_some() || reader.is_cut;
        // A lease that can still pass ends those who wait for a producer that is gone.
        let waits = self.producer.is_none() && !self.broker.is_lease_over;
        if !waits && !self.readers.iter().all(has_ended) {
            return Some("a reader hangs");
        }
        let lives = self.producer.is_some() && !self.may_be_lost;
        let tail = self.broker.tail().0;
        if lives && self.has_failed && self.readers.iter().any(|reader| reader.seen != tail) {
            return Some("an end has another number in memory than in the log");
        }
        if lives && !self.has_failed {
            let has_all = |reader: &Reader| reader.seen == self.produced;
            let is_whole =
                self.broker.tail().0 == self.produced && self.readers.iter().all(has_all);
            if !is_whole || self.broker.end != Some(End::Finished) {
                return Some("a live producer has lost events");
            }
        }
        None
    }
}

impl Producer {
    fn is_done(&self) -> bool {
        self.machine.clone().poll(FOREVER) == ProducerAction::Done
    }

    /// Whether the log has said that it has the end.
    fn has_confirmed_end(&self) -> bool {
        let ended = |reply: &Reply| matches!(reply, Reply::Status(Status::Ended(..)));
        self.is_done() || self.reply.as_ref().is_some_and(ended)
    }

    /// The result of the call in flight; `None` if it got none in time.
    fn answer(&mut self, request: Request, reply: Option<Reply>, now: Duration) {
        self.call = None;
        self.reply = None;
        let lost = LogError::unavailable("");
        match (request, reply) {
            (Request::Open, Some(Reply::Done(result))) => {
                // A new writer knows nothing of what an earlier one has appended.
                self.machine.opened(result.as_ref().copied(), now);
            }
            (Request::Open, _) => self.machine.opened(Err(&lost), now),
            (Request::Append(span), Some(Reply::Appended(result))) => {
                if result.is_ok() {
                    self.appended = self.appended.max(span.last);
                }
                self.machine.appended(result.as_ref().copied(), now);
            }
            (Request::Append(_), _) => self.machine.appended(Err(&lost), now),
            (Request::Renew, Some(Reply::Done(result))) => {
                self.machine.renewed(result.as_ref().copied(), now);
            }
            (Request::Renew, _) => self.machine.renewed(Err(&lost), now),
            (Request::Seal(..), Some(Reply::Done(result))) => {
                self.machine.sealed(result.as_ref().copied(), now);
            }
            (Request::Seal(..), _) => self.machine.sealed(Err(&lost), now),
            (Request::Check, Some(Reply::Status(status))) => {
                let status = status.to_log();
                if let crate::LogStatus::Ended { end, .. } = &status {
                    self.log_end = Some(end.end);
                }
                self.machine.checked(Ok(&status), now);
            }
            (Request::Check, _) => self.machine.checked(Err(&lost), now),
        }
    }
}
