//! The task of a producer: carries out what the machine of the protocol decides.

mod calls;

use std::{sync::Arc, time::Duration};

use calls::Outcome;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use super::{
    options::{OnFailure, ProducerOptions},
    queue::Shared,
};
use crate::{
    Appended, End, LogError, LogStatus, LogStore, LogWriter, MAX_PAYLOAD_BYTES, Meta, Record, Seq,
    StreamEnd, StreamId,
    protocol::{FAR, ProducerAction, ProducerMachine, ProducerRules, Span},
};

/// How long a log that refuses events may leave open why. After that readers are cut off, and resume elsewhere.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(30);

/// How often the task wakes up while it waits for the result of a call, and how much later than that is a sleep: the process
/// was suspended, or the machine is too busy to judge an answer by its time.
const TICK: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_millis(300);

/// The stream in the log.
pub(super) struct Target {
    pub(super) log: Arc<dyn LogStore>,
    pub(super) id: StreamId,
    pub(super) meta: Meta,
}

pub(super) struct ProducerTask {
    target: Arc<Target>,
    writer: Option<Box<dyn LogWriter>>,
    options: ProducerOptions,
    shared: Arc<Shared>,
    machine: ProducerMachine,
    started: Instant,
    /// What the log has to acknowledge before readers get it: the record that was formed, and the events after it.
    current: Option<Record>,
    pending: Vec<Record>,
    end: Option<StreamEnd>,
    /// Whether the log has acknowledged its end.
    is_sealed: bool,
    /// The end that the log has, or why it has none.
    log_end: Option<Result<StreamEnd, LogError>>,
    refusal: Option<LogError>,
    /// When the task ends although the log has no end: a while after its own end, or after a refusal that lasts.
    gives_up_at: Option<Instant>,
    refused_until: Option<Instant>,
    /// When the task of a stream that ended because its log failed leaves it to others.
    failed_until: Option<Instant>,
    /// Whether the task has ended by itself.
    is_done: bool,
    was_degraded: bool,
    repairs: u64,
}

impl ProducerTask {
    /// The task of a stream whose opening began at this time. One that could not be opened is opened later.
    pub(super) fn new(
        target: Target,
        opened: Result<Box<dyn LogWriter>, LogError>,
        mut options: ProducerOptions,
        shared: Arc<Shared>,
        started: Instant,
    ) -> Self {
        options.lease = options.lease.min(FAR);
        let (writer, refusal) = match opened {
            Ok(writer) => (Some(writer), None),
            Err(error) => (None, Some(error)),
        };
        let rules = ProducerRules {
            degrades: options.on_failure == OnFailure::Degrade,
            renew_every: (options.lease / 3).max(Duration::from_millis(1)),
            lease: options.lease,
        };
        let machine = ProducerMachine::new(rules, writer.is_some(), Duration::ZERO);
        Self {
            target: Arc::new(target),
            writer,
            options,
            shared,
            machine,
            started,
            current: None,
            pending: Vec::new(),
            end: None,
            is_sealed: false,
            log_end: None,
            refusal,
            gives_up_at: None,
            refused_until: None,
            failed_until: None,
            is_done: false,
            was_degraded: false,
            repairs: 0,
        }
    }

    pub(super) async fn run(mut self) {
        while !self.step().await {}
        self.publish();
        let end = self.log_end.take().unwrap_or_else(|| {
            // The log refuses the stream, or has not answered for too long.
            self.give_up();
            let reason = || LogError::unavailable("the log did not take the stream's end");
            Err(self.refusal.clone().unwrap_or_else(reason))
        });
        let own = self.own_end();
        let is_own = own.is_some() && end.as_ref().ok() == own.as_ref();
        if !is_own {
            let error = match &end {
                Ok(_) => LogError::Sealed,
                Err(error) => error.clone(),
            };
            self.report_failure(error);
        }
        // A journal that has ended, because the stream was degraded, keeps its end.
        match end {
            Ok(end) => self.shared.journal.seal(end),
            Err(error) => self.shared.journal.fail(error),
        };
        self.is_done = true;
    }

