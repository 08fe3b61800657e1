//! `OwnLease`: whether another gateway may have sealed the log, by the clock of the producer.

use std::time::Duration;

/// The producer's view of its lease.
///
/// A call that fails usually says that the log fails, and then readers get what the log does not have. But a process that was
/// suspended notices the end of a call's time before it reads the answer that has arrived. The log is available then, so the
/// next attempt decides; and after a long sleep it may be sealed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnLease {
    duration: Duration,
    /// When the last renewal that succeeded was begun. The log counts from a later moment.
    renewed_at: Duration,
    /// When the last call was begun.
    called_at: Duration,
    /// Whether the process did not run for a part of the last call.
    has_slept: bool,
    /// Since when no call has said whether the log is available, without the time in which the process did not run.
    doubtful_since: Option<Duration>,
}

impl OwnLease {
    pub(super) fn new(duration: Duration, now: Duration) -> Self {
        Self {
            duration,
            renewed_at: now,
            called_at: now,
            has_slept: false,
            doubtful_since: None,
        }
    }

    /// A call is begun.
    pub(super) fn called(&mut self, now: Duration) {
        self.called_at = now;
        self.has_slept = false;
    }

    /// The process did not run for so long. No attempt failed meanwhile.
    pub(super) fn slept(&mut self, length: Duration) {
        self.has_slept = true;
        if let Some(since) = &mut self.doubtful_since {
            *since += length;
        }
    }

    /// What failed before says nothing about the attempts that follow.
    pub(super) fn doubts_anew(&mut self) {
        self.doubtful_since = None;
    }

    /// The call has renewed the lease.
    pub(super) fn renewed(&mut self) {
        self.renewed_at = self.called_at;
    }

    /// The log has answered, and is not sealed.
    pub(super) fn answered(&mut self) {
        self.doubtful_since = None;
    }

    /// Whether another gateway may seal the log before the next attempt is answered.
    ///
    /// A process that runs notices a log that fails earlier: it renews after a third of the lease, and a call takes at most
    /// another one.
    pub(super) fn may_be_over(&self, now: Duration) -> bool {
        now >= self.renewed_at + self.duration * 3 / 4
    }

    /// Whether a call that has failed leaves open if the log is available, or if it is sealed. Attempts that fail for long
    /// enough decide it: readers do not wait forever for a log that is down.
    pub(super) fn is_doubtful(&mut self, now: Duration) -> bool {
        let patience = if self.may_be_over(now) {
            self.duration
        } else if self.has_slept {
            self.duration / 3
        } else {
            return false;
        };
        let since = *self.doubtful_since.get_or_insert(now);
        now < since + patience
    }
}
