//! The error that an upstream reports inside its answer, as the response that it would have been before it.

use axum::http::StatusCode;
use serde_json::{Value, json};
use unbraid_core::ServerError;

use crate::limits::MAX_REFUSAL_BYTES;

/// The status and the body for the data of an upstream's error event; `None` if it says nothing that a client could use.
pub(crate) fn response(data: &[u8]) -> Option<(StatusCode, Value)> {
    let text = std::str::from_utf8(data).ok()?;
    if text.len() > MAX_REFUSAL_BYTES {
        return None;
    }
    of_error(&ServerError::new(text, 0))
}

/// The same for an error that was read.
pub(crate) fn of_error(error: &ServerError) -> Option<(StatusCode, Value)> {
    let says_something = error.code().is_some() || error.kind().is_some();
    let unexplained = says_something.then_some("the upstream reported an error");
    let message = error.message().or(unexplained)?;
    let field = |name| {
        let body = error.body();
        let inner = body.get("error").filter(|inner| inner.is_object());
        inner.unwrap_or(body).get(name)
    };
    let kind = error.kind().unwrap_or("api_error");
    let names = [error.code(), Some(kind.to_owned())];
    let status = [field("code"), field("status"), field("status_code")]
        .into_iter()
        .flatten()
        .find_map(numeric_status)
        .or_else(|| names.iter().flatten().find_map(|name| named_status(name)))
        .unwrap_or(StatusCode::BAD_GATEWAY);
    let scalar = |name| field(name).filter(|value| value.is_string() || value.is_number());
    let error = json!({
        "message": message, "type": kind, "param": scalar("param"), "code": scalar("code"),
    });
    Some((status, error))
}

/// The member of the error of a fan-out's status that has the rest of what the upstream reported.
pub(crate) const MEMBER: &str = "upstream";

/// What an error says beside its message: its status, and its own type, parameter and code. `None` if it says nothing.
pub(crate) fn details(error: &ServerError) -> Option<Value> {
    let (status, error) = of_error(error)?;
    let field = |name| error.get(name).cloned().unwrap_or_default();
    let details = json!({
        "status": status.as_u16(), "type": field("type"), "param": field("param"), "code": field("code"),
    });
    let is_silent = json!({ "status": 502, "type": "api_error", "param": null, "code": null });
    let is_kept = details != is_silent && details.to_string().len() <= MAX_REFUSAL_BYTES;
    is_kept.then_some(details)
}

/// Engines often report the status itself, as a number or as text.
fn numeric_status(value: &Value) -> Option<StatusCode> {
    let number = match value {
        Value::String(text) => text.parse().ok()?,
        value => u16::try_from(value.as_u64()?).ok()?,
    };
    let status = StatusCode::from_u16(number).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

/// The status with which the APIs of OpenAI, Anthropic and Google send an error of this name.
fn named_status(name: &str) -> Option<StatusCode> {
    Some(match name.to_ascii_lowercase().as_str() {
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "ratelimiterror"
        | "insufficient_quota"
        | "too_many_requests"
        | "resource_exhausted" => StatusCode::TOO_MANY_REQUESTS,
        "authentication_error" | "authenticationerror" | "invalid_api_key" | "unauthenticated" => {
            StatusCode::UNAUTHORIZED
        }
        "permission_error" | "permissiondeniederror" | "permission_denied" => StatusCode::FORBIDDEN,
        "not_found_error" | "notfounderror" | "not_found" | "model_not_found" => {
            StatusCode::NOT_FOUND
        }
        "invalid_request_error"
        | "badrequesterror"
        | "invalid_argument"
        | "context_length_exceeded" => StatusCode::BAD_REQUEST,
        "overloaded_error" | "overloaded" | "service_unavailable" | "unavailable" => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        "timeout_error" | "apitimeouterror" | "deadline_exceeded" => StatusCode::GATEWAY_TIMEOUT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data: &str, status: u16, expected: Value) {
        let (found, error) = response(data.as_bytes()).unwrap();
        assert_eq!((found.as_u16(), error), (status, expected), "{data}");
    }

    #[test]
    fn the_status_follows_the_code_and_then_the_type() {
        check(
            r#"{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
            429,
            json!({"message": "slow down", "type": "requests", "param": null, "code": "rate_limit_exceeded"}),
        );
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            503,
            json!({"message": "Overloaded", "type": "overloaded_error", "param": null, "code": null}),
        );
        check(
            r#"{"object":"error","message":"too long","type":"BadRequestError","param":"n","code":400}"#,
            400,
            json!({"message": "too long", "type": "BadRequestError", "param": "n", "code": 400}),
        );
        check(
            r#"{"error":{"message":"m","code":"529"}}"#,
            529,
            json!({"message": "m", "type": "api_error", "param": null, "code": "529"}),
        );
        check(
            r#"{"error":{"code":"x"}}"#,
            502,
            json!({"message": "the upstream reported an error", "type": "api_error", "param": null, "code": "x"}),
        );
    }

    #[test]
    fn an_error_that_names_no_status_is_a_bad_gateway() {
        for code in ["200", "7", "99999", "\"odd\"", "null", "-1", "[]"] {
            let data = format!(r#"{{"error":{{"message":"m","type":"t","code":{code}}}}}"#);
            assert_eq!(response(data.as_bytes()).unwrap().0.as_u16(), 502, "{code}");
        }
        check(
            r#"{"error":"only text"}"#,
            502,
            json!({"message": "only text", "type": "api_error", "param": null, "code": null}),
        );
    }

    #[test]
    fn an_error_without_a_message_or_of_unusual_length_is_not_used() {
        let long = format!(
            r#"{{"error":{{"message":"{}"}}}}"#,
            "m".repeat(MAX_REFUSAL_BYTES)
        );
        for data in ["{}", "[]", r#"{"error":{}}"#, &long] {
            assert_eq!(response(data.as_bytes()), None);
        }
        assert_eq!(response(b"\xff"), None);
    }
}