    /// Returns whether nothing is left to do.
    async fn step(&mut self) -> bool {
        self.take_input();
        let gives_up_at = self.deadlines().min();
        if gives_up_at.is_some_and(|at| at <= Instant::now()) {
            return true;
        }
        match self.machine.poll(self.now()) {
            ProducerAction::Done => return true,
            ProducerAction::Wait(until) => self.wait(until).await,
            ProducerAction::Form { first } => self.form(first),
            ProducerAction::Open => self.call(self.open()).await,
            ProducerAction::Append(span) => {
                let call = self.append(span);
                self.call(call).await;
            }
            ProducerAction::Renew => {
                let call = self.renew();
                self.call(call).await;
            }
            ProducerAction::Seal => {
                let call = self.seal();
                self.call(call).await;
            }
            ProducerAction::Check => self.call(self.check()).await,
        }
        self.publish();
        false
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn take_input(&mut self) {
        let end = self.shared.take(&mut self.pending);
        if let Some(last) = self.pending.last() {
            self.machine.receive(last.last());
        }
        if self.machine.has_failed() {
            self.pending.clear();
            // Its lease would keep readers elsewhere waiting for an end that the log may never take.
            let until = Instant::now().checked_add(self.options.lease);
            self.failed_until = self.failed_until.or(until);
        }
        if let (None, Some(end)) = (&self.end, end) {
            self.end = Some(end);
            self.machine.finish();
            self.gives_up_at = Instant::now().checked_add(self.options.ttl);
        }
        self.publish();
    }

    async fn wait(&mut self, until: Option<Duration>) {
        let until = until.and_then(|until| self.started.checked_add(until));
        let deadline = until.into_iter().chain(self.deadlines()).min();
        let Some(deadline) = deadline else {
            return self.shared.wake.notified().await;
        };
        tokio::select! {
            () = self.shared.wake.notified() => {}
            () = sleep_until(deadline) => {}
        }
        self.note_sleep(deadline);
    }

    /// Notes that this process did not run, if it wakes up long after a time that it has waited for.
    fn note_sleep(&mut self, due: Instant) {
        let late = due.elapsed();
        if late >= LATE {
            let now = self.now();
            self.machine.slept(late, now);
        }
    }

    /// Waits for the result of a call. Events that arrive meanwhile reach readers if the stream is degraded.
    async fn call(&mut self, mut call: BoxFuture<'static, Outcome>) {
        let started = Instant::now();
        let mut tick = started + TICK;
        let outcome = loop {
            let outcome = tokio::select! {
                outcome = &mut call => Some(outcome),
                () = self.shared.wake.notified() => None,
                () = sleep_until(tick) => None,
            };
            self.note_sleep(tick);
            tick = tick.max(Instant::now() + TICK);
            if let Some(outcome) = outcome {
                break outcome;
            }
            self.take_input();
        };
        let now = self.now();
        match outcome {
            Outcome::Opened(result) => {
                self.machine.opened(result.as_ref().map(drop), now);
                match result {
                    Ok(writer) => self.writer = Some(writer),
                    Err(error) => self.opening_failed(error, started.elapsed()),
                }
            }
            Outcome::Appended(writer, result, after) => {
                self.writer = Some(writer);
                self.observe(&result, after);
                self.machine.appended(result.as_ref().copied(), now);
                result.map_or_else(|error| self.note(error), drop);
            }
            Outcome::Renewed(writer, result) => {
                self.writer = Some(writer);
                self.machine.renewed(result.as_ref().copied(), now);
                result.map_or_else(|error| self.note(error), drop);
            }
            Outcome::Sealed(writer, result) => {
                self.writer = Some(writer);
                self.is_sealed |= result.is_ok();
                self.machine.sealed(result.as_ref().copied(), now);
                result.map_or_else(|error| self.note(error), drop);
            }
            Outcome::Checked(result) => self.checked(result, now),
        }
        self.refused_until = match self.refused_until {
            _ if !self.machine.is_refused() => None,
            Some(until) => Some(until),
            None => Instant::now().checked_add(REFUSAL_PATIENCE),
        };
    }

    fn deadlines(&self) -> impl Iterator<Item = Instant> + use<> {
        let deadlines = [self.gives_up_at, self.refused_until, self.failed_until];
        deadlines.into_iter().flatten()
    }

    fn checked(&mut self, result: Result<LogStatus, LogError>, now: Duration) {
        self.machine.checked(result.as_ref(), now);
        match result {
            Ok(LogStatus::Ended { end, .. }) => self.log_end = Some(Ok(end)),
            Ok(LogStatus::Expired { .. }) => {
                // Erased as soon as it had ended: the log has had everything, and readers here get it to its end.
                let own = self.own_end().filter(|_| self.is_sealed);
                self.log_end = Some(own.ok_or(LogError::Expired));
            }
            Ok(LogStatus::Running { .. } | LogStatus::Unknown) | Err(_) => {}
        }
    }

    fn opening_failed(&mut self, error: LogError, after: Duration) {
        // The events wait for it.
        if self.shared.pushed() > Seq::START
            && let Some(observer) = &self.options.observer
        {
            observer.appended(Err(&error), after);
        }
        self.note(error);
    }

    /// Remembers why the log refuses the stream.
    fn note(&mut self, error: LogError) {
        self.refusal = Some(error);
    }

    fn observe(&self, result: &Result<Appended, LogError>, after: Duration) {
        if let Some(observer) = &self.options.observer {
            observer.appended(result.as_ref().copied(), after);
        }
    }

    /// Chooses how many events the next record has: all of them, up to the bound of a record.
    fn form(&mut self, first: Seq) {
        let journal = &self.shared.journal;
        let last = if journal.tail() >= first {
            journal.end_of_record(first, MAX_PAYLOAD_BYTES)
        } else {
            let mut bytes = 0;
            let fitting = self.pending.iter().take_while(|record| {
                let is_first = bytes == 0;
                bytes += record.encoded().len();
                is_first || bytes <= MAX_PAYLOAD_BYTES
            });
            fitting.last().map(Record::last)
        };
        self.machine.formed(last.unwrap_or(first));
    }

    /// The record with these events. It has the same bytes each time.
    fn record(&mut self, span: Span) -> Option<Record> {
        let is_current =
            |record: &&Record| (record.first(), record.last()) == (span.first, span.last);
        if let Some(record) = self.current.as_ref().filter(is_current) {
            return Some(record.clone());
        }
        if self.shared.journal.tail() >= span.last {
            return self.shared.journal.slice(span.first, span.last);
        }
        let count = self
            .pending
            .iter()
            .take_while(|record| record.last() <= span.last)
            .count();
        let mut records: Vec<Record> = self.pending.drain(..count).collect();
        let record = match &records[..] {
            [_] => records.pop(),
            several => Record::merge(several),
        };
        self.current.clone_from(&record);
        record
    }

    /// Gives readers what they may see, and reports how far the task is.
    fn publish(&mut self) {
        let journal = &self.shared.journal;
        let released = self.machine.released();
        if journal.tail() < released {
            if let Some(record) = self.current.take_if(|record| record.last() <= released) {
                // It follows the journal's tail, so it is not refused.
                let _appended = journal.append(&record);
            }
            let is_released = |record: &Record| record.last() <= released;
            let count = self.pending.iter().take_while(|r| is_released(r)).count();
            for record in self.pending.drain(..count) {
                let _appended = journal.append(&record);
            }
        }
        // First: what was released with the failure counts as not acknowledged.
        if self.machine.has_failed() {
            let error = || LogError::unavailable("the log failed");
            let error = self.refusal.clone().unwrap_or_else(error);
            self.report_failure(error);
        }
        let is_degraded = self.machine.is_degraded();
        let tail = journal.tail();
        let (known, was_degraded) = {
            let progress = self.shared.progress();
            (progress.released, progress.is_degraded)
        };
        if tail != known || is_degraded != was_degraded {
            self.shared.report(|progress| {
                progress.released = tail;
                progress.is_degraded = is_degraded;
            });
        }
        self.observe_changes(is_degraded);
        if self.machine.end_is_released()
            && self.log_end.is_none()
            && self.shared.journal.end().is_none()
            && let Some(end) = self.own_end()
        {
            self.shared.journal.seal(end);
        }
    }

    /// The end that the stream was given, unless its last events were dropped.
    fn own_end(&self) -> Option<StreamEnd> {
        let end = self.end.as_ref()?;
        if self.machine.is_cut() && !end.end.is_error() {
            let cut = StreamEnd::new(End::ServerError);
            return Some(cut.with_usage(end.usage.clone()));
        }
        Some(end.clone())
    }

    /// Says that the log does not get what it does not have, unless it has everything and could only not be asked.
    fn give_up(&self) {
        if self.is_sealed {
            return;
        }
        self.shared.report(|progress| progress.has_given_up = true);
        if let Some(observer) = &self.options.observer {
            observer.gave_up();
        }
    }

    fn report_failure(&self, error: LogError) {
        if self.shared.progress().failure.is_none() {
            self.shared
                .report(|progress| progress.failure = Some(error));
        }
    }

    fn observe_changes(&mut self, is_degraded: bool) {
        let repairs = self.machine.repairs();
        if let Some(observer) = &self.options.observer {
            if is_degraded != self.was_degraded {
                let unknown = LogError::unavailable("the log failed");
                let cause = self.refusal.as_ref().unwrap_or(&unknown);
                observer.degraded(is_degraded.then_some(cause));
            }
            if repairs > self.repairs {
                observer.repaired(repairs - self.repairs);
            }
        }
        self.was_degraded = is_degraded;
        self.repairs = repairs;
    }
}

impl Drop for ProducerTask {
    fn drop(&mut self) {
        // Also if the task panicked: nobody waits for it forever.
        let error = || LogError::unavailable("the producer was lost");
        if self.shared.journal.fail(error()) {
            self.report_failure(error());
        }
        // Its runtime has ended while the log did not have everything.
        if !self.is_done && (self.machine.is_degraded() || self.machine.has_failed()) {
            self.give_up();
        }
        self.observe_changes(false);
        self.shared.close();
    }
}
