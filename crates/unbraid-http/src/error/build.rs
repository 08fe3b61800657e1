//! The error of building a client.

use std::{error::Error as StdError, sync::Arc};

/// Why a client cannot be built.
///
/// # Examples
///
/// ```
/// use unbraid_http::Client;
///
/// let error = Client::builder().base_url("localhost:8000/v1").build().unwrap_err();
/// assert_eq!(error.to_string(), "the base URL cannot be used: it does not begin with http:// or https://");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The base URL cannot be used. The message does not repeat it, because a URL may contain a key.
    #[error("the base URL cannot be used: {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// The key contains characters that a header cannot carry: a line end, or letters beyond ASCII.
    #[error("the key holds characters that a header cannot carry")]
    Key,
    /// The name or the value of an additional header cannot be sent.
    #[error("header {name:?} cannot be sent")]
    Header {
        /// The name as it was given.
        name: String,
    },
    /// The TLS library cannot be set up, or a root certificate cannot be read.
    #[error("TLS cannot be set up")]
    Tls(#[source] Arc<dyn StdError + Send + Sync>),
}
