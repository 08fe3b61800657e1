//! Reads the body of a request, within its limits.

use axum::{
    body::Body,
    http::{
        HeaderMap,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::{
    api_error::ApiError,
    limits::{BODY_TIMEOUT, READ_BUFFER_BYTES},
};

/// Reads a body of at most `max` bytes. One that declares to be longer is not read at all.
pub(crate) async fn read_body(
    body: Body,
    headers: &HeaderMap,
    max: usize,
) -> Result<Bytes, ApiError> {
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let declared = declared.and_then(|value| value.parse::<u64>().ok());
    if declared.is_some_and(|length| length > max as u64) {
        return Err(ApiError::REQUEST_TOO_LARGE);
    }
    match timeout(BODY_TIMEOUT, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(detached(collected.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::REQUEST_TOO_LARGE),
        Ok(Err(_)) => Err(ApiError::BODY_CUT),
        Err(_elapsed) => Err(ApiError::REQUEST_TIMEOUT),
    }
}

/// A short body in memory of its own: it is a part of the connection's buffer, all of which it would keep for as long as a
/// generation runs. A long one is most of its buffer.
fn detached(body: Bytes) -> Bytes {
    if body.len() < READ_BUFFER_BYTES {
        Bytes::copy_from_slice(&body)
    } else {
        body
    }
}

/// Whether the body is declared as JSON, whatever its parameters.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
