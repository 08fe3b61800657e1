//! `ReaderMachine`: how the log of another producer is followed.

use std::time::Duration;

use super::{backoff::Backoff, producer::Span};
use crate::{LogError, LogStatus, Seq, StreamEnd};

/// How a log is followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReaderRules {
    /// The silence after which the lease is checked, and again after the same time.
    pub(crate) check_every: Duration,
    /// How long a log may be unavailable.
    pub(crate) patience: Duration,
    /// How long a log may have forgotten the stream: its producer appends it again, if it lives.
    pub(crate) unknown_patience: Duration,
}

/// What the driver does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReaderAction {
    /// Read the records after this number: the earlier `read` has ended, or there was none.
    Read { after: Seq },
    /// Wait for the next record until this time.
    Next(Duration),
    /// Seal the stream as lost if its lease has expired ([`ReaderMachine::checked`]).
    Check,
    /// Read the status ([`ReaderMachine::checked`]).
    Status,
    /// Wait until this time.
    Wait(Duration),
    /// The end of the stream, or why it cannot be read any more.
    Done(Result<StreamEnd, LogError>),
}

/// Which part of a record a reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Take {
    /// It is known.
    Nothing,
    /// The events after this number.
    After(Seq),
}

/// One reader of one log, from the first event. It never skips and never repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReaderMachine {
    rules: ReaderRules,
    next: Seq,
    is_reading: bool,
    /// Whether the log's stream of records has ended, which it does after the seal.
    has_ended: bool,
    check_at: Duration,
    backoff: Backoff,
    /// Since when the log is not available, or does not know the stream.
    failing_since: Option<Duration>,
    /// Since when the log answers that it does not know the stream. The outage before it says nothing about the producer, which
    /// could not append again.
    unknown_since: Option<Duration>,
    /// Where the records ended, although the sealed log has more.
    short_at: Option<Seq>,
    done: Option<Result<StreamEnd, LogError>>,
}

impl ReaderMachine {
    pub(crate) fn new(rules: ReaderRules, after: Seq, now: Duration) -> Self {
        Self {
            next: after.next(),
            is_reading: false,
            has_ended: false,
            check_at: now + rules.check_every,
            backoff: Backoff::of_reader(),
            failing_since: None,
            unknown_since: None,
            short_at: None,
            done: None,
            rules,
        }
    }

    pub(crate) fn poll(&mut self, now: Duration) -> ReaderAction {
        if let Some(done) = &self.done {
            return ReaderAction::Done(done.clone());
        }
        if let Some(until) = self.backoff.until(now) {
            // A check has failed, and records arrive all the same. A reader that is not polled cannot reconnect either.
            return if self.is_reading {
                ReaderAction::Next(until)
            } else {
                ReaderAction::Wait(until)
            };
        }
        if self.has_ended {
            return ReaderAction::Status;
        }
        // Before a check, which would otherwise follow each pause that is longer than its interval; and records get the
        // time to arrive.
        if !self.is_reading {
            self.is_reading = true;
            self.check_at = now + self.rules.check_every;
            return ReaderAction::Read {
                after: self.next.previous(),
            };
        }
        if self.check_at <= now {
            return ReaderAction::Check;
        }
        ReaderAction::Next(self.check_at)
    }

    /// A record has arrived.
    pub(crate) fn record(&mut self, span: Span, now: Duration) -> Take {
        self.check_at = now + self.rules.check_every;
        self.available();
        if span.last < self.next {
            return Take::Nothing;
        }
        if span.first > self.next {
            self.fail(LogError::Gap {
                tail: self.next.previous(),
                first: span.first,
            });
            return Take::Nothing;
        }
        let after = self.next.previous();
        self.next = span.last.next();
        Take::After(after)
    }

    /// The log's stream of records has ended: after its seal, or with an error.
    pub(crate) fn ended(&mut self, error: Option<LogError>, now: Duration) {
        self.is_reading = false;
        match error {
            None => self.has_ended = true,
            Some(error) => self.failed(error, now),
        }
    }

    /// The status of the stream: after the end of its records, or after a check of its lease.
    pub(crate) fn checked(&mut self, status: Result<LogStatus, LogError>, now: Duration) {
        self.check_at = now + self.rules.check_every;
        let had_ended = std::mem::take(&mut self.has_ended);
        match status {
            // A log that has lost its tail may end before this reader: it gets the end, and nothing twice.
            Ok(LogStatus::Ended { tail, end, .. }) if tail < self.next => {
                self.done = Some(Ok(end));
            }
            Ok(LogStatus::Ended { tail, .. }) if had_ended => {
                // It is read again from here. If that brings nothing, the records are missing.
                if self.short_at.replace(self.next) == Some(self.next) {
                    self.fail(LogError::Gap {
                        tail: self.next.previous(),
                        first: tail.next(),
                    });
                }
            }
            // The last records are about to arrive. If they do not, they are requested again.
            Ok(LogStatus::Ended { .. }) => match self.failing_since {
                None => self.failing_since = Some(now),
                Some(_) => {
                    self.is_reading = false;
                    self.failed(LogError::unavailable("the last records do not arrive"), now);
                }
            },
            Ok(LogStatus::Running { .. }) => {
                if had_ended {
                    // The engine has lost the seal.
                    self.backoff.failed(now);
                } else if self.is_reading {
                    self.available();
                }
            }
            Ok(LogStatus::Expired { .. }) => self.fail(LogError::Expired),
            Ok(LogStatus::Unknown) => self.failed(LogError::Unknown, now),
            Err(error) => {
                self.has_ended = had_ended;
                self.failed(error, now);
            }
        }
    }

    fn failed(&mut self, error: LogError, now: Duration) {
        let failing_since = *self.failing_since.get_or_insert(now);
        let until = match error {
            LogError::Unavailable { .. } | LogError::Full => {
                self.unknown_since = None;
                failing_since + self.rules.patience
            }
            LogError::Unknown => {
                *self.unknown_since.get_or_insert(now) + self.rules.unknown_patience
            }
            error => return self.fail(error),
        };
        if now >= until {
            return self.fail(error);
        }
        self.backoff.failed(now);
        // The last attempt is made when the patience ends, and not up to a check later.
        self.backoff.not_after(until);
        self.check_at = self.check_at.min(until);
    }

    fn available(&mut self) {
        self.failing_since = None;
        self.unknown_since = None;
        self.backoff.succeeded();
    }

    fn fail(&mut self, error: LogError) {
        self.done = Some(Err(error));
    }
}
