//! Requests as a plain HTTP client sends them, over a connection of their own.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, body::Incoming, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle, time::timeout};

use super::sse::{Parser, SseEvent};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client waits for the head of a response, and for the next byte of a view, before it tries another gateway. The
/// gateways send pings more often.
pub(super) const SILENCE: Duration = Duration::from_millis(2_500);

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The gateway has not received the request.
    NotSent,
    /// It may have.
    Unknown,
}

/// A response whose head has arrived. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) stream_id: Option<String>,
    body: Incoming,
    parser: Parser,
    ready: VecDeque<SseEvent>,
    connection: AbortHandle,
}

/// Why there are no further events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The body ended.
    End,
    /// The connection broke.
    Broken,
    /// Nothing arrived for a long time, not even a ping.
    Silence,
}

/// Sends a request.
pub(super) async fn send(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&'static str, String)],
    body: String,
) -> Result<Response, Failure> {
    let socket = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let socket = socket.ok().and_then(Result::ok).ok_or(Failure::NotSent)?;
    let _set = socket.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
        .await
        .map_err(|_| Failure::NotSent)?;
    // Its result is that of the request.
    let task = tokio::spawn(async move { drop(connection.await) });
    let guard = AbortOnDrop(Some(task.abort_handle()));
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .map_err(|_| Failure::NotSent)?;
    let response = timeout(SILENCE, sender.send_request(request)).await;
    let response = response.ok().and_then(Result::ok).ok_or(Failure::Unknown)?;
    let id = response.headers().get("x-stream-id");
    Ok(Response {
        status: response.status().as_u16(),
        stream_id: id.and_then(|id| id.to_str().ok()).map(str::to_owned),
        body: response.into_body(),
        parser: Parser::default(),
        ready: VecDeque::new(),
        connection: guard.keep(),
    })
}

impl Response {
    /// The next event.
    pub(super) async fn next(&mut self) -> Result<SseEvent, Stop> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let frame = timeout(SILENCE, self.body.frame())
                .await
                .map_err(|_| Stop::Silence)?;
            let frame = frame.ok_or(Stop::End)?.map_err(|_| Stop::Broken)?;
            if let Some(bytes) = frame.data_ref() {
                let mut events = Vec::new();
                self.parser.push(bytes, &mut events);
                self.ready.extend(events);
            }
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

struct AbortOnDrop(Option<AbortHandle>);

impl AbortOnDrop {
    fn keep(mut self) -> AbortHandle {
        // A guard that was not kept is there.
        self.0
            .take()
            .unwrap_or_else(|| tokio::spawn(async {}).abort_handle())
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.abort();
        }
    }
}
