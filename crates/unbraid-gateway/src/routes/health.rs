//! `/healthz`, `/readyz` and `/metrics`.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE},
};

use super::{Answer, access, json_response};
use crate::{api_error::ApiError, gateway::Gateway};

/// The format's own media type, which says that the text ends with `# EOF`.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const OK: &str = r#"{"status":"ok"}"#;

pub(super) async fn healthz() -> Response<Body> {
    json_response(StatusCode::OK, OK.to_owned())
}

pub(super) async fn readyz(State(gateway): State<Gateway>) -> Answer {
    if gateway.is_draining() {
        return Err(ApiError::DRAINING);
    }
    gateway.check_log().await?;
    Ok(json_response(StatusCode::OK, OK.to_owned()))
}

pub(super) async fn metrics(State(gateway): State<Gateway>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    access::principal(&gateway, &parts)?;
    Ok(metrics_response(&gateway))
}

/// Without a key, on a socket of its own.
pub(super) async fn open_metrics(State(gateway): State<Gateway>) -> Response<Body> {
    metrics_response(&gateway)
}

fn metrics_response(gateway: &Gateway) -> Response<Body> {
    let mut response = Response::new(Body::from(gateway.metrics()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}
