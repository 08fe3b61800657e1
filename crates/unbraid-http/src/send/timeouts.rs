//! The timeouts of a client.

use std::time::Duration;

use tokio::time::Instant;
use unbraid::{CompletionsBuilder, TimedOut, Timeout, internal::rest_of_total_timeout};

use crate::limits::FIRST_BYTE_TIMEOUT;

/// The client's own timeouts, as they were set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
}

impl Timeouts {
    /// How long the first byte of a head, and then of a body, may take. The idle timeout applies unless another one is set.
    pub(crate) fn first_byte(self) -> TimedOut {
        let (timeout, after) = match (self.first_byte, self.idle) {
            (Some(after), _) => (Timeout::FirstByte, after),
            (None, Some(after)) => (Timeout::Idle, after),
            (None, None) => (Timeout::FirstByte, FIRST_BYTE_TIMEOUT),
        };
        TimedOut::new(timeout, after)
    }

    /// The deadline of a call that starts now. `None` if there is no total timeout.
    pub(crate) fn deadline(self) -> Option<Deadline> {
        let total = self.total?;
        let started = Instant::now();
        Some(Deadline { started, total })
    }
}

/// When a call has to be over, with all of its requests and their bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    started: Instant,
    total: Duration,
}

impl Deadline {
    /// `None` if it is too far away to be represented.
    pub(crate) fn at(self) -> Option<Instant> {
        self.started.checked_add(self.total)
    }

    pub(crate) fn timed_out(self) -> TimedOut {
        TimedOut::new(Timeout::Total, self.total)
    }

    fn rest(self) -> Duration {
        self.total.saturating_sub(self.started.elapsed())
    }
}

/// Limits a completion that starts now to what is left of its call's time, if that is limited.
pub(crate) fn with_deadline(
    config: CompletionsBuilder,
    deadline: Option<Deadline>,
) -> CompletionsBuilder {
    match deadline {
        Some(deadline) => rest_of_total_timeout(config, deadline.rest(), deadline.total),
        None => config,
    }
}

#[cfg(test)]
mod tests;
