//! One connection, from the handshake to its end.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, response::IntoResponse};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{
    Request, Response, Version,
    body::Incoming,
    header::HOST,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
#[cfg(any(target_os = "android", target_os = "linux"))]
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::{
    MaybeTls, Tls,
    activity::{ActiveRequest, Activity},
    bare_errors::BareErrors,
    guarded_io::GuardedIo,
    guarded_writes::GuardedWrites,
    kill::{StreamExecutor, with_switch},
    preface,
    request_body::RequestBody,
    shutdown::{Served, Shutdown},
};
use crate::{
    api_error::ApiError,
    gateway::GatewayService,
    limits::{
        CLOSE_GRACE, H2_PIECE_BYTES, H2_PING, MAX_H2_STREAMS, MAX_HEAD_BYTES, MAX_WRITE_BYTES,
        TLS_TIMEOUT,
    },
    reader::stalls::{Progress, Stalls},
};

/// What a connection needs.
pub(super) struct Connection {
    pub(super) service: GatewayService,
    pub(super) tls: MaybeTls,
    pub(super) stall: Duration,
    pub(super) stalls: Stalls,
    /// Bytes of a request's body that are discarded at most.
    pub(super) max_discarded: usize,
    pub(super) drained: watch::Receiver<bool>,
}

impl Connection {
    /// Serves a connection until it is closed.
    ///
    /// The future has the size of a few pointers. What it contains lies in boxes of their own: a future that is moved into
    /// another one takes its place twice, and most connections are not of the largest kind.
    pub(super) async fn serve(mut self, socket: TcpStream) {
        // Nagle's algorithm would delay each small delta until the previous one is acknowledged.
        let _slower: std::io::Result<()> = socket.set_nodelay(true);
        #[cfg(any(target_os = "android", target_os = "linux"))]
        bound_unsent(&socket);
        // Below TLS, which accepts data that the socket does not.
        let activity = Arc::new(Activity::default());
        let socket = GuardedWrites::new(socket, self.stall, Arc::clone(&activity));
        let opened = match self.tls.take() {
            None => self.open(socket, activity).boxed(),
            Some(acceptor) => match Box::pin(self.handshake(acceptor, socket)).await {
                Some(stream) => self.open(stream, activity).boxed(),
                None => return,
            },
        };
        let Some(connection) = opened.await else {
            return;
        };
        connection.await;
    }

    async fn handshake(
        &self,
        acceptor: TlsAcceptor,
        socket: GuardedWrites<TcpStream>,
    ) -> Option<Tls> {
        let mut drained = self.drained.clone();
        let handshake = timeout(TLS_TIMEOUT, acceptor.accept(socket));
        tokio::select! {
            biased;
            stream = handshake => stream.ok()?.ok(),
            // A client sends its request with the last bytes of the handshake.
            () = end_of_grace(&mut drained) => None,
        }
    }

    /// Waits for the first bytes. Returns a future that serves the connection, which is as large as its version needs.
    async fn open(
        self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        activity: Arc<Activity>,
    ) -> Option<BoxFuture<'static, ()>> {
        let io = GuardedIo::new(socket, Arc::clone(&activity));
        let Self {
            service,
            stalls,
            max_discarded,
            mut drained,
            ..
        } = self;
        let (is_http2, io) = tokio::select! {
            biased;
            read = preface::is_http2(io) => read.ok()?,
            () = end_of_grace(&mut drained) => return None,
        };
        let shutdown = Shutdown::new(is_http2, Arc::clone(&activity));
        let service = service_fn(move |request: Request<Incoming>| {
            let active = ActiveRequest::new(&activity, request.version());
            let has_host = has_one_host(&request);
            let request = RequestBody::wrap(request, max_discarded, &active);
            let (answer, stalls) = (service.clone().call(request), stalls.clone());
            async move {
                let response: Response<Body> = match has_host {
                    true => answer.await?,
                    false => ApiError::INVALID_HTTP.into_response(),
                };
                Ok::<_, Infallible>(response.map(|body| ActiveBody {
                    body,
                    rest: Bytes::new(),
                    progress: is_http2.then(|| stalls.register()),
                    _active: active,
                }))
            }
        });
        Some(if is_http2 {
            let connection = Box::pin(http2().serve_connection(TokioIo::new(io), service));
            let served = Served::new(
                connection,
                |connection| connection.as_mut().graceful_shutdown(),
                shutdown,
                drained,
            );
            with_switch(served).boxed()
        } else {
            let io = TokioIo::new(BareErrors::new(io));
            let connection = http1().serve_connection(io, service);
            let served = Served::new(
                connection,
                |connection| Pin::new(connection).graceful_shutdown(),
                shutdown,
                drained,
            );
            with_switch(served).boxed()
        })
    }
}

