//! One connection, from the handshake to its end.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, task::AtomicWaker};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{
    Request, Response, Version,
    body::Incoming,
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
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::{
    MaybeTls, Tls,
    bare_errors::BareErrors,
    guarded_io::{Deadline, GuardedIo},
    guarded_writes::GuardedWrites,
    kill::{StreamExecutor, with_switch},
    preface,
    request_body::RequestBody,
};
use crate::{
    gateway::GatewayService,
    limits::{
        CLOSE_GRACE, GOAWAY_DELAY, H2_PING, LAST_WRITES, MAX_H2_STREAMS, MAX_HEAD_BYTES,
        MAX_WRITE_BYTES, TLS_TIMEOUT,
    },
    reader::stalls::{Progress, Stalls},
    sync::wake_gate::WakeGate,
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

/// What the socket knows about the requests of its connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests whose responses have not ended.
    active: AtomicUsize,
    /// Requests so far.
    started: AtomicU64,
    is_http2: AtomicBool,
    /// Woken when no request is active any more.
    idle: AtomicWaker,
    /// When that was the last time.
    idle_since: Mutex<Option<Instant>>,
}

impl Activity {
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }

    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Acquire)
    }

    /// For how long no request has been active; `None` if there was none.
    fn idle_for(&self) -> Option<Duration> {
        let since = self.idle_since.lock();
        since
            .unwrap_or_else(PoisonError::into_inner)
            .map(|since| since.elapsed())
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Acquire)
    }
}

/// A request that is being answered, or whose body is being read.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Activity>);

impl ActiveRequest {
    fn new(activity: &Arc<Activity>, version: Version) -> Self {
        if version == Version::HTTP_2 {
            activity.is_http2.store(true, Ordering::Release);
        }
        activity.active.fetch_add(1, Ordering::AcqRel);
        activity.started.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(activity))
    }
}

impl Clone for ActiveRequest {
    fn clone(&self) -> Self {
        self.0.active.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            let since = self.0.idle_since.lock();
            *since.unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.0.idle.wake();
        }
    }
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
        let socket = GuardedWrites::new(socket, self.stall);
        let served = match self.tls.take() {
            None => self.serve_http(socket),
            Some(acceptor) => match Box::pin(self.handshake(acceptor, socket)).await {
                Some(stream) => self.serve_http(stream),
                None => return,
            },
        };
        served.await;
    }

    async fn handshake(
        &self,
        acceptor: TlsAcceptor,
        socket: GuardedWrites<TcpStream>,
    ) -> Option<Tls> {
        let mut drained = self.drained.clone();
        let handshake = timeout(TLS_TIMEOUT, acceptor.accept(socket));
        tokio::select! {
            stream = handshake => stream.ok()?.ok(),
            _ = drained.wait_for(|drained| *drained) => None,
        }
    }

    fn serve_http(
        self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> BoxFuture<'static, ()> {
        let opened = Box::pin(self.open(socket));
        let served = async move {
            if let Some(connection) = opened.await {
                connection.await;
            }
        };
        // A connection that is killed or fails has nobody left to report it to.
        with_switch(Box::pin(served)).map(drop).boxed()
    }

    /// Waits for the first bytes. Returns a future that serves the connection, which is as large as its version needs.
    async fn open(
        self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Option<BoxFuture<'static, ()>> {
        let activity = Arc::new(Activity::default());
        let io = GuardedIo::new(socket, Arc::clone(&activity));
        let Self {
            service,
            stalls,
            max_discarded,
            mut drained,
            ..
        } = self;
        let (is_http2, io) = tokio::select! {
            read = preface::is_http2(io) => read.ok()?,
            _ = drained.wait_for(|drained| *drained) => return None,
        };
        let shutdown = Shutdown::new(is_http2, Arc::clone(&activity), drained);
        let service = service_fn(move |request: Request<Incoming>| {
            let active = ActiveRequest::new(&activity, request.version());
            let request = RequestBody::wrap(request, max_discarded, &active);
            let (answer, stalls) = (service.clone().call(request), stalls.clone());
            async move {
                let response: Response<Body> = answer.await?;
                Ok::<_, Infallible>(response.map(|body| ActiveBody {
                    body,
                    progress: is_http2.then(|| stalls.register()),
                    _active: active,
                }))
            }
        });
        Some(if is_http2 {
            let connection = Box::pin(http2().serve_connection(TokioIo::new(io), service));
            drive(connection, http2::Connection::graceful_shutdown, shutdown).boxed()
        } else {
            let io = TokioIo::new(BareErrors::new(io));
            let connection = Box::pin(http1().serve_connection(io, service));
            drive(connection, http1::Connection::graceful_shutdown, shutdown).boxed()
        })
    }
}

