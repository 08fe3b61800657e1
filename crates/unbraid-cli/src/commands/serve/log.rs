//! Where streams are kept: the memory of this process, or an engine that other gateways share.

#[cfg(feature = "file")]
use std::path::Path;
use std::{path::PathBuf, sync::Arc, time::Duration};

use unbraid_gateway::LogStore;

use crate::exit::Failure;
#[cfg(any(feature = "file", feature = "redis", feature = "nats"))]
use crate::printable::printable;

/// The value of `--log`. Its text is checked here and not by clap, which would print it: a URL may contain a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogKind {
    Memory,
    File(PathBuf),
    Redis(String),
    Nats(String),
}

/// The options of a log that is not in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogOptions<'a> {
    pub(super) prefix: &'a str,
    pub(super) replicas: u32,
    pub(super) ttl: Duration,
    pub(super) lease: Duration,
}

/// The shortest lease of a shared log. A producer renews it three times, and a busy machine needs some hundred
/// milliseconds for that.
const MIN_LEASE: Duration = Duration::from_secs(1);

impl LogKind {
    /// Parses the value. An engine that this build does not have is an error of the command line.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let kind = if text == "memory" {
            Self::Memory
        } else if let Some(path) = text.strip_prefix("file:") {
            if path.is_empty() {
                return Err(usage("file: needs a path, like file:streams.db"));
            }
            Self::File(path.into())
        } else if text.starts_with("redis://") || text.starts_with("rediss://") {
            Self::Redis(text.into())
        } else if text.starts_with("nats://") || text.starts_with("tls://") {
            Self::Nats(text.into())
        } else {
            return Err(usage(
                "the log is memory, file:PATH, redis://.., rediss://.., nats://.. or tls://..",
            ));
        };
        kind.check_feature()?;
        Ok(kind)
    }

    fn check_feature(&self) -> Result<(), Failure> {
        let (feature, is_present) = match self {
            Self::Memory => return Ok(()),
            Self::File(_) => ("file", cfg!(feature = "file")),
            Self::Redis(_) => ("redis", cfg!(feature = "redis")),
            Self::Nats(_) => ("nats", cfg!(feature = "nats")),
        };
        if is_present {
            return Ok(());
        }
        Err(Failure::missing(&format!("--log {feature}"), feature))
    }

    /// Checks the options that only a shared log has.
    pub(super) fn check_options(&self, options: LogOptions<'_>) -> Result<(), Failure> {
        if *self != Self::Memory && options.lease < MIN_LEASE {
            return Err(usage(
                "--lease is at least 1s for a log that is not in memory",
            ));
        }
        Ok(())
    }
}

/// A log that is connected.
#[derive(Debug)]
pub(super) enum Log {
    Memory,
    #[cfg(feature = "file")]
    File(unbraid_log_file::FileLog),
    #[cfg(any(feature = "redis", feature = "nats"))]
    Shared(SharedLog),
}

impl Log {
    /// What the gateway uses in place of its own memory.
    pub(super) fn store(&self) -> Option<Arc<dyn LogStore>> {
        match self {
            Self::Memory => None,
            #[cfg(feature = "file")]
            Self::File(log) => Some(Arc::new(log.clone())),
            #[cfg(any(feature = "redis", feature = "nats"))]
            Self::Shared(SharedLog(log)) => Some(Arc::clone(log)),
        }
    }

    /// Closes a file, so that the next start need not check all of it.
    pub(super) async fn close(self) {
        #[cfg(feature = "file")]
        if let Self::File(log) = self
            && let Err(error) = log.close().await
        {
            tracing::warn!(%error, "the last pages of the log could not be written");
        }
    }
}

/// A log of several gateways.
#[cfg(any(feature = "redis", feature = "nats"))]
pub(super) struct SharedLog(Arc<dyn LogStore>);

#[cfg(any(feature = "redis", feature = "nats"))]
impl std::fmt::Debug for SharedLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SharedLog").field(&self.0.backend()).finish()
    }
}

