//! The options of a log in memory.

use std::time::Duration;

/// The options of a [`MemoryLog`](crate::MemoryLog).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_log::MemoryOptions;
///
/// let options = MemoryOptions::default()
///     .with_ttl(Duration::from_secs(600))
///     .with_lease(Duration::from_secs(5))
///     .with_max_bytes(64 * 1024 * 1024);
/// assert_eq!(options.ttl, Duration::from_secs(600));
/// assert_eq!(MemoryOptions::default().lease, Duration::from_secs(15));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// How long a stream is kept after its end. One hour by default.
    pub ttl: Duration,
    /// How long a writer may be silent before its stream can be declared lost. 15 seconds by default.
    pub lease: Duration,
    /// The memory above which ended streams are evicted, and then no stream is opened. One GiB by default. What is remembered
    /// of expired streams takes at most an eighth of it beside that.
    pub max_bytes: usize,
    /// How long a claim is kept whose stream is not opened, and which its holder does not repeat; at most a day. 15 minutes by
    /// default. A gateway repeats a claim every second.
    pub claim_pending: Duration,
}

impl MemoryOptions {
    /// Sets how long a stream is kept after its end.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how long a writer may be silent.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long a claim is kept whose stream is not opened: longer than its holder lets pass before it claims again, or
    /// the same request is sent twice. More than a day has the effect of a day.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use unbraid_log::MemoryOptions;
    ///
    /// let options = MemoryOptions::default().with_claim_pending(Duration::from_secs(3660));
    /// assert_eq!(options.claim_pending.as_secs(), 3660);
    /// ```
    #[must_use]
    pub fn with_claim_pending(mut self, pending: Duration) -> Self {
        self.claim_pending = pending;
        self
    }

    /// Sets the bound on memory, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3600),
            lease: Duration::from_secs(15),
            max_bytes: 1024 * 1024 * 1024,
            claim_pending: Duration::from_secs(15 * 60),
        }
    }
}
