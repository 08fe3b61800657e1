//! The request of a client.

use bytes::Bytes;
use hyper::{HeaderMap, Request, Response, body::Incoming};
use serde_json::Value;

use crate::server::{self, Body};

/// The ends of the paths that are served, after any prefix.
const PATHS: [&str; 2] = ["/chat/completions", "/completions"];

/// A valid request.
#[derive(Debug)]
pub(super) struct ClientRequest {
    pub(super) path: String,
    /// The end of the path, after the prefix of the server.
    pub(super) endpoint: &'static str,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Bytes,
    /// The body, an object.
    pub(super) body: Value,
}

impl ClientRequest {
    /// Reads a request, or returns the error response for an invalid one.
    pub(super) async fn read(request: Request<Incoming>) -> Result<Self, Response<Body>> {
        if let Some(rejection) = server::reject_invalid(&request, &PATHS) {
            return Err(rejection);
        }
        let (head, body) = request.into_parts();
        let (bytes, body) = server::read_object(body).await?;
        let path = head.uri.path();
        let endpoint = PATHS.into_iter().find(|end| path.ends_with(end));
        Ok(Self {
            path: path.to_owned(),
            endpoint: endpoint.unwrap_or_default(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            bytes,
            body,
        })
    }

    /// Whether the response is requested as a stream.
    pub(super) fn wants_stream(&self) -> bool {
        self.body.get("stream") == Some(&Value::Bool(true))
    }
}
