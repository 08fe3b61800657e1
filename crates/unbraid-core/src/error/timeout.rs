//! `TimedOut`: the error of a timeout.

use std::{fmt, time::Duration};

/// Which timeout passed, and after how long.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_core::{TimedOut, Timeout};
///
/// let error = TimedOut::new(Timeout::Idle, Duration::from_secs(30));
/// assert_eq!(error.to_string(), "idle timeout after 30s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{timeout} timeout after {after:?}")]
#[non_exhaustive]
pub struct TimedOut {
    /// Which timeout.
    pub timeout: Timeout,
    /// Its configured length.
    pub after: Duration,
}

impl TimedOut {
    /// The error of a timeout of this length.
    #[must_use]
    pub fn new(timeout: Timeout, after: Duration) -> Self {
        Self { timeout, after }
    }
}

/// The three timeouts of a stream.
///
/// # Examples
///
/// ```
/// use unbraid_core::Timeout;
///
/// assert_eq!(Timeout::FirstByte.to_string(), "first-byte");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timeout {
    /// No byte arrived.
    FirstByte,
    /// No further byte arrived for this long. Comments count as bytes (S4).
    Idle,
    /// The stream as a whole took too long.
    Total,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstByte => "first-byte",
            Self::Idle => "idle",
            Self::Total => "total",
        })
    }
}
