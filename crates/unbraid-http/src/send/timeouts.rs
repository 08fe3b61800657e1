//! The timeouts of a client.

use std::time::Duration;

use unbraid::{TimedOut, Timeout};

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
}

#[cfg(test)]
mod tests;
