//! Where streams are kept: the memory of this process, or an engine that other gateways share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use unbraid_gateway::LogStore;

use crate::{exit::Failure, printable::printable};

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
        } else if text.starts_with("nats://") {
            Self::Nats(text.into())
        } else {
            return Err(usage(
                "the log is memory, file:PATH, redis://.., rediss://.. or nats://..",
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
        Err(usage(&format!(
            "this build cannot keep streams there: it was built without the feature `{feature}`"
        )))
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

/// Connects to the log; `None` if streams are kept in memory. No message contains the URL, which may have a password.
pub(super) async fn connect(
    kind: &LogKind,
    options: LogOptions<'_>,
) -> Result<Option<Arc<dyn LogStore>>, Failure> {
    // Each engine is a crate of its own, behind the feature of the same name.
    match kind {
        LogKind::Memory => Ok(None),
        #[cfg(feature = "file")]
        LogKind::File(path) => {
            let settings = unbraid_log_file::FileOptions::default()
                .with_ttl(options.ttl)
                .with_lease(options.lease);
            let log = unbraid_log_file::FileLog::open(path, settings).await;
            Ok(Some(Arc::new(log.map_err(|error| refused(&error))?)))
        }
        #[cfg(feature = "redis")]
        LogKind::Redis(url) => {
            let settings = unbraid_log_redis::RedisOptions::default()
                .with_prefix(options.prefix)
                .with_replicas(options.replicas)
                .with_ttl(options.ttl)
                .with_lease(options.lease);
            let log = unbraid_log_redis::RedisLog::connect(url, settings).await;
            let log = log.map_err(|error| refused(&error))?;
            report(&log.warnings());
            Ok(Some(Arc::new(log)))
        }
        #[cfg(feature = "nats")]
        LogKind::Nats(url) => {
            let settings = unbraid_log_nats::NatsOptions::default()
                .with_prefix(options.prefix.into())
                .with_replicas(options.replicas)
                .with_ttl(options.ttl)
                .with_lease(options.lease);
            let log = unbraid_log_nats::NatsLog::connect(url, settings).await;
            let log = log.map_err(|error| refused(&error))?;
            report(&log.warnings());
            Ok(Some(Arc::new(log)))
        }
        #[cfg(not(feature = "redis"))]
        LogKind::Redis(_) => Err(absent()),
        #[cfg(not(feature = "nats"))]
        LogKind::Nats(_) => Err(absent()),
        #[cfg(not(feature = "file"))]
        LogKind::File(_) => Err(absent()),
    }
}

#[cfg(any(feature = "file", feature = "redis", feature = "nats"))]
fn refused(error: &dyn std::error::Error) -> Failure {
    Failure::Request(printable(&error.to_string()))
}

/// What the operator of the log's server should change.
#[cfg(any(feature = "redis", feature = "nats"))]
fn report(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{}", printable(warning));
    }
}

/// An engine that this build does not have is refused when the command line is read.
#[cfg(not(all(feature = "file", feature = "redis", feature = "nats")))]
fn absent() -> Failure {
    Failure::Request("this version has no engine for this log".into())
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