/// Connects to the log. No message contains the URL, which may have a password.
pub(super) async fn connect(kind: &LogKind, options: LogOptions<'_>) -> Result<Log, Failure> {
    match kind {
        LogKind::Memory => Ok(Log::Memory),
        #[cfg(feature = "file")]
        LogKind::File(path) => file(path, options).await,
        #[cfg(feature = "redis")]
        LogKind::Redis(url) => redis(url, options).await,
        #[cfg(feature = "nats")]
        LogKind::Nats(url) => nats(url, options).await,
        #[cfg(not(all(feature = "file", feature = "redis", feature = "nats")))]
        missing => {
            let _unused = options;
            missing.check_feature().map(|()| Log::Memory)
        }
    }
}

// Each engine is a crate of its own, behind the feature of the same name.

#[cfg(feature = "file")]
async fn file(path: &Path, options: LogOptions<'_>) -> Result<Log, Failure> {
    use unbraid_log_file::{FileLog, FileOptions, hide_caught_panics};

    hide_caught_panics();
    let own = FileOptions::default()
        .with_ttl(options.ttl)
        .with_lease(options.lease);
    let log = FileLog::open(path, own)
        .await
        .map_err(|error| request(format_args!("{}: {error}", path.display())))?;
    warn(&log.warnings());
    Ok(Log::File(log))
}

#[cfg(feature = "redis")]
async fn redis(url: &str, options: LogOptions<'_>) -> Result<Log, Failure> {
    use unbraid_log_redis::{ConnectError, RedisLog, RedisOptions};

    let own = RedisOptions::default()
        .with_prefix(options.prefix)
        .with_ttl(options.ttl)
        .with_lease(options.lease)
        .with_replicas(options.replicas);
    let log = RedisLog::connect(url, own).await.map_err(|error| {
        let is_usage = matches!(
            error,
            ConnectError::InvalidUrl { .. } | ConnectError::InvalidOption { .. }
        );
        refused(is_usage, error)
    })?;
    warn(&log.warnings());
    Ok(Log::Shared(SharedLog(Arc::new(log))))
}

#[cfg(feature = "nats")]
async fn nats(url: &str, options: LogOptions<'_>) -> Result<Log, Failure> {
    use unbraid_log_nats::{NatsError, NatsLog, NatsOptions};

    let own = NatsOptions::default()
        .with_prefix(options.prefix)
        .with_ttl(options.ttl)
        .with_lease(options.lease)
        .with_replicas(options.replicas);
    let log = NatsLog::connect(url, own).await.map_err(|error| {
        let is_usage = matches!(
            error,
            NatsError::InvalidUrl { .. } | NatsError::InvalidOption { .. }
        );
        refused(is_usage, error)
    })?;
    warn(&log.warnings());
    Ok(Log::Shared(SharedLog(Arc::new(log))))
}

#[cfg(any(feature = "file", feature = "redis", feature = "nats"))]
fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{}", printable(warning));
    }
}

/// A URL or an option that no server could use is an error of the command line.
#[cfg(any(feature = "redis", feature = "nats"))]
fn refused(is_usage: bool, error: impl std::fmt::Display) -> Failure {
    if is_usage {
        return Failure::Usage(printable(&error.to_string()));
    }
    request(error)
}

/// A server may have written parts of the error.
#[cfg(any(feature = "file", feature = "redis", feature = "nats"))]
fn request(error: impl std::fmt::Display) -> Failure {
    Failure::Request(printable(&error.to_string()))
}

fn usage(message: &str) -> Failure {
    Failure::Usage(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_named_by_its_scheme() {
        for (text, expected) in [
            ("memory", Some(LogKind::Memory)),
            #[cfg(feature = "file")]
            ("file:a/b", Some(LogKind::File("a/b".into()))),
            #[cfg(feature = "redis")]
            ("rediss://h:1", Some(LogKind::Redis("rediss://h:1".into()))),
            #[cfg(feature = "nats")]
            ("nats://h", Some(LogKind::Nats("nats://h".into()))),
            #[cfg(feature = "nats")]
            ("tls://h", Some(LogKind::Nats("tls://h".into()))),
            ("file:", None),
            ("http://h", None),
            ("", None),
        ] {
            assert_eq!(LogKind::parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn no_message_contains_the_password_of_a_url() {
        let error = LogKind::parse("redi://user:secret@host").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
