//! What holds for every path: `Host` and `Origin`, CORS, and headers of every answer.

use std::panic::AssertUnwindSafe;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{
        HeaderValue, Method, Response,
        header::{ACCESS_CONTROL_REQUEST_METHOD, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::Next,
    response::IntoResponse,
};
use futures::FutureExt;

use super::no_content;
use crate::{
    api_error::ApiError,
    auth::{cors::add_preflight_headers, hosts::origins, keys::Principal},
    gateway::Gateway,
};

/// Checks a request before anything of it is read, and adds headers to its answer.
pub(super) async fn guard(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let auth = &gateway.inner.auth;
    let origin = origins(request.headers())
        .find_map(|origin| auth.cors.listed(origin))
        .cloned();
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && origin.is_some();
    let is_authenticated = request.extensions().get::<Principal>().is_some();
    let checked = match is_authenticated {
        true => Ok(()),
        false => auth.check_site(request.uri(), request.headers()),
    };
    let mut response = match checked {
        Err(error) => error.into_response(),
        Ok(()) if is_preflight => {
            let mut response = no_content();
            add_preflight_headers(request.headers(), response.headers_mut());
            response
        }
        Ok(()) => next.run(request).await,
    };
    let headers = response.headers_mut();
    auth.cors.add_headers(origin.as_ref(), headers);
    // A signed link must not reach another site by way of a page that shows it.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Answers a request whose handler panics.
///
/// tower-http's layer would put every body into a box more, through which each delta passes.
pub(super) async fn catch_panic(request: Request, next: Next) -> Response<Body> {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| ApiError::INTERNAL.into_response())
}
