//! The options of a log in a file.

use std::time::Duration;

/// When the operating system has to write what was committed to the disk.
///
/// A killed process loses nothing with either of them.
///
/// # Examples
///
/// ```
/// use unbraid_log_file::FileSync;
///
/// assert_eq!(FileSync::default(), FileSync::EachCommit);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FileSync {
    /// Before an append is acknowledged. A power failure loses nothing that was acknowledged. Each append waits for the disk;
    /// those of all streams that wait share one write.
    #[default]
    EachCommit,
    /// Whenever the operating system does it, and when the log is closed. A power failure may damage the file: then it is
    /// refused at the next start.
    Never,
}

/// The options of a [`FileLog`](crate::FileLog).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_log_file::{FileOptions, FileSync};
///
/// let options = FileOptions::default()
///     .with_ttl(Duration::from_secs(600))
///     .with_lease(Duration::from_secs(5))
///     .with_max_bytes(1024 * 1024 * 1024)
///     .with_sync(FileSync::Never);
/// assert_eq!(options.ttl, Duration::from_secs(600));
/// assert_eq!(FileOptions::default().lease, Duration::from_secs(15));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOptions {
    /// How long a stream is kept after its end. One hour by default.
    pub ttl: Duration,
    /// How long a writer may be silent before its stream can be declared lost. 15 seconds by default.
    pub lease: Duration,
    /// The bytes of ended streams above which those that ended first are evicted. 16 GiB by default.
    pub max_bytes: u64,
    /// When committed data has to be on the disk. [`FileSync::EachCommit`] by default.
    pub sync: FileSync,
    /// The memory for pages of the file, in bytes. 64 MiB by default.
    pub cache_bytes: usize,
    /// How long a claim is kept whose stream is not opened, and which its holder does not repeat; at most a day. 15 minutes by
    /// default.
    pub claim_pending: Duration,
}

impl FileOptions {
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

    /// Sets the bytes of ended streams above which those that ended first are evicted.
    ///
    /// The file is larger: pages are not completely filled, and space that was freed is used again rather than returned.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets when committed data has to be on the disk.
    #[must_use]
    pub fn with_sync(mut self, sync: FileSync) -> Self {
        self.sync = sync;
        self
    }

    /// Sets the memory for pages of the file, in bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_file::FileOptions;
    ///
    /// assert_eq!(FileOptions::default().with_cache_bytes(1 << 20).cache_bytes, 1_048_576);
    /// ```
    #[must_use]
    pub fn with_cache_bytes(mut self, cache_bytes: usize) -> Self {
        self.cache_bytes = cache_bytes;
        self
    }

    /// Sets how long a claim is kept whose stream is not opened: longer than its holder lets pass before it claims again, or
    /// the same request is sent twice. More than a day has the effect of a day.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use unbraid_log_file::FileOptions;
    ///
    /// let options = FileOptions::default().with_claim_pending(Duration::from_secs(3660));
    /// assert_eq!(options.claim_pending.as_secs(), 3660);
    /// ```
    #[must_use]
    pub fn with_claim_pending(mut self, pending: Duration) -> Self {
        self.claim_pending = pending;
        self
    }
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3600),
            lease: Duration::from_secs(15),
            max_bytes: 16 * 1024 * 1024 * 1024,
            sync: FileSync::default(),
            cache_bytes: 64 * 1024 * 1024,
            claim_pending: Duration::from_secs(15 * 60),
        }
    }
}
