//! The options of a producer, and who observes it.

use std::{fmt, sync::Arc, time::Duration};

use crate::{Appended, LogError};

/// What a producer does while its log is not available.
///
/// # Examples
///
/// ```
/// use unbraid_log::{OnFailure, ProducerOptions};
///
/// assert_eq!(ProducerOptions::default().on_failure, OnFailure::Degrade);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Readers get events from memory, and the log gets them once it is back.
    #[default]
    Degrade,
    /// The stream ends as [`End::ServerError`](crate::End::ServerError). Readers get the record whose append had no answer as
    /// well, because the log may have it: it is appended again before the end.
    Fail,
}

/// The options of a [`Producer`](crate::Producer).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_log::{OnFailure, ProducerOptions};
///
/// let options = ProducerOptions::default()
///     .with_lease(Duration::from_secs(5))
///     .with_ttl(Duration::from_secs(600))
///     .with_on_failure(OnFailure::Fail);
/// assert_eq!(options.lease, Duration::from_secs(5));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ProducerOptions {
    /// The lease of the log, of which every third is renewed. 15 seconds by default.
    pub lease: Duration,
    /// How long the end of a stream is attempted to be written. One hour by default, as long as a stream is kept.
    pub ttl: Duration,
    /// What happens while the log is not available.
    pub on_failure: OnFailure,
    pub(super) observer: Option<Arc<dyn ProducerObserver>>,
}

impl ProducerOptions {
    /// Sets the lease: that of the log.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long the end of a stream is attempted to be written.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets what happens while the log is not available.
    #[must_use]
    pub fn with_on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sets who is called for each append, for metrics.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use unbraid_log::{Appended, LogError, ProducerObserver, ProducerOptions};
    ///
    /// struct Printer;
    ///
    /// impl ProducerObserver for Printer {
    ///     fn appended(&self, result: Result<Appended, &LogError>, after: Duration) {
    ///         println!("{result:?} after {after:?}");
    ///     }
    /// }
    ///
    /// let options = ProducerOptions::default().with_observer(Arc::new(Printer));
    /// ```
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn ProducerObserver>) -> Self {
        self.observer = Some(observer);
        self
    }
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            ttl: Duration::from_secs(3600),
            on_failure: OnFailure::default(),
            observer: None,
        }
    }
}

impl fmt::Debug for ProducerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerOptions")
            .field("lease", &self.lease)
            .field("ttl", &self.ttl)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// Is called by a [`Producer`](crate::Producer) from its task. No method may block.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use unbraid_log::ProducerObserver;
///
/// #[derive(Default)]
/// struct Repairs(AtomicU64);
///
/// impl ProducerObserver for Repairs {
///     fn repaired(&self, records: u64) {
///         self.0.fetch_add(records, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait ProducerObserver: Send + Sync + 'static {
    /// An append has a result, after this time. It fails, too, if the log refuses to open the stream for it.
    fn appended(&self, result: Result<Appended, &LogError>, after: Duration) {
        let _unused = (result, after);
    }

    /// The stream is degraded because of this error of the log, or no longer degraded.
    fn degraded(&self, cause: Option<&LogError>) {
        let _unused = cause;
    }

    /// The log has not taken the end of the stream within the time to live, or refuses it: what it does not have is dropped.
    fn gave_up(&self) {}

    /// The log had lost records, which are appended again.
    fn repaired(&self, records: u64) {
        let _unused = records;
    }
}
