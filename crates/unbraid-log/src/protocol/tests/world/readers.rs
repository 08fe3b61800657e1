//! What readers do.

use std::time::Duration;

use super::{Broken, FOREVER, PAUSE, Producer, Reader, Source, Steps, World};
use crate::{
    End, LogError, Seq, StreamEnd,
    protocol::{ReaderAction, ReaderMachine, ReaderRules, Take},
};

impl World {
    pub(super) fn reader_steps(&self, index: usize, steps: &mut Steps) {
        let reader = &self.readers[index];
        if reader.end.is_some() || reader.is_cut {
            return;
        }
        match &reader.source {
            Source::Local => {
                let mut next = self.clone();
                next.read_local(index);
                steps.add(format_args!("reader {index} reads memory"), next);
            }
            Source::Log(_) => {
                let mut next = self.clone();
                let action = next.read_log(index);
                steps.add(format_args!("reader {index} {action:?}"), next);
                if !self.broker.exists {
                    return;
                }
                // It checks the lease at any time.
                let mut next = self.clone();
                let status = next.broker.seal_lost();
                let clock = Duration::ZERO;
                next.readers[index]
                    .machine()
                    .checked(Ok(status.to_log()), clock);
                next.take_end(index);
                steps.add(format_args!("reader {index} checks: {status:?}"), next);
            }
        }
    }

    fn read_local(&mut self, index: usize) {
        let broken = self.broken;
        let Some(producer) = &self.producer else {
            return;
        };
        let released = match broken {
            Some(Broken::DeliversEarly) => producer.produced,
            Some(Broken::EndsBeforeDoubt) if producer.machine.has_failed() => 0,
            _ => producer.machine.released().0,
        };
        let reader = &mut self.readers[index];
        reader.seen = reader.seen.max(released);
        if producer.machine.end_is_released() {
            let own = if producer.machine.is_cut() {
                End::ServerError
            } else {
                End::Finished
            };
            let log_end = producer.log_end.filter(|_| broken != Some(Broken::OwnEnd));
            reader.end = Some(log_end.unwrap_or(own));
        }
    }

    /// One step of a reader of the log.
    fn read_log(&mut self, index: usize) -> ReaderAction {
        let clock = Duration::ZERO;
        let machine = self.readers[index].machine();
        let mut action = machine.poll(clock);
        if let ReaderAction::Wait(_) = action {
            action = machine.poll(clock + PAUSE);
        }
        match action {
            ReaderAction::Read { .. } | ReaderAction::Next(_) | ReaderAction::Check => {
                self.next_record(index);
            }
            ReaderAction::Status => {
                let status = self.broker.status();
                self.readers[index]
                    .machine()
                    .checked(Ok(status.to_log()), clock);
            }
            ReaderAction::Wait(_) | ReaderAction::Done(_) => {}
        }
        self.take_end(index);
        action
    }

    fn next_record(&mut self, index: usize) {
        let clock = Duration::ZERO;
        let cursor = Seq(self.readers[index].seen);
        if !self.broker.exists {
            let is_gone = self.producer.as_ref().is_none_or(Producer::is_done);
            let machine = self.readers[index].machine();
            machine.ended(Some(LogError::Unknown), clock);
            if is_gone && self.late.is_none() {
                machine.ended(Some(LogError::Unknown), FOREVER);
            }
            return;
        }
        let record = self
            .broker
            .records
            .iter()
            .find(|record| record.last > cursor);
        let Some(span) = record.copied() else {
            if self.broker.end.is_some() {
                self.readers[index].machine().ended(None, clock);
            }
            return;
        };
        let is_trimmed = self.broken != Some(Broken::NoTrim);
        let reader = &mut self.readers[index];
        if let Take::After(after) = reader.machine().record(span, clock) {
            let first = if is_trimmed {
                span.first.max(after.next())
            } else {
                span.first
            };
            match first.0.cmp(&(reader.seen + 1)) {
                std::cmp::Ordering::Less => self.violation = Some("a reader got an event twice"),
                std::cmp::Ordering::Greater => self.violation = Some("a reader got a gap"),
                std::cmp::Ordering::Equal => reader.seen = span.last.0,
            }
        }
    }

    fn take_end(&mut self, index: usize) {
        let clock = Duration::ZERO;
        let reader = &mut self.readers[index];
        let ReaderAction::Done(done) = reader.machine().clone().poll(clock) else {
            return;
        };
        match done {
            Ok(StreamEnd { end, .. }) => reader.end = Some(end),
            Err(LogError::Gap { .. }) => self.violation = Some("a reader found a gap"),
            Err(_) => reader.is_cut = true,
        }
    }
}

impl Reader {
    fn machine(&mut self) -> &mut ReaderMachine {
        match &mut self.source {
            Source::Log(machine) => machine,
            Source::Local => panic!("it reads memory"),
        }
    }
}

pub(super) fn new_reader(after: u64) -> ReaderMachine {
    let rules = ReaderRules {
        // The model checks whenever it likes.
        check_every: FOREVER,
        patience: PAUSE,
        unknown_patience: PAUSE,
    };
    ReaderMachine::new(rules, Seq(after), Duration::ZERO)
}
