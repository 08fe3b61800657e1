//! The options of recordings.

use std::{fmt, sync::Arc};

use crate::{LogStore, Meta, ProducerOptions};

/// Records byte streams with options; [`record`](crate::record) has none. `Clone` is cheap.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use unbraid_log::{LogStore, MemoryLog, MemoryOptions, Meta, ProducerOptions, Recorder};
///
/// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
/// let recorder = Recorder::new(log)
///     .with_meta(Meta::new("/v1/chat/completions", 1_790_000_000).with_n(4))
///     .with_producer(ProducerOptions::default().with_lease(Duration::from_secs(5)))
///     .with_max_choices(4)
///     .with_max_bytes(64 * 1024 * 1024);
/// ```
#[derive(Clone)]
pub struct Recorder {
    pub(super) log: Arc<dyn LogStore>,
    pub(super) meta: Meta,
    pub(super) producer: ProducerOptions,
    pub(super) max_choices: u32,
    pub(super) max_bytes: u64,
}

impl Recorder {
    /// Records into a log.
    #[must_use]
    pub fn new(log: Arc<dyn LogStore>) -> Self {
        let created = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self {
            log,
            meta: Meta::new("/v1/chat/completions", created.as_secs()),
            producer: ProducerOptions::default(),
            max_choices: unbraid_core::Limits::default()
                .choices
                .try_into()
                .unwrap_or(u32::MAX),
            max_bytes: unbraid_core::Limits::default().completion_bytes,
        }
    }

    /// Sets what the log contains about the streams: their owner, for the gateways that serve them, and the number of choices
    /// that were requested, without which a stream continues although every choice that has appeared is cancelled. Chat
    /// completions of nobody in particular by default.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        self.meta = meta;
        self
    }

    /// Sets the lease, and what happens while the log fails. They have to match those of the log.
    #[must_use]
    pub fn with_producer(mut self, options: ProducerOptions) -> Self {
        self.producer = options;
        self
    }

    /// Sets the number of choices that are followed; the data of further ones is passed on. 128 by default.
    #[must_use]
    pub fn with_max_choices(mut self, choices: u32) -> Self {
        self.max_choices = choices;
        self
    }

    /// Sets the bytes above which a stream ends as [`End::LimitExceeded`](crate::End::LimitExceeded). 256 MiB by default,
    /// as for a completion.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("max_choices", &self.max_choices)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}