/// Serves a connection to its end. Once the gateway drains, that is the end of the current requests.
async fn drive<C: Future>(
    mut connection: Pin<Box<C>>,
    shut_down: impl Fn(Pin<&mut C>),
    mut shutdown: Shutdown,
) {
    poll_fn(|cx| {
        loop {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if shutdown.is_announced {
                return shutdown.poll_close(cx);
            }
            ready!(shutdown.poll_announce(cx));
            shut_down(connection.as_mut());
        }
    })
    .await;
}

/// When a connection is closed because the gateway drains.
struct Shutdown {
    is_http2: bool,
    activity: Arc<Activity>,
    /// Ready when the gateway drains; `None` once it does.
    drained: Option<BoxFuture<'static, ()>>,
    drained_gate: WakeGate,
    /// Whether the connection takes no further requests.
    is_announced: bool,
    grace: Deadline,
}

impl Shutdown {
    fn new(is_http2: bool, activity: Arc<Activity>, mut drained: watch::Receiver<bool>) -> Self {
        let drained = async move {
            // The server is never dropped before its connections.
            let _drained = drained.wait_for(|drained| *drained).await;
        };
        Self {
            is_http2,
            activity,
            drained: Some(drained.boxed()),
            drained_gate: WakeGate::default(),
            is_announced: false,
            grace: Deadline::default(),
        }
    }

    /// Waits until the connection is to take no further requests.
    ///
    /// Over HTTP/2 that is said by a GOAWAY, after which released clients (h2 for Python, and with it httpx) fail the requests
    /// that are being answered, and those whose ends they read together with it. So it is sent once none has been active for
    /// a moment, and until then new POSTs get 503.
    fn poll_announce(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(drained) = &mut self.drained {
            ready!(self.drained_gate.poll(cx, |cx| drained.as_mut().poll(cx)));
            self.drained = None;
        }
        self.activity.idle.register(cx.waker());
        if self.is_http2 {
            if self.activity.is_active() {
                self.grace.clear();
                return Poll::Pending;
            }
            if let Some(idle) = self.activity.idle_for().filter(|idle| *idle < GOAWAY_DELAY) {
                if !self.grace.is_set() {
                    self.grace.set(GOAWAY_DELAY - idle);
                }
                let _passed = ready!(self.grace.check(cx));
            }
            self.grace.clear();
        }
        self.is_announced = true;
        Poll::Ready(())
    }

    /// Waits until a connection without a request is to be closed that does not end by itself: half a head has arrived, or the
    /// client does not react to a GOAWAY.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.activity.idle.register(cx.waker());
        if self.activity.is_active() {
            self.grace.clear();
            return Poll::Pending;
        }
        if !self.grace.is_set() {
            let grace = match self.activity.idle_for() {
                None => CLOSE_GRACE,
                // A slow client may not have read the end of the last answer.
                Some(idle) if self.is_http2 => LAST_WRITES.saturating_sub(idle).max(CLOSE_GRACE),
                // It ends once everything is written, and a client that does not read it is disconnected.
                Some(_) => return Poll::Pending,
            };
            self.grace.set(grace);
        }
        self.grace.check(cx).map(drop)
    }
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
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(progress) = &self.progress {
            match &polled {
                Poll::Ready(_) => progress.has_written(Instant::now()),
                Poll::Pending => progress.waits(),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
