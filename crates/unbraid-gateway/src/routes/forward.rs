//! Requests that are passed through: models, and with `pass_through` every other path below `/v1/`.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method, Response, header::CONTENT_LENGTH, request::Parts},
};
use bytes::Bytes;
use futures::StreamExt;

use super::{Answer, access, create::body::read_counted};
use crate::{
    api_error::ApiError,
    auth::keys::Principal,
    gateway::Gateway,
    upstream::{self, Outgoing},
};

/// `GET /v1/models` and `GET /v1/models/{id}`.
pub(super) async fn models(State(gateway): State<Gateway>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    access::principal(&gateway, &parts)?;
    forward(&gateway, &parts, Bytes::new()).await
}

/// Every path that is not the gateway's own.
pub(super) async fn other(State(gateway): State<Gateway>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let rest = parts.uri.path().strip_prefix("/v1/");
    let is_api = rest.is_some();
    let is_own = rest.and_then(|rest| rest.split('/').next()) == Some("streams");
    if !is_api || is_own || !gateway.inner.options.pass_through {
        return Err(ApiError::NOT_FOUND);
    }
    access::principal(&gateway, &parts)?;
    if gateway.is_draining() && parts.method == Method::POST {
        return Err(ApiError::DRAINING);
    }
    let (body, mut held) = read_counted(&gateway, body, &parts.headers).await?;
    held.shrink_to(body.len());
    forward(&gateway, &parts, body).await
}

async fn forward(gateway: &Gateway, parts: &Parts, body: Bytes) -> Answer {
    let path = parts
        .uri
        .path()
        .strip_prefix("/v1/")
        .ok_or(ApiError::NOT_FOUND)?;
    if !stays_below_base(path) {
        return Err(ApiError::NOT_FOUND);
    }
    let outgoing = Outgoing {
        method: parts.method.clone(),
        path: path.to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: upstream_headers(gateway, parts, true),
        body,
    };
    let answer = gateway.inner.upstream.send(&outgoing).await?;
    Ok(pass(answer))
}

/// Whether a path has no segment that leads out of the base URL, however it is written.
fn stays_below_base(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let path = path
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/");
    let mut segments = path.split(['/', '\\']);
    segments.all(|segment| !matches!(segment, "." | ".."))
}

/// Passes an answer on, byte for byte. Dropping the response closes the upstream's connection.
pub(super) fn pass(answer: upstream::Answer) -> Response<Body> {
    pass_holding(answer, ())
}

/// The same, and keeps a value until the body has ended.
pub(super) fn pass_holding<T: Send + 'static>(answer: upstream::Answer, held: T) -> Response<Body> {
    let (status, mut headers) = (answer.status, answer.headers.clone());
    // So that a client of HTTP/1.0 sees that a body was cut, too.
    if let Some(length) = answer.content_length() {
        headers.insert(CONTENT_LENGTH, length);
    }
    let body = answer.into_raw().map(move |read| {
        let _held = &held;
        read
    });
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The query and the headers of a request that is sent to the upstream.
pub(super) fn upstream_parts(gateway: &Gateway, parts: &Parts) -> (Option<String>, HeaderMap) {
    let query = parts.uri.query().map(str::to_owned);
    (query, upstream_headers(gateway, parts, false))
}

fn upstream_headers(gateway: &Gateway, parts: &Parts, is_passed_through: bool) -> HeaderMap {
    let is_authenticated = parts.extensions.get::<Principal>().is_some();
    let upstream = &gateway.inner.upstream;
    upstream.request_headers(&parts.headers, is_authenticated, is_passed_through)
}

#[cfg(test)]
mod tests {
    use super::stays_below_base;

    #[test]
    fn no_path_leads_out_of_the_base_url() {
        for path in ["models", "models/org/name", "files/a..b", "x/...", ""] {
            assert!(stays_below_base(path), "{path}");
        }
        for path in [
            "../admin",
            "a/../b",
            "a/%2e%2E/b",
            "a/.%2e",
            "a\\..\\b",
            ".",
            "a%2f..",
            "..%2fa",
            "a%5C..%5c",
        ] {
            assert!(!stays_below_base(path), "{path}");
        }
    }
}
