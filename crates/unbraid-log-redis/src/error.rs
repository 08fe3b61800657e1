//! Why a log in Redis cannot be used, and why a call of it failed.

use std::{error::Error, io, sync::Arc};

use redis::{ErrorKind, RedisError, ServerErrorKind};
use unbraid_log::LogError;

/// Why [`RedisLog::connect`](crate::RedisLog::connect) failed. No message contains a password.
///
/// # Examples
///
/// ```
/// use unbraid_log_redis::{ConnectError, RedisLog, RedisOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let error = RedisLog::connect("http://127.0.0.1", RedisOptions::default()).await.unwrap_err();
/// assert!(matches!(error, ConnectError::InvalidUrl { .. }));
/// assert!(!error.is_temporary());
/// # });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is not that of a Redis server.
    #[error("invalid Redis URL: {reason}")]
    InvalidUrl {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An option has a value that cannot be used.
    #[error("invalid option: {reason}")]
    InvalidOption {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The server cannot be reached, or does not answer.
    #[error("cannot reach {address}: {reason}")]
    Unreachable {
        /// Its host and port, or its path.
        address: String,
        /// What failed.
        reason: String,
    },
    /// The server answers, but not as a Redis server does.
    #[error("{address} is not a Redis server")]
    NotRedis {
        /// Its host and port, or its path.
        address: String,
    },
    /// The server requires a password, or refused the one in the URL.
    #[error("the server refused the user or the password")]
    Unauthorized,
    /// The user may not run a command that the log needs.
    #[error("the user has no permission for the command {command}")]
    NotPermitted {
        /// The command.
        command: &'static str,
    },
    /// The server is older than 7.0.
    #[error("the server has version {version}, but 7.0 or later is required")]
    OldServer {
        /// Its version.
        version: String,
    },
    /// The server is a node of a cluster. A single primary is required, with or without replicas.
    #[error("the server is a node of a cluster, which is not supported")]
    Cluster,
    /// The server is a replica, which refuses writes.
    #[error("the server is a read-only replica")]
    Replica,
}

impl ConnectError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Replica)
    }
}

/// Why a request failed. It contains nothing that the server has written, except the code of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection failed, so the request may have been carried out or not.
    Connection(String),
    /// No answer arrived in time.
    Timeout,
    /// The server refused the user or the password.
    Unauthorized,
    /// The server answered with an error that begins with this code.
    Server(String),
    /// The server's answer has another form than the protocol says.
    Answer,
    /// Fewer replicas than required have acknowledged a write.
    Replicas,
}

impl Failure {
    pub(crate) fn from_io(error: &io::Error) -> Self {
        Self::Connection(error.kind().to_string())
    }

    /// Whether the connection cannot be used any more.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Timeout | Self::Unauthorized | Self::Answer => true,
            // After a failover the name leads to another server.
            Self::Server(code) => code == "READONLY" || code == "MASTERDOWN" || code == "NOAUTH",
            Self::Replicas => false,
        }
    }

    /// Whether the server refuses all writes: its disk fails, or too few replicas are connected. One whose memory is full is not
    /// among them, because it renews leases.
    pub(crate) fn refuses_writes(&self) -> bool {
        matches!(self, Self::Server(code) if code == "MISCONF" || code == "NOREPLICAS")
    }

    pub(crate) fn is_wrong_type(&self) -> bool {
        matches!(self, Self::Server(code) if code == "WRONGTYPE")
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Connection(reason) => reason.clone(),
            Self::Timeout => "the server does not answer".to_owned(),
            Self::Unauthorized => "the server refused the user or the password".to_owned(),
            Self::Server(code) => format!("the server answers with the error {code}"),
            Self::Answer => "the server's answer has an unexpected form".to_owned(),
            Self::Replicas => "too few replicas have acknowledged the write".to_owned(),
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        let source = error.source();
        let shared =
            source.and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
        if let Some(io) = shared.and_then(|error| error.downcast_ref::<io::Error>()) {
            return Self::from_io(io);
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::Unauthorized,
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Self::Answer,
            ErrorKind::Server(ServerErrorKind::ResponseError) => Self::Server("ERR".to_owned()),
            ErrorKind::Io => Self::Connection("the connection is closed".to_owned()),
            _ => match error.code() {
                Some(code) => Self::Server(printable_code(code)),
                None => Self::Answer,
            },
        }
    }
}

/// Only what codes consist of: the rest of a text that a server sends may reach a terminal.
fn printable_code(code: &str) -> String {
    const MAX: usize = 32;
    let is_code = |byte: &char| byte.is_ascii_uppercase() || *byte == '_';
    code.chars().take_while(is_code).take(MAX).collect()
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        if failure.is_wrong_type() {
            return Self::InvalidRecord {
                what: "the key has another type",
                offset: 0,
            };
        }
        Self::unavailable(failure.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_contains_no_text_of_the_server() {
        assert_eq!(printable_code("WRONGTYPE"), "WRONGTYPE");
        assert_eq!(printable_code("OOM\u{1b}[31m secret"), "OOM");
        assert_eq!(printable_code(&"A".repeat(500)).len(), 32);
    }
}
