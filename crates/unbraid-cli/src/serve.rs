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
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time,
};
use unbraid::BoxError;

pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What answers the requests.
pub(crate) trait Answers: Send + Sync + 'static {
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>>;

    /// Whether all requests were answered that ever will be; asked when a connection has closed.
    fn is_done(&self) -> bool {
        false
    }
}

/// A running server. Dropping it closes its socket and its connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// The error of a body that breaks its connection off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abort {
    /// Closed in the middle of the body.
    Close,
    /// Reset: what the client has not read yet may be lost to it.
    Reset,
}

impl Server {
    /// Starts a server; port 0 lets the system choose.
    pub(crate) async fn start(port: u16, answers: Arc<impl Answers>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Self {
            address: listener.local_addr()?,
            accepting: tokio::spawn(accept(listener, answers)),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server is done.
    pub(crate) async fn ended(&mut self) {
        // A panic in it was told; there is nothing to be waited for then.
        let _ended = (&mut self.accepting).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves whoever connects. The connections end with this task.
async fn accept<A: Answers>(listener: TcpListener, answers: Arc<A>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(serve(socket, Arc::clone(&answers)));
                }
                // Mostly too many open files, which connections give back; the others go on.
                Err(_) => time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => if answers.is_done() {
                return;
            },
        }
    }
}

async fn serve<A: Answers>(socket: TcpStream, answers: Arc<A>) {
    // Nagle's algorithm would hold small deltas back until the last one is acknowledged.
    let _slower: io::Result<()> = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = Arc::clone(&answers).answer(request);
        Box::pin(async { Ok::<_, Infallible>(answer.await) })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    let served = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut socket = connection.into_parts().io.into_inner();
    let _gone: io::Result<()> = match served.err().as_ref().and_then(Abort::find) {
        Some(Abort::Reset) => socket.set_zero_linger(),
        Some(Abort::Close) => Ok(()),
        // The client hangs up behind `[DONE]`, as clients do.
        None => socket.shutdown().await,
    };
}

/// An error as providers send it.
pub(crate) fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let error =
        json!({ "message": message, "type": "invalid_request_error", "code": status.as_u16() });
    let mut response = json_response(&json!({ "error": error }));
    *response.status_mut() = status;
    response
}

/// What is wrong with a request, before its body is looked at.
pub(crate) fn refused<B>(request: &Request<B>, suffixes: &[&str]) -> Option<Response<Body>> {
    let path = request.uri().path();
    if !suffixes.iter().any(|suffix| path.ends_with(suffix)) {
        return Some(refusal(
            StatusCode::NOT_FOUND,
            "there is nothing at this path",
        ));
    }
    if request.method() != Method::POST {
        let mut refusal = refusal(StatusCode::METHOD_NOT_ALLOWED, "only POST is answered here");
        let post = HeaderValue::from_static("POST");
        refusal.headers_mut().insert(ALLOW, post);
        return Some(refusal);
    }
    None
}

pub(crate) fn json_response(value: &serde_json::Value) -> Response<Body> {
    response("application/json", whole(value.to_string()))
}

pub(crate) fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn whole(text: String) -> Body {
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
            Self::Close => "the connection is closed in the middle",
            Self::Reset => "the connection is reset",
        })
    }
}

impl Error for Abort {}
