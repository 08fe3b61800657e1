//! `POST /v1/streams/{id}/links`

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde_json::{Value, json};

use super::{
    Answer,
    access::{self, Action, IdPath},
    create::{body::read_body, request::max_choices},
    json_response, stream_url,
};
use crate::{
    api_error::ApiError,
    auth::links::{Scope, unix_now},
    gateway::Gateway,
    limits::{LINK_SECONDS, MAX_LINK_BODY, MAX_LINK_SECONDS},
};

pub(super) async fn create(
    State(gateway): State<Gateway>,
    IdPath(id): IdPath,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    let (id, found) = access::find(&gateway, &parts, &id, Action::Own).await?;
    let body = read_body(&gateway, body, &parts.headers, MAX_LINK_BODY).await?;
    let (scope, seconds) = parse(&body)?;
    let expires = unix_now() + seconds;
    let query = gateway.inner.auth.links.query(id.as_str(), scope, expires);
    let url = stream_url(&gateway, &id);
    let choices: Vec<String> = found
        .view
        .status(max_choices(gateway.inner.options.max_n))
        .choices
        .iter()
        .map(|choice| format!("{url}/choices/{}?{query}", choice.index.0))
        .collect();
    let body = json!({
        "expires": expires,
        "status": format!("{url}?{query}"),
        "events": format!("{url}/events?{query}"),
        "choices": choices,
    });
    Ok(json_response(StatusCode::CREATED, body.to_string()))
}

/// The scope and the lifetime in seconds. Both have defaults: reading, for an hour.
fn parse(body: &[u8]) -> Result<(Scope, u64), ApiError> {
    let body: Value = if body.trim_ascii().is_empty() {
        json!({})
    } else {
        serde_json::from_slice(body).map_err(|_| ApiError::INVALID_JSON)?
    };
    let body = body.as_object().ok_or(ApiError::INVALID_JSON)?;
    let scope = match body.get("scope") {
        None => Some(Scope::Read),
        Some(scope) => scope.as_str().and_then(Scope::parse),
    };
    let seconds = match body.get("expires_in") {
        None => Some(LINK_SECONDS),
        Some(seconds) => seconds.as_u64(),
    };
    let seconds = seconds.filter(|seconds| (1..=MAX_LINK_SECONDS).contains(seconds));
    scope.zip(seconds).ok_or(ApiError::BAD_LINK_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_scope_and_at_most_seven_days() {
        assert_eq!(parse(b"").unwrap(), (Scope::Read, 3600));
        let body = br#"{"scope":"cancel","expires_in":604800}"#;
        assert_eq!(parse(body).unwrap(), (Scope::Cancel, 604_800));
        for body in [
            r#"{"scope":"own"}"#,
            r#"{"expires_in":604801}"#,
            r#"{"expires_in":0}"#,
            r#"{"expires_in":"60"}"#,
            r#"{"scope":null}"#,
        ] {
            assert_eq!(
                parse(body.as_bytes()).unwrap_err(),
                ApiError::BAD_LINK_REQUEST,
                "{body}"
            );
        }
        assert_eq!(parse(b"[]").unwrap_err(), ApiError::INVALID_JSON);
    }
}
