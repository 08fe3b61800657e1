//! Translates a chat completion to the form of another provider.

use serde_json::{Map, Value};

use super::{Request, RequestError, wire::Choices};
use crate::provider::Provider;

/// The fields that a provider receives.
pub(super) fn fields(
    request: &Request,
    provider: Provider,
    _: Choices,
) -> Result<Map<String, Value>, RequestError> {
    let _ = request;
    Err(RequestError::unsupported(
        provider,
        "messages",
        "only native requests can be sent",
    ))
}
