//! The paths of the gateway.

mod access;
mod aggregate;
mod control;
pub(crate) mod create;
mod forward;
mod guard;
mod health;
mod links;
mod page;
mod read;
mod status;

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
    middleware,
    routing::{MethodRouter, any},
};
use bytes::Bytes;
use http_body::Frame;
use unbraid_log::StreamId;

use crate::{api_error::ApiError, gateway::Gateway};

/// Builds the router of all paths.
pub(crate) fn router(gateway: Gateway) -> Router {
    let mut router = Router::new()
        .route("/", only("GET, HEAD").get(page::page))
        .route("/healthz", only("GET, HEAD").get(health::healthz))
        .route("/readyz", only("GET, HEAD").get(health::readyz))
        .route("/v1/chat/completions", only("POST").post(create::chat))
        .route("/v1/completions", only("POST").post(create::text))
        .route("/v1/models", models(&gateway))
        .route("/v1/models/{*id}", models(&gateway))
        .route(
            "/v1/streams/{id}",
            only("GET, HEAD, DELETE")
                .get(status::status)
                .delete(control::erase),
        )
        .route(
            "/v1/streams/{id}/events",
            only("GET, HEAD").get(read::combined),
        )
        .route(
            "/v1/streams/{id}/choices/{index}",
            only("GET, HEAD, DELETE")
                .get(read::choice)
                .delete(control::cancel_choice),
        )
        .route(
            "/v1/streams/{id}/cancel",
            only("POST").post(control::cancel_all),
        )
        .route("/v1/streams/{id}/links", only("POST").post(links::create));
    if gateway.inner.options.serves_metrics {
        router = router.route("/metrics", only("GET, HEAD").get(health::metrics));
    }
    router
        .fallback(forward::other)
        .layer(middleware::from_fn_with_state(
            gateway.clone(),
            guard::guard,
        ))
        .layer(middleware::from_fn(guard::catch_panic))
        .with_state(gateway)
}

/// The models of the upstream: they can be read, and anything else is one of the other paths.
fn models(gateway: &Gateway) -> MethodRouter<Gateway> {
    let other = if gateway.inner.options.pass_through {
        any(forward::other)
    } else {
        only("GET, HEAD")
    };
    other.get(forward::models)
}

/// A path that has only these methods, which are added to it.
fn only<S: Clone + Send + Sync + 'static>(allow: &'static str) -> MethodRouter<S> {
    any(move || async move { ApiError::method_not_allowed(allow) })
}

/// Builds the router of a socket that serves only metrics.
pub(crate) fn metrics_router(gateway: Gateway) -> Router {
    Router::new()
        .route("/metrics", only("GET, HEAD").get(health::open_metrics))
        .fallback(|| async { ApiError::NOT_FOUND })
        .with_state(gateway)
}

/// What every handler returns.
type Answer = Result<Response<Body>, ApiError>;

/// A JSON body.
fn json_response(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// 204.
fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::new(NoBody));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The absence of a body whose length would say something. For an empty one axum adds `Content-Length: 0`, which a 204 must
/// not have, and which is not the length that GET would send instead of HEAD (RFC 9110, 8.6).
struct NoBody;

impl http_body::Body for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

/// Adds what identifies a stream, `X-Stream-Id` and `Link`, and whether it is kept in this gateway only.
fn add_stream_headers(gateway: &Gateway, id: &StreamId, headers: &mut HeaderMap) {
    let url = stream_url(gateway, id);
    let link = format!(
        "<{url}>; rel=\"monitor\", <{url}/events>; rel=\"alternate\"; type=\"text/event-stream\""
    );
    // An id consists of characters that a header can have; the public path may not.
    if let (Ok(id), Ok(link)) = (
        HeaderValue::try_from(id.as_str()),
        HeaderValue::try_from(link),
    ) {
        headers.insert("x-stream-id", id);
        headers.insert(header::LINK, link);
    }
    if gateway.inner.streams.is_degraded(id) {
        headers.insert("x-stream-durability", HeaderValue::from_static("degraded"));
    }
}

/// Adds what every event stream has.
fn add_event_stream_headers(headers: &mut HeaderMap) {
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

fn stream_url(gateway: &Gateway, id: &StreamId) -> String {
    format!("{}/v1/streams/{id}", gateway.inner.options.public_path)
}
