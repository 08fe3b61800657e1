//! The whole answer of a stream, for a client that asked for JSON.

mod upstream_error;

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;
use unbraid_log::{End, StreamEnd};

use super::{control::ended, read::json};
use crate::{
    api_error::ApiError,
    gateway::Gateway,
    view::{StreamView, Target},
};

/// Waits for the end of a stream. An answer that was cut is an error, not an answer.
pub(super) async fn wait(
    gateway: &Gateway,
    view: &Arc<StreamView>,
) -> Result<(StatusCode, String), ApiError> {
    ended(view).await;
    let end = match view.journal().end() {
        Some(Ok(end)) => end,
        Some(Err(error)) => return Err(gateway.inner.views.failed(error)),
        None => return Err(ApiError::LOG_UNAVAILABLE),
    };
    if end.end.is_error() {
        let reported = (end.end == End::ServerError).then(|| view.upstream_error());
        let reported = reported
            .flatten()
            .and_then(|data| upstream_error::response(&data));
        return Ok(reported.unwrap_or_else(|| failure(&end)));
    }
    let body = json(gateway, Arc::clone(view), Target::Combined, false).await?;
    Ok((StatusCode::OK, body))
}

fn failure(end: &StreamEnd) -> (StatusCode, String) {
    let error: serde_json::Value = end
        .error
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| {
            json!({
                "message": "the answer is not complete", "type": "stream_error", "param": null,
                "code": end.end.as_str(),
            })
        });
    let refused = error.get("status").and_then(serde_json::Value::as_u64);
    let refused = refused.and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
    let status = match end.end {
        End::Refused => refused.unwrap_or(StatusCode::BAD_GATEWAY),
        End::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    (status, json!({ "error": error }).to_string())
}
