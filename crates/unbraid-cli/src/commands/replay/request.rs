//! The request of a client.

use bytes::Bytes;
use hyper::{HeaderMap, Request, Response, StatusCode, body::Incoming};
use serde_json::Value;

use super::endpoint::{Api, Endpoint};
use crate::server::{self, Body};

/// A valid request.
#[derive(Debug)]
pub(super) struct ClientRequest {
    pub(super) path: String,
    pub(super) endpoint: Endpoint,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Bytes,
    /// The body, an object.
    pub(super) body: Value,
}

impl ClientRequest {
    /// Reads a request, or returns the error response for an invalid one.
    pub(super) async fn read(request: Request<Incoming>) -> Result<Self, Response<Body>> {
        let endpoint = Endpoint::of_path(request.uri().path());
        let suffixes: Vec<&str> = endpoint.iter().map(|endpoint| endpoint.suffix).collect();
        let rejection = server::reject_invalid(&request, &suffixes);
        let endpoint = match (rejection, endpoint) {
            (None, Some(endpoint)) => endpoint,
            (rejection, _) => return Err(rejection.unwrap_or_else(not_found)),
        };
        let refused = |status, message: &str| error_response(endpoint, status, message);
        let (head, body) = request.into_parts();
        let (bytes, body) = server::read_object(body)
            .await
            .map_err(|(status, message)| refused(status, message))?;
        Ok(Self {
            path: head.uri.path().to_owned(),
            endpoint,
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            bytes,
            body,
        })
    }

    /// Whether the response is requested as a stream.
    pub(super) fn wants_stream(&self) -> bool {
        self.endpoint.wants_stream(&self.body)
    }

    /// Whether a stream of Gemini is requested as server-sent events.
    pub(super) fn wants_events(&self) -> bool {
        let query = self.query.as_deref().unwrap_or_default();
        query.split('&').any(|pair| pair == "alt=sse")
    }

    /// What selects the recording for this request.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        let model = self.body.get("model").and_then(Value::as_str);
        Wanted {
            body: &self.body,
            model: model.or_else(|| self.endpoint.model(&self.path)),
            api: self.endpoint.api,
        }
    }

    /// An error as the provider of this endpoint writes it.
    pub(super) fn error_response(&self, status: StatusCode, message: &str) -> Response<Body> {
        error_response(self.endpoint, status, message)
    }
}

/// What selects the recording for a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'w> {
    pub(super) body: &'w Value,
    pub(super) model: Option<&'w str>,
    pub(super) api: Api,
}

fn not_found() -> Response<Body> {
    server::error_response(StatusCode::NOT_FOUND, "this path does not exist")
}

fn error_response(endpoint: Endpoint, status: StatusCode, message: &str) -> Response<Body> {
    server::json_error(status, &endpoint.api.error(status, message))
}
