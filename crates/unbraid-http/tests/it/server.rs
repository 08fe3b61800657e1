//! A server on the loopback interface that answers as a test says, and counts.

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

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A running server; dropping it closes its socket and its connections.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request<Bytes>>>,
}

/// Gives the answer to the request of an ordinal, from 0.
type Answers = dyn Fn(usize) -> Answer + Send + Sync;

impl Server {
    /// Speaks HTTP/1.1 and HTTP/2, whichever the client begins with.
    pub(crate) async fn start(answers: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::accept(None, Arc::new(answers)).await
    }

    /// The same over TLS.
    pub(crate) async fn tls(
        acceptor: TlsAcceptor,
        answers: impl Fn(usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::accept(Some(acceptor), Arc::new(answers)).await
    }

    /// Gives each connection to a function, for what HTTP does not allow.
    pub(crate) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (listener, address) = listen().await;
        let seen = Arc::new(Seen::default());
        let counted = Arc::clone(&seen);
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
            seen,
            accepting,
        }
    }

    async fn accept(tls: Option<TlsAcceptor>, answers: Arc<Answers>) -> Self {
        let (listener, address) = listen().await;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                socket.set_nodelay(true).unwrap();
                let (seen, answers) = (Arc::clone(&shared), Arc::clone(&answers));
                match tls.clone() {
                    None => connections.spawn(serve(socket, seen, answers)),
                    Some(tls) => connections.spawn(async move {
                        if let Ok(socket) = tls.accept(socket).await {
                            serve(socket, seen, answers).await;
                        }
                    }),
                };
            }
        });
        Self {
            address,
            scheme,
            seen,
            accepting,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn base_url(&self) -> String {
        format!("{}://{}/v1", self.scheme, self.address)
    }

    /// A client for this server, which no proxy of the machine comes between.
    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder()
            .base_url(self.base_url())
            .proxy_from_env(false)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request<Bytes>> {
        self.seen.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A port that refuses connections for as long as the socket does not listen, and that nobody else gets.
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
    seen: Arc<Seen>,
    answers: Arc<Answers>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let ordinal = {
                let mut requests = seen.requests.lock().unwrap();
                requests.push(Request::from_parts(head, body));
                requests.len() - 1
            };
            Ok::<_, Infallible>(answers(ordinal))
        }
    });
    let connection = auto::Builder::new(TokioExecutor::new());
    let connection = connection.serve_connection(TokioIo::new(socket), service);
    // Clients hang up, and bodies break, on purpose.
    let _broken = connection.await;
}

/// A client as an application has one of its own.
pub(crate) fn own_client() -> reqwest::Client {
    // An application has chosen a provider of TLS; whether this one or one before it does not matter.
    let _chosen = ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Reads one request of HTTP/1.1, so that a raw server may answer it.
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

/// The head of a stream in HTTP/1.1, for a raw server.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One piece of such a stream.
pub(crate) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// An answer with a body of known length.
pub(crate) fn full(status: u16, kind: &str, body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into()).map_err(|never| match never {});
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(UnsyncBoxBody::new(body))
        .unwrap()
}

/// An event stream, piece by piece.
pub(crate) fn stream(script: Script) -> Answer {
    frames(script)
}

/// The same of any source.
pub(crate) fn frames(
    reads: impl Stream<Item = io::Result<impl AsRef<[u8]>>> + Send + 'static,
) -> Answer {
    let frames = reads.map(|read| Ok(Frame::data(Bytes::copy_from_slice(read?.as_ref()))));
    Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .body(UnsyncBoxBody::new(StreamBody::new(frames)))
        .unwrap()
}

/// Two whole choices: `one` and `two`.
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

/// These, as an event stream.
pub(crate) fn two_choices_answer() -> Answer {
    full(200, "text/event-stream", two_choices())
}
