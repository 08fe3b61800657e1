//! The error of a value that is not a request.

use std::sync::Arc;

/// Why a value cannot be sent as a request.
///
/// # Examples
///
/// ```
/// use unbraid_http::{Request, RequestError};
///
/// let error = Request::from_value("text".into()).unwrap_err();
/// assert!(matches!(error, RequestError::NotAnObject { found: "a string" }));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The value is not a JSON object, as the body of a request has to be.
    #[error("a request is a JSON object, not {found}")]
    NotAnObject {
        /// The kind of value that it is.
        found: &'static str,
    },
    /// The value cannot be serialized; the error of serde is the `source()`.
    #[error("the request cannot be serialized to JSON")]
    Serialize(#[source] Arc<dyn std::error::Error + Send + Sync>),
}
