//! An upstream whose answers are known in advance.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::AbortHandle, time::sleep};

use super::{
    answer::Answer,
    history::{GatewayId, History, Token},
};

/// A running upstream. Dropping it stops it.
#[derive(Debug)]
pub(super) struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    round: Mutex<Option<Round>>,
}

/// The answers of a round, and where its requests are noted.
#[derive(Debug, Clone)]
struct Round {
    answers: Arc<HashMap<u64, Arc<Answer>>>,
    history: Arc<History>,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl Upstream {
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            task: task.abort_handle(),
        })
    }

    /// The base URL for one process of a gateway: it says which one asks.
    pub(super) fn url(&self, gateway: GatewayId) -> String {
        format!(
            "http://{}/{}/{}/v1",
            self.address, gateway.slot, gateway.incarnation
        )
    }

    /// Answers the requests of this round, and notes them in its history.
    pub(super) fn begin(&self, answers: HashMap<u64, Arc<Answer>>, history: Arc<History>) {
        let round = Round {
            answers: Arc::new(answers),
            history,
        };
        *self
            .shared
            .round
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(round);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // An error concerns one connection.
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        let _set = socket.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(respond(request, &shared).await) }
            });
            // A client that leaves is a part of the test.
            let _served = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn respond(request: Request<Incoming>, shared: &Shared) -> Response<Body> {
    let round = shared
        .round
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let producer = producer(request.uri().path());
    let body = request.into_body().collect().await;
    let number = body.ok().and_then(|body| number(&body.to_bytes()));
    let generation = round
        .zip(producer)
        .zip(number)
        .and_then(|((round, producer), number)| {
            let answer = Arc::clone(round.answers.get(&number)?);
            let token = round.history.generation_started(number, producer);
            Some(Generation {
                history: round.history,
                token,
                answer,
                next: 0,
            })
        });
    match generation {
        Some(generation) => {
            let frames = generation.events().map(|bytes| Ok(Frame::data(bytes)));
            let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
            response.headers_mut().insert(
                CONTENT_TYPE,
                hyper::header::HeaderValue::from_static("text/event-stream"),
            );
            response
        }
        None => {
            let mut response = Response::new(http_body_util::Empty::new().boxed_unsync());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    }
}

fn producer(path: &str) -> Option<GatewayId> {
    let mut parts = path.split('/').skip(1).map(str::parse);
    let (Some(Ok(slot)), Some(Ok(incarnation))) = (parts.next(), parts.next()) else {
        return None;
    };
    Some(GatewayId { slot, incarnation })
}

fn number(body: &[u8]) -> Option<u64> {
    let json: Value = serde_json::from_slice(body).ok()?;
    json.pointer("/messages/0/content")?.as_str()?.parse().ok()
}

/// A running answer. Dropping it notes its end, whatever ended it.
struct Generation {
    history: Arc<History>,
    token: Token,
    answer: Arc<Answer>,
    next: usize,
}

impl Generation {
    fn events(self) -> impl Stream<Item = Bytes> {
        stream::unfold(Some(self), |generation| async move {
            let mut generation = generation?;
            let Some(chunk) = generation.answer.chunks.get(generation.next) else {
                return Some(("data: [DONE]\n\n".into(), None));
            };
            if !chunk.pause.is_zero() {
                sleep(chunk.pause).await;
            }
            let event = format!("data: {}\n\n", chunk.data);
            generation.next += 1;
            Some((event.into(), Some(generation)))
        })
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.history
            .generation_ended(self.answer.number, self.token);
    }
}
