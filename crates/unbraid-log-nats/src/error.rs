//! `NatsError`: why a log in NATS cannot be used.

use async_nats::{ConnectError, ConnectErrorKind};

/// Why [`NatsLog::connect`](crate::NatsLog::connect) failed. No message contains a password or a token.
///
/// # Examples
///
/// ```
/// use unbraid_log_nats::{NatsError, NatsLog, NatsOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let failed = NatsLog::connect("http://127.0.0.1:4222", NatsOptions::default()).await;
/// assert!(matches!(failed, Err(NatsError::InvalidUrl { .. })));
/// let failed = NatsLog::connect("nats://127.0.0.1:9", NatsOptions::default()).await;
/// assert!(matches!(failed, Err(NatsError::Unreachable { .. })));
/// # });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// The text is not the address of a NATS server.
    #[error("invalid NATS address: {reason}")]
    InvalidUrl {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An option has a value that NATS cannot use.
    #[error("invalid option `{option}`: {reason}")]
    InvalidOption {
        /// The name of the option.
        option: &'static str,
        /// What it may contain.
        reason: &'static str,
    },
    /// No server accepts a connection at the address.
    #[error("no NATS server can be reached: {reason}")]
    Unreachable {
        /// What the operating system, the resolver or TLS reports.
        reason: String,
    },
    /// The server refuses the user, the password, the token or the key; or a file with credentials cannot be read.
    #[error("the NATS server refuses the credentials: {reason}")]
    Unauthorized {
        /// What was refused.
        reason: String,
    },
    /// The server is older than 2.9.
    #[error("NATS server {version} is too old: at least 2.9 is needed")]
    TooOld {
        /// The version of the server.
        version: String,
    },
    /// The server runs without JetStream, or the account may not use it.
    #[error("the NATS server has no JetStream for this account: {reason}")]
    NoJetStream {
        /// What the server reports.
        reason: String,
    },
    /// The user may not publish or subscribe to a subject that the log needs.
    #[error("the NATS user may not {action} to {subject}: it needs {needed}")]
    NotPermitted {
        /// `publish` or `subscribe`.
        action: &'static str,
        /// The subject that the server has refused.
        subject: String,
        /// The permissions that a user needs.
        needed: String,
    },
    /// The server has accepted the connection, and does not answer a request to JetStream.
    #[error("the NATS server did not answer a request to JetStream in time")]
    Silent,
    /// The server's `max_payload` is too small for a record.
    #[error("the NATS server accepts messages of {bytes} bytes, and a record needs {needed}")]
    SmallPayload {
        /// The limit of the server.
        bytes: usize,
        /// The largest message that a log contains.
        needed: usize,
    },
    /// A stream of this name or with these subjects exists, and does not belong to a log of this prefix. It is not changed.
    #[error("the JetStream stream `{stream}` exists, and is not a log: {reason}")]
    ForeignStream {
        /// Its name.
        stream: String,
        /// What differs.
        reason: String,
    },
    /// The stream cannot be created: a limit of the account, or more replicas than servers.
    #[error("the JetStream stream `{stream}` cannot be created: {reason}")]
    Refused {
        /// Its name.
        stream: String,
        /// What the server reports.
        reason: String,
    },
}

impl From<ConnectError> for NatsError {
    fn from(error: ConnectError) -> Self {
        let reason = chain(&error);
        match error.kind() {
            ConnectErrorKind::ServerParse => Self::InvalidUrl {
                reason: "it cannot be parsed",
            },
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                Self::Unauthorized { reason }
            }
            _ => Self::Unreachable { reason },
        }
    }
}

/// The message of an error, and those of its causes that it does not contain.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}
