//! The whole answer of a stream, for a client that asked for JSON.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use unbraid_log::{End, StreamEnd};

use super::{control::ended, read::json};
use crate::{
    api_error::ApiError,
    gateway::Gateway,
    upstream_error,
    view::{StreamView, Target},
};

/// Waits for the end of a stream. An answer that was cut is an error, not an answer.
pub(super) async fn wait(
    gateway: &Gateway,
    view: &Arc<StreamView>,
) -> Result<(StatusCode, String), ApiError> {
    tokio::select! {
        biased;
        () = ended(view) => {}
        // The stream of another gateway goes on. This one's connections are about to be closed.
        () = gateway.inner.upstream.stopped(), if view.is_followed() => {
            return Err(ApiError::DRAINING);
        }
    }
    let end = match view.journal().end() {
        Some(Ok(end)) => end,
        Some(Err(error)) => return Err(gateway.inner.views.failed(error)),
        None => return Err(ApiError::LOG_UNAVAILABLE),
    };
    if end.end.is_error() {
        let reported = (end.end == End::ServerError).then(|| view.upstream_error());
        let reported = reported
            .flatten()
            .and_then(|data| upstream_error::response(&data))
            .map(|(status, error)| (status, json!({ "error": error }).to_string()));
        return Ok(reported.unwrap_or_else(|| failure(&end)));
    }
    let body = json(gateway, Arc::clone(view), Target::Combined, false).await?;
    Ok((StatusCode::OK, body))
}

fn failure(end: &StreamEnd) -> (StatusCode, String) {
    let mut error: Value = end
        .error
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| {
            json!({
                "message": "the answer is not complete", "type": "stream_error", "param": null,
                "code": end.end.as_str(),
            })
        });
    let own = error
        .as_object_mut()
        .and_then(|fields| of_fan_out(fields, end.end));
    let status = match end.end {
        End::Refused => reported_status(&error),
        End::TimedOut => Some(StatusCode::GATEWAY_TIMEOUT),
        _ => own,
    };
    let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
    (status, json!({ "error": error }).to_string())
}

/// Puts what the first failed request of a fan-out reported into the error, and returns its status.
fn of_fan_out(error: &mut Map<String, Value>, end: End) -> Option<StatusCode> {
    let own = error.remove(upstream_error::MEMBER)?;
    if end == End::ServerError {
        for name in ["type", "param", "code"] {
            let value = own.get(name).cloned().unwrap_or_default();
            error.insert(name.into(), value);
        }
    }
    reported_status(&own)
}

fn reported_status(error: &Value) -> Option<StatusCode> {
    let status = error.get("status").and_then(Value::as_u64)?;
    StatusCode::from_u16(u16::try_from(status).ok()?).ok()
}
