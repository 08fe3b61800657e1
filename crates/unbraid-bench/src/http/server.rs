//! A server of the API on the loopback interface, in its own thread and runtime.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use bytes::Bytes;
use cpu_time::ThreadTime;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Handle},
    sync::oneshot,
};

use crate::{body::Numbered, pace::Pace, stamps::Timestamps};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The answer to every request.
#[derive(Debug, Clone)]
pub(super) enum Script {
    /// Everything immediately. Each item is a chunk of the transfer encoding.
    Whole(Arc<[Bytes]>),
    /// Each event at its time, flushed separately.
    Paced(Arc<[Numbered]>, Timestamps),
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    pub(super) fn start(script: Script) -> io::Result<Self> {
        let (started, starts) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                let _closed = started.send((listener.local_addr()?, Handle::current()));
                tokio::select! {
                    failed = accept(listener, script) => failed,
                    _ = stopped => Ok(()),
                }
            })
        });
        let (address, handle) = starts.recv().map_err(io::Error::other)?;
        Ok(Self {
            address,
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The CPU time that its thread has used so far.
    pub(super) fn cpu(&self) -> io::Result<Duration> {
        let (send, receive) = mpsc::channel();
        self.handle.spawn(async move {
            let _closed = send.send(ThreadTime::now().as_duration());
        });
        receive.recv().map_err(io::Error::other)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

async fn accept(listener: TcpListener, script: Script) -> io::Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(serve(socket, script.clone()));
    }
}

async fn serve(socket: TcpStream, script: Script) {
    // Nagle's algorithm would delay a chunk until the previous one is acknowledged.
    let _slower: io::Result<()> = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let script = script.clone();
        async move { Ok::<_, Infallible>(answer(request, script).await) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    let _closed = connection.await; // clients close the connection after `[DONE]`
}

async fn answer(request: Request<Incoming>, script: Script) -> Response<Body> {
    let is_known =
        request.method() == Method::POST && request.uri().path() == "/v1/chat/completions";
    let _body = request.into_body().collect().await;
    if !is_known {
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let mut response = Response::new(script.body());
    let event_stream = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, event_stream);
    response
}

impl Script {
    fn body(self) -> Body {
        match self {
            Self::Whole(chunks) => {
                let indices = 0..chunks.len();
                let chunks = indices.filter_map(move |index| chunks.get(index).cloned());
                stream_body(stream::iter(chunks))
            }
            Self::Paced(events, timestamps) => {
                let paced = (Pace::start(), 0);
                stream_body(stream::unfold(paced, move |(mut pace, index)| {
                    let (event, timestamps) = (events.get(index).cloned(), timestamps.clone());
                    async move {
                        let event = event?;
                        if let Some(number) = event.number {
                            pace.next().await;
                            timestamps.written(number);
                        }
                        Some((event.bytes, (pace, index + 1)))
                    }
                }))
            }
        }
    }
}

fn stream_body(chunks: impl futures::Stream<Item = Bytes> + Send + 'static) -> Body {
    let frames = chunks.map(|chunk| Ok(Frame::data(chunk)));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}
