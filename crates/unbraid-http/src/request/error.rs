//! The error of a value that is not a request, and of a request that a provider cannot receive.

use std::sync::Arc;

use crate::provider::Provider;

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
    /// The client's provider has nothing that means the same as a field of the request. Nothing was sent.
    #[error("the field `{field}` cannot be sent to {provider}: {why}")]
    Unsupported {
        /// The provider.
        provider: Provider,
        /// The field, with its position: `messages[2].tool_calls[0].function.arguments`. It contains no value.
        field: String,
        /// Why it cannot be sent, or what to do instead.
        why: &'static str,
    },
}

impl RequestError {
    pub(crate) fn unsupported(
        provider: Provider,
        field: impl Into<String>,
        why: &'static str,
    ) -> Self {
        let field = field.into();
        Self::Unsupported {
            provider,
            field,
            why,
        }
    }
}