/// Waits until a connection that has sent nothing is closed: a while after the drain has begun, in which a request arrives that was
/// sent before.
async fn end_of_grace(drained: &mut watch::Receiver<bool>) {
    // The server is never dropped before its connections.
    drop(drained.wait_for(|drained| *drained).await);
    sleep(CLOSE_GRACE).await;
}

/// Whether a request of HTTP/1.1 has one `Host`, as it must (RFC 9112, section 3.2). The other versions need none.
fn has_one_host(request: &Request<Incoming>) -> bool {
    let hosts = request.headers().get_all(HOST).iter().count();
    request.version() != Version::HTTP_11 || hosts == 1
}

/// Lets a socket accept data again as soon as its peer has read a little.
///
/// Linux queues megabytes for a peer that reads slowly, and calls the socket writable once a third of them has left. Until
/// then a reader that never pauses would look like one that does not read. Bytes that were sent and not acknowledged do not
/// count here, so a fast reader is not slowed down. On other systems a socket is writable once little of it is free.
#[cfg(any(target_os = "android", target_os = "linux"))]
fn bound_unsent(socket: &TcpStream) {
    let bytes = u32::try_from(MAX_WRITE_BYTES).unwrap_or(u32::MAX);
    let _unbounded: std::io::Result<()> = SockRef::from(socket).set_tcp_notsent_lowat(bytes);
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // A client that closes its sending side counts as gone: one that closes its socket looks the same until something is
        // written to it, and its request must end before.
        .half_close(false)
        // The socket has its own timeout for heads, which does not close idle connections.
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD_BYTES)
        // It bounds the memory of a head, which may be twice as much, and the bytes that are queued for a reader.
        .max_buf_size(MAX_HEAD_BYTES.max(MAX_WRITE_BYTES))
        .writev(false);
    builder
}

fn http2() -> http2::Builder<StreamExecutor> {
    let mut builder = http2::Builder::new(StreamExecutor);
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
        .max_send_buf_size(MAX_WRITE_BYTES)
        .max_concurrent_streams(MAX_H2_STREAMS)
        .keep_alive_interval(H2_PING)
        .keep_alive_timeout(H2_PING);
    builder
}

/// A body that counts as an active request until it is dropped.
struct ActiveBody {
    body: Body,
    /// What is left of the last frame.
    rest: Bytes,
    /// Over HTTP/2 one stream can stall while its connection does not. Without it, the socket notices.
    progress: Option<Arc<Progress>>,
    _active: ActiveRequest,
}

impl HttpBody for ActiveBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self {
            body,
            rest,
            progress,
            ..
        } = &mut *self;
        let Some(progress) = progress else {
            return Pin::new(body).poll_frame(cx);
        };
        let polled = if rest.is_empty() {
            let polled = Pin::new(body).poll_frame(cx);
            polled.map_ok(|frame| match frame.into_data() {
                Ok(data) => {
                    *rest = data;
                    next_piece(rest)
                }
                Err(frame) => frame,
            })
        } else {
            Poll::Ready(Some(Ok(next_piece(rest))))
        };
        match &polled {
            Poll::Ready(_) => progress.has_written(Instant::now()),
            Poll::Pending => progress.waits(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

/// The next piece of a frame. A reader that takes a piece has made progress.
fn next_piece(rest: &mut Bytes) -> Frame<Bytes> {
    Frame::data(rest.split_to(rest.len().min(H2_PIECE_BYTES)))
}
