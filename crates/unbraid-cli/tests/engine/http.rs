//! Requests without unbraid, which return the bytes of a server.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A response as received.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) bytes: Bytes,
}

impl Response {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) async fn post(base_url: &str, path: &str, body: &Value) -> Response {
    let (authority, root) = parts(base_url);
    let socket = TcpStream::connect(authority).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{root}{path}"))
        .header(HOST, authority)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let (head, mut body) = response.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data();
        bytes.extend_from_slice(&data.unwrap_or_default());
    }
    Response {
        status: head.status,
        bytes: bytes.freeze(),
    }
}

/// Splits a base URL into its host with port, and its path.
fn parts(base_url: &str) -> (&str, &str) {
    let rest = base_url.strip_prefix("http://").expect("a URL without TLS");
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}
