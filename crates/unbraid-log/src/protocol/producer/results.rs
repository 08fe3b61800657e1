//! What the result of each call means for the producer.

use std::time::Duration;

use super::{Call, Phase, ProducerMachine};
use crate::{Appended, LogError, LogStatus, Seq};

impl ProducerMachine {
    pub(crate) fn opened(&mut self, result: Result<(), &LogError>, now: Duration) {
        self.call = None;
        match result {
            Ok(()) => {
                self.phase = Phase::Running;
                self.has_writer = true;
                self.renew_at = now + self.rules.renew_every;
                self.lease.renewed();
                self.available();
            }
            Err(error) => self.refused(error, now),
        }
    }

    pub(crate) fn appended(&mut self, result: Result<Appended, &LogError>, now: Duration) {
        let Some(Call::Append(span, is_probe)) = self.call.take() else {
            return;
        };
        match result {
            Ok(appended) => {
                self.confirmed_at = now;
                self.probes = false;
                if is_probe {
                    self.repairs += u64::from(appended == Appended::New);
                } else {
                    self.next += 1;
                    self.tail = span.last;
                    self.backoff.succeeded();
                }
                self.available();
            }
            Err(LogError::Gap { tail, .. }) if tail.next() < span.first => self.rewind(*tail),
            Err(error) => {
                if error.is_temporary() {
                    self.in_doubt = self.in_doubt.max(span.last);
                }
                self.refused(error, now);
            }
        }
    }

    pub(crate) fn renewed(&mut self, result: Result<(), &LogError>, now: Duration) {
        self.call = None;
        match result {
            Ok(()) => {
                self.renew_at = now + self.rules.renew_every;
                self.lease.renewed();
                // A log that has lost its tail is repaired although there is nothing to append.
                self.probes = now >= self.confirmed_at + self.rules.renew_every;
                self.available();
            }
            Err(error) => {
                self.refused(error, now);
                self.renew_at = self.backoff.until(now).unwrap_or(now);
            }
        }
    }

    pub(crate) fn sealed(&mut self, result: Result<(), &LogError>, now: Duration) {
        self.call = None;
        match result {
            // `Sealed` is the acknowledgement of an earlier attempt, or another gateway's seal.
            Ok(()) | Err(LogError::Sealed) => {
                self.phase = Phase::Sealed;
                self.backoff.succeeded();
            }
            Err(LogError::Gap { tail, .. }) if *tail < self.tail => self.rewind(*tail),
            Err(error) => self.refused(error, now),
        }
    }

    /// The status of the stream after a seal, or after a refusal.
    pub(crate) fn checked(&mut self, result: Result<&LogStatus, &LogError>, now: Duration) {
        self.call = None;
        match result {
            Ok(LogStatus::Ended { tail, .. }) => {
                // The last record may have been appended although its answer was lost.
                self.released = self.released.max((*tail).min(self.formed));
                self.phase = Phase::Done;
                self.is_degraded = false;
            }
            Ok(LogStatus::Expired { .. }) => self.phase = Phase::Done,
            Ok(LogStatus::Running { tail, .. }) => match self.phase {
                Phase::Refused { is_final: true } => self.phase = Phase::Done,
                _ => {
                    // The engine has lost the seal, or cannot give the writer again.
                    self.phase = if self.has_writer {
                        Phase::Running
                    } else {
                        Phase::Opening
                    };
                    self.backoff.failed(now);
                    if *tail < self.tail {
                        self.rewind(*tail);
                    }
                }
            },
            Ok(LogStatus::Unknown) => self.lost(now),
            Err(_) => self.unavailable(now),
        }
    }

    fn refused(&mut self, error: &LogError, now: Duration) {
        match error {
            // What another program has written in place of the stream is not its end, and may be removed again.
            LogError::Unavailable { .. }
            | LogError::Full
            | LogError::Gap { .. }
            | LogError::InvalidRecord { .. } => self.unavailable(now),
            LogError::Unknown => self.lost(now),
            LogError::Sealed | LogError::Expired | LogError::Exists => {
                self.phase = Phase::Refused { is_final: false };
            }
            LogError::Fenced { .. }
            | LogError::InvalidId
            | LogError::NoRandom
            | LogError::UnsupportedVersion { .. } => {
                self.phase = Phase::Refused { is_final: true };
            }
        }
    }

    /// The engine does not know the stream any more.
    fn lost(&mut self, now: Duration) {
        self.rewind(Seq::START);
        self.phase = Phase::Opening;
        // An engine that forgets at once what it has just opened must not be asked without a pause.
        self.backoff.failed(now);
    }

    /// The log ends at this number: everything after it is appended again.
    fn rewind(&mut self, tail: Seq) {
        let mut end = Seq::START;
        let lengths = self.records.iter().take(self.next);
        let kept = lengths.take_while(|length| {
            let next = Seq(end.0 + u64::from(**length));
            let is_kept = next <= tail;
            if is_kept {
                end = next;
            }
            is_kept
        });
        let kept = kept.count();
        if end != tail {
            // No record of this producer ends there.
            self.phase = Phase::Refused { is_final: true };
            return;
        }
        self.repairs += (self.next - kept) as u64;
        self.next = kept;
        self.tail = tail;
        self.probes = false;
        self.is_degraded = self.rules.degrades;
        self.release();
    }

    pub(super) fn unavailable(&mut self, now: Duration) {
        self.backoff.failed(now);
        if matches!(self.phase, Phase::Refused { .. }) {
            // Readers get the log's end, and nothing that the log has refused.
        } else if self.is_degraded || self.has_failed || self.lease.is_doubtful(now) {
            // It goes on as before.
        } else if self.rules.degrades {
            self.is_degraded = true;
            self.release();
        } else {
            self.fail();
        }
    }

    /// The stream ends with what readers have, and with the record whose append had no answer.
    ///
    /// Whether the log has that record, or gets it late, is not known. Without it the end would have its number: a client that
    /// resumes after the end would then miss it, and get an end again. So readers get it, too, and it is appended before the
    /// seal.
    fn fail(&mut self) {
        self.has_failed = true;
        self.is_finished = true;
        self.is_cut = self.received > self.released;
        self.released = self.released.max(self.in_doubt);
        // While the log is repaired, readers have more than the log.
        let mut end = Seq::START;
        let released = self.released;
        self.records.retain(|length| {
            let next = Seq(end.0 + u64::from(*length));
            let is_kept = next <= released;
            if is_kept {
                end = next;
            }
            is_kept
        });
        self.next = self.next.min(self.records.len());
        self.formed = end;
        self.received = end;
    }

    /// The log has answered. That says nothing about the events that it does not have: it may be full.
    fn available(&mut self) {
        self.lease.answered();
        let has_everything = self.next == self.records.len() && self.formed == self.received;
        if has_everything {
            self.backoff.succeeded();
        }
        if has_everything && !self.probes {
            self.is_degraded = false;
        }
        self.release();
    }

    pub(super) fn release(&mut self) {
        let released = if self.is_degraded {
            self.received
        } else {
            self.tail
        };
        self.released = self.released.max(released);
    }
}
