//! A server on the loopback interface that streams the scenario.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::{self, Instant},
};

use super::scenario::{self, PATH, Piece};

/// A running server. Dropping it closes its socket and its connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts a server on a port that the system chooses.
    pub(crate) async fn start(speed: f64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self {
            address: listener.local_addr()?,
            accepting: tokio::spawn(accept(listener, speed)),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves whoever connects. The connections end with this task.
async fn accept(listener: TcpListener, speed: f64) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(serve(socket, speed));
    }
}

async fn serve(socket: TcpStream, speed: f64) {
    // Nagle's algorithm would hold small deltas back until the last one is acknowledged.
    let _slower: io::Result<()> = socket.set_nodelay(true);
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, speed)));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // The client hangs up behind `[DONE]`, as clients do.
    let _hung_up: hyper::Result<()> = connection.await;
}

fn answer(request: &Request<Incoming>, speed: f64) -> Response<BoxBody<Bytes, Infallible>> {
    if request.uri().path() != PATH {
        return refusal(StatusCode::NOT_FOUND);
    }
    if request.method() != Method::POST {
        let mut refusal = refusal(StatusCode::METHOD_NOT_ALLOWED);
        let post = HeaderValue::from_static("POST");
        refusal.headers_mut().insert(ALLOW, post);
        return refusal;
    }
    let start = Instant::now();
    let body = stream::iter(scenario::pieces()).then(move |Piece { at, data }| async move {
        time::sleep_until(start + at.div_f64(speed)).await;
        Ok(Frame::data(Bytes::from(data)))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(body)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn refusal(status: StatusCode) -> Response<BoxBody<Bytes, Infallible>> {
    let body = format!("{{\"error\":{{\"message\":\"{status}\"}}}}");
    let mut response = Response::new(Full::from(body).boxed());
    *response.status_mut() = status;
    response
}
