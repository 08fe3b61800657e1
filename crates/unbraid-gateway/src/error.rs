//! Why a gateway could not be built or served.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a [`Gateway`](crate::Gateway) could not be built.
///
/// # Examples
///
/// ```
/// use unbraid_gateway::{BuildError, Gateway};
///
/// let error = Gateway::builder("localhost:8000").build().unwrap_err();
/// assert!(matches!(error, BuildError::Upstream { .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The base URL of the upstream is not one.
    #[error("upstream: {why}")]
    Upstream {
        /// What is wrong with it; never the URL, which may contain a key.
        why: String,
    },
    /// The key of the upstream, or the name of its header, cannot be sent.
    #[error("the upstream key or the name of its header is not a valid header")]
    UpstreamKey,
    /// The secret of [`link_secret`](crate::GatewayBuilder::link_secret) can be guessed.
    #[error("the secret of links must have 16 bytes or more")]
    LinkSecret,
    /// An origin of [`cors_origin`](crate::GatewayBuilder::cors_origin) is not `scheme://host[:port]`.
    #[error("a CORS origin must be like https://app.example, without a path")]
    Origin,
    /// A host of [`allow_host`](crate::GatewayBuilder::allow_host) is not a name.
    #[error("an allowed host must be a name without a port")]
    Host,
    /// An option is zero with which no answer could be given, or only one that is paid for and cut.
    #[error("{option} must not be zero")]
    Zero {
        /// The method of [`GatewayBuilder`](crate::GatewayBuilder) that sets it.
        option: &'static str,
    },
    /// The name of a principal is empty, or contains white space or `#`.
    #[error("a name must not be empty, nor contain white space or #")]
    Principal,
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// A line of the auth file is not `name sha256:<64 hex>`.
    #[error("{}: line {line} is not `name sha256:<64 hexadecimal digits>`", path.display())]
    AuthFile {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A line of the auth file has the key of another name, so it is unknown whose streams are meant.
    #[error("{}: line {line} has the same key as a line of another name", path.display())]
    SharedKey {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A certificate or a private key cannot be used.
    #[error("TLS: {why}")]
    Tls {
        /// What is wrong.
        why: String,
    },
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random,
    /// The gateway was built outside of a tokio runtime.
    #[error("a gateway is built within a tokio runtime")]
    NoRuntime,
}

impl BuildError {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            error,
        }
    }
}
