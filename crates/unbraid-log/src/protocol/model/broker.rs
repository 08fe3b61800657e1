//! The log of the model: the rules of the traits, and the faults of an engine.

use std::{sync::Arc, time::SystemTime};

use super::world::Broken;
use crate::{Appended, End, LogError, LogStatus, Meta, Seq, StreamEnd, protocol::Span};

/// A request of the producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Request {
    Open,
    Append(Span),
    Renew,
    /// With the last event that the writer has appended.
    Seal(Seq, End),
    Check,
}

/// The log's answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    Done(Result<(), LogError>),
    Appended(Result<Appended, LogError>),
    Status(Status),
}

/// A status without what the model does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Status {
    Unknown,
    Running(Seq),
    Ended(Seq, End),
}

impl Status {
    pub(super) fn to_log(self) -> LogStatus {
        let meta = Arc::new(Meta::new("", 0));
        match self {
            Self::Unknown => LogStatus::Unknown,
            Self::Running(tail) => LogStatus::Running { meta, tail },
            Self::Ended(tail, end) => LogStatus::Ended {
                meta,
                tail,
                end: StreamEnd::new(end),
                expires: SystemTime::UNIX_EPOCH,
            },
        }
    }
}

/// One stream in an engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Broker {
    pub(super) exists: bool,
    pub(super) records: Vec<Span>,
    pub(super) end: Option<End>,
    pub(super) is_lease_over: bool,
}

impl Broker {
    pub(super) fn new() -> Self {
        Self {
            exists: true,
            records: Vec::new(),
            end: None,
            is_lease_over: false,
        }
    }

    pub(super) fn tail(&self) -> Seq {
        self.records.last().map_or(Seq::START, |record| record.last)
    }

    pub(super) fn status(&self) -> Status {
        match self.end {
            _ if !self.exists => Status::Unknown,
            Some(end) => Status::Ended(self.tail(), end),
            None => Status::Running(self.tail()),
        }
    }

    /// Forgets the last records and the seal, or everything.
    pub(super) fn lose(&mut self, records: Option<usize>) {
        self.end = None;
        match records {
            Some(records) => {
                let kept = self.records.len().saturating_sub(records);
                self.records.truncate(kept);
            }
            None => {
                self.records.clear();
                self.exists = false;
            }
        }
    }

    pub(super) fn seal_lost(&mut self) -> Status {
        if self.exists && self.is_lease_over {
            self.end.get_or_insert(End::ProducerLost);
        }
        self.status()
    }

    pub(super) fn handle(&mut self, request: Request, broken: Option<Broken>) -> Reply {
        match request {
            Request::Open => Reply::Done(self.open()),
            Request::Append(span) => Reply::Appended(self.append(span, broken)),
            Request::Renew => Reply::Done(self.renew()),
            Request::Seal(appended, end) => Reply::Done(self.seal(appended, end, broken)),
            Request::Check => Reply::Status(self.status()),
        }
    }

    fn open(&mut self) -> Result<(), LogError> {
        if self.exists && self.end.is_some() {
            return Err(LogError::Exists);
        }
        self.exists = true;
        self.is_lease_over = false;
        Ok(())
    }

    fn append(&mut self, span: Span, broken: Option<Broken>) -> Result<Appended, LogError> {
        let tail = self.tail();
        if span.first <= tail {
            return if self.records.contains(&span) {
                Ok(Appended::Duplicate)
            } else {
                Err(LogError::Fenced { first: span.first })
            };
        }
        if self.end.is_some() && broken != Some(Broken::NoFence) {
            return Err(LogError::Sealed);
        }
        if span.first > tail.next() && broken != Some(Broken::AcceptsGaps) {
            let first = span.first;
            return Err(LogError::Gap { tail, first });
        }
        self.exists = true;
        self.records.push(span);
        Ok(Appended::New)
    }

    fn renew(&mut self) -> Result<(), LogError> {
        if !self.exists {
            return Err(LogError::Unknown);
        }
        if self.end.is_some() {
            return Err(LogError::Sealed);
        }
        self.is_lease_over = false;
        Ok(())
    }

    fn seal(&mut self, appended: Seq, end: End, broken: Option<Broken>) -> Result<(), LogError> {
        let is_checked = broken != Some(Broken::SealsOverLoss);
        if !self.exists && is_checked {
            return Err(LogError::Unknown);
        }
        let tail = self.tail();
        if self.end.is_none() && tail < appended && is_checked {
            return Err(LogError::Gap {
                tail,
                first: appended,
            });
        }
        self.exists = true;
        self.end.get_or_insert(end);
        Ok(())
    }
}
