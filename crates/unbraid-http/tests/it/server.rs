//! A server on the loopback interface with the responses of a test, which records the requests.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    header::CONTENT_TYPE,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{TlsAcceptor, rustls::crypto::ring};
use unbraid_http::{Client, ClientBuilder};
use unbraid_testkit::script::{DONE, Script, content, finish};

pub(crate) type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A running server. Dropping it closes its socket and its connections.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    log: Arc<RequestLog>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct RequestLog {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request<Bytes>>>,
}

/// Returns the response to the request with an ordinal, from 0.
type Replies = dyn Fn(usize) -> Reply + Send + Sync;

impl Server {
    /// Starts a server of HTTP/1.1 and HTTP/2. The client chooses the version.
    pub(crate) async fn start(replies: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::accept(None, Arc::new(replies)).await
    }

    /// Starts the same server with TLS.
    pub(crate) async fn tls(
        acceptor: TlsAcceptor,
        replies: impl Fn(usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::accept(Some(acceptor), Arc::new(replies)).await
    }

    /// Starts a server that passes each connection to a function, which may violate HTTP.
    pub(crate) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (listener, address) = listen().await;
        let log = Arc::new(RequestLog::default());
        let counted = Arc::clone(&log);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                counted.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(socket));
            }
        });
        Self {
            address,
            scheme: "http",
            log,
            accepting,
        }
    }

    async fn accept(tls: Option<TlsAcceptor>, replies: Arc<Replies>) -> Self {
        let (listener, address) = listen().await;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let log = Arc::new(RequestLog::default());
        let shared = Arc::clone(&log);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                socket.set_nodelay(true).unwrap();
                let (log, replies) = (Arc::clone(&shared), Arc::clone(&replies));
                match tls.clone() {
                    None => connections.spawn(serve(socket, log, replies)),
                    Some(tls) => connections.spawn(async move {
                        if let Ok(socket) = tls.accept(socket).await {
                            serve(socket, log, replies).await;
                        }
                    }),
                };
            }
        });
        Self {
            address,
            scheme,
            log,
            accepting,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn base_url(&self) -> String {
        format!("{}://{}/v1", self.scheme, self.address)
    }

    /// A client for this server, without the proxies of the environment.
    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder()
            .base_url(self.base_url())
            .proxy_from_env(false)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request<Bytes>> {
        self.log.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A port that refuses connections until the socket listens, and that no other process can use.
pub(crate) fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin + 'static,
    log: Arc<RequestLog>,
    replies: Arc<Replies>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (log, replies) = (Arc::clone(&log), Arc::clone(&replies));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let ordinal = {
                let mut requests = log.requests.lock().unwrap();
                requests.push(Request::from_parts(head, body));
                requests.len() - 1
            };
            Ok::<_, Infallible>(replies(ordinal))
        }
    });
    let connection = auto::Builder::new(TokioExecutor::new());
    let connection = connection.serve_connection(TokioIo::new(socket), service);
    // Tests close connections and break bodies on purpose.
    let _broken = connection.await;
}

/// The reqwest client of an application.
pub(crate) fn own_client() -> reqwest::Client {
    // Other tests of this process may have installed the same provider before.
    let _installed = ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Reads one HTTP/1.1 request, so that a raw server can respond to it.
pub(crate) async fn read_request(socket: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return request;
            }
        }
        if socket.read_buf(&mut request).await.unwrap() == 0 {
            return request;
        }
    }
}

/// The head of an HTTP/1.1 stream, for a raw server.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of such a stream.
pub(crate) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// A response with a body of known length.
pub(crate) fn full(status: u16, kind: &str, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never| match never {});
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(UnsyncBoxBody::new(body))
        .unwrap()
}

/// An event stream with the steps of a script.
pub(crate) fn stream(script: Script) -> Reply {
    frames(script)
}

/// An event stream with the items of any stream.
pub(crate) fn frames(
    reads: impl Stream<Item = io::Result<impl AsRef<[u8]>>> + Send + 'static,
) -> Reply {
    let frames = reads.map(|read| Ok(Frame::data(Bytes::copy_from_slice(read?.as_ref()))));
    Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .body(UnsyncBoxBody::new(StreamBody::new(frames)))
        .unwrap()
}

/// A stream of two complete choices, `one` and `two`.
pub(crate) fn two_choices() -> String {
    [
        content(0, "o"),
        content(1, "two"),
        content(0, "ne"),
        finish(1, "stop"),
        finish(0, "stop"),
        DONE.to_owned(),
    ]
    .concat()
}

/// A response with these two choices.
pub(crate) fn two_choices_reply() -> Reply {
    full(200, "text/event-stream", two_choices())
}
