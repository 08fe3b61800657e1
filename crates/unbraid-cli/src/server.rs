//! A small HTTP server on the loopback interface, for the demo and for replays.

use std::{
    convert::Infallible,
    error::Error,
    fmt,
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time,
};
use unbraid::BoxError;

pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Answers the requests of a [`Server`].
pub(crate) trait RequestHandler: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>>;

    /// Whether the server can stop. It checks this whenever a connection has closed.
    fn is_done(&self) -> bool {
        false
    }
}

/// A running server. Dropping it closes its socket and its connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    accept_task: JoinHandle<()>,
}

/// The error with which a body aborts its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abort {
    /// Close the connection in the middle of the body.
    Close,
    /// Reset the connection. The client may lose data that it has not read yet.
    Reset,
}

impl Server {
    /// Starts a server; port 0 lets the system choose.
    pub(crate) async fn start(port: u16, handler: Arc<impl RequestHandler>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Self {
            address: listener.local_addr()?,
            accept_task: tokio::spawn(accept(listener, handler)),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server stops.
    pub(crate) async fn stopped(&mut self) {
        // After a panic, which the hook has reported, there is nothing left to wait for.
        let _joined = (&mut self.accept_task).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}

/// Serves every connection. Aborting this task also closes the connections.
async fn accept<H: RequestHandler>(listener: TcpListener, handler: Arc<H>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(serve(socket, Arc::clone(&handler)));
                }
                // The usual error is too many open files. It passes when other connections close, so they must not end.
                Err(_) => time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => if handler.is_done() {
                return;
            },
        }
    }
}

async fn serve<H: RequestHandler>(socket: TcpStream, handler: Arc<H>) {
    // Nagle's algorithm would delay each small delta until the previous one is acknowledged.
    let _slower: io::Result<()> = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let response = Arc::clone(&handler).handle(request);
        Box::pin(async { Ok::<_, Infallible>(response.await) })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    let served = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut socket = connection.into_parts().io.into_inner();
    let _closed: io::Result<()> = match served.err().as_ref().and_then(Abort::find) {
        Some(Abort::Reset) => socket.set_zero_linger(),
        Some(Abort::Close) => Ok(()),
        // Many clients close the connection after `[DONE]`, so an error here is normal.
        None => socket.shutdown().await,
    };
}

/// An error response in the format of the OpenAI API.
pub(crate) fn error_response(status: StatusCode, message: &str) -> Response<Body> {
    let error =
        json!({ "message": message, "type": "invalid_request_error", "code": status.as_u16() });
    json_error(status, &json!({ "error": error }))
}

/// An error response with this body.
pub(crate) fn json_error(status: StatusCode, error: &Value) -> Response<Body> {
    let mut response = json_response(error);
    *response.status_mut() = status;
    response
}

/// The longest request body. It is buffered, and no prompt is longer than this.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// Reads a request body that is a JSON object, or returns the status and the message of the error for another one.
pub(crate) async fn read_object(
    body: Incoming,
) -> Result<(Bytes, Value), (StatusCode, &'static str)> {
    let body = Limited::new(body, MAX_REQUEST_BYTES).collect().await;
    let bytes = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            (StatusCode::PAYLOAD_TOO_LARGE, "the request is too long")
        } else {
            (StatusCode::BAD_REQUEST, "the request body is incomplete")
        }
    })?;
    let bytes = bytes.to_bytes();
    match serde_json::from_slice(&bytes) {
        Ok(body @ Value::Object(_)) => Ok((bytes, body)),
        _ => Err((StatusCode::BAD_REQUEST, "the request is not a JSON object")),
    }
}

/// Returns an error response for a request with a wrong path or method.
pub(crate) fn reject_invalid<B>(request: &Request<B>, suffixes: &[&str]) -> Option<Response<Body>> {
    let path = request.uri().path();
    if !suffixes.iter().any(|suffix| path.ends_with(suffix)) {
        return Some(error_response(
            StatusCode::NOT_FOUND,
            "this path does not exist",
        ));
    }
    if request.method() != Method::POST {
        let mut response = error_response(StatusCode::METHOD_NOT_ALLOWED, "only POST is allowed");
        let post = HeaderValue::from_static("POST");
        response.headers_mut().insert(ALLOW, post);
        return Some(response);
    }
    None
}

fn json_response(value: &Value) -> Response<Body> {
    json_text_response(value.to_string())
}

/// A successful response with this JSON text.
pub(crate) fn json_text_response(text: String) -> Response<Body> {
    response("application/json", full_body(text))
}

pub(crate) fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn full_body(text: String) -> Body {
    Full::from(text)
        .map_err(|never| match never {})
        .boxed_unsync()
}

impl Abort {
    fn find(error: &hyper::Error) -> Option<Self> {
        error.source()?.downcast_ref().copied()
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Close => "the connection is closed within the body",
            Self::Reset => "the connection is reset",
        })
    }
}

impl Error for Abort {}
