//! One request for each choice.

use std::{future::poll_fn, sync::Arc, task::Poll};

use axum::http::{HeaderMap, header::CONTENT_ENCODING};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use tokio::{sync::Semaphore, time::timeout};
use unbraid_core::{ChoiceIndex, ServerError, StreamError, TimedOut, Timeout, TransportError};

use super::{
    BufferedAnswer, Launch, Launched, WholeAnswer,
    whole::{Kind, as_stream, distinguish, one_read},
};
use crate::{
    api_error::ApiError,
    bodies::BodyMemory,
    generation::{PartSource, Started, StartedPart},
    limits::MAX_FAN_OUT_REQUESTS,
    upstream::{Answer, ByteStream},
};

/// A request of its own for one choice, and why it has no answer.
type SingleAnswer = Result<(HeaderMap, ByteStream), Refusal>;

enum Refusal {
    Answer(Box<BufferedAnswer>),
    Gateway(ApiError),
}

/// How many requests of one fan-out may run at once.
pub(super) fn permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_FAN_OUT_REQUESTS))
}

/// A request that was sent, or its result.
enum Single {
    Pending(BoxFuture<'static, SingleAnswer>),
    Answered(ByteStream),
    Refused(StreamError),
    /// The choice was cancelled.
    Dropped,
}

/// Sends a request for each choice, and waits until one answer has begun or all were refused. Then the first refusal is the
/// answer.
pub(super) async fn send_singles(launch: &Launch) -> Result<Launched, ApiError> {
    let permits = permits();
    let indices = 0..launch.request.choices();
    let mut singles: Vec<Single> = indices
        .map(|index| Single::Pending(launch.send_single(ChoiceIndex(index), &permits).boxed()))
        .collect();
    let mut first_refusal = None;
    launch.dropped.set_singles();
    let headers = poll_fn(|cx| {
        launch.dropped.register(cx.waker());
        let mut is_pending = false;
        for (single, index) in singles.iter_mut().zip(0..) {
            let Single::Pending(answer) = single else {
                continue;
            };
            if launch.dropped.contains(ChoiceIndex(index)) {
                *single = Single::Dropped;
                continue;
            }
            match answer.as_mut().poll(cx) {
                Poll::Pending => is_pending = true,
                Poll::Ready(Ok((headers, body))) => {
                    *single = Single::Answered(body);
                    return Poll::Ready(Some(headers));
                }
                Poll::Ready(Err(refusal)) => {
                    *single = Single::Refused(stream_error(&refusal));
                    first_refusal.get_or_insert(refusal);
                }
            }
        }
        if is_pending {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    })
    .await;
    let Some(headers) = headers else {
        return match first_refusal {
            Some(Refusal::Answer(whole)) => Ok(Launched::Whole((*whole).into())),
            Some(Refusal::Gateway(error)) => Err(error),
            None => Err(ApiError::UPSTREAM_INVALID), // no choice was requested
        };
    };
    let parts = singles
        .into_iter()
        .zip(0..)
        .map(|(single, index)| StartedPart {
            source: single.into_source(),
            choice: Some(ChoiceIndex(index)),
        });
    let started = Started {
        parts: parts.collect(),
        singles: None,
    };
    Ok(Launched::Stream { headers, started })
}

impl Single {
    fn into_source(self) -> PartSource {
        match self {
            Self::Pending(answer) => PartSource::Waiting(body(answer).boxed()),
            Self::Answered(body) => PartSource::Open(body),
            Self::Refused(error) => PartSource::Waiting(std::future::ready(Err(error)).boxed()),
            Self::Dropped => PartSource::Closed,
        }
    }
}

async fn body(answer: BoxFuture<'static, SingleAnswer>) -> Result<ByteStream, StreamError> {
    match answer.await {
        Ok((_, body)) => Ok(body),
        Err(refusal) => Err(stream_error(&refusal)),
    }
}

impl Launch {
    /// The source of a choice that the first answer did not have.
    pub(super) fn single(&self, choice: ChoiceIndex, permits: &Arc<Semaphore>) -> PartSource {
        PartSource::Waiting(body(self.send_single(choice, permits).boxed()).boxed())
    }

    fn send_single(
        &self,
        choice: ChoiceIndex,
        permits: &Arc<Semaphore>,
    ) -> impl Future<Output = SingleAnswer> + Send + 'static {
        let (launch, permits) = (self.clone(), Arc::clone(permits));
        async move {
            // The permit is held until the body ends. The semaphore is never closed.
            let permit = permits.acquire_owned().await;
            let answer = launch.send_one(choice).await?;
            let (headers, body) = single_body(answer, launch.request.memory())
                .await
                .map_err(Refusal::Gateway)?;
            let body = body.map(move |read| {
                let _held = &permit;
                read
            });
            Ok((headers, body.boxed()))
        }
    }

    /// Sends the request for one choice, and once more if the upstream refuses the field that asks for usage.
    async fn send_one(&self, choice: ChoiceIndex) -> Result<Answer, Refusal> {
        loop {
            let asks_usage = self.request.adds_usage();
            let body = self.request.single_body(choice.0);
            let body = timeout(self.upstream.first_byte_timeout(), body).await;
            let body = body.map_err(|_elapsed| Refusal::Gateway(ApiError::OUT_OF_MEMORY))?;
            // The body is dropped once it is sent: others may wait for its memory.
            let answer = self.upstream.send(&self.outgoing(body)).await;
            let answer = answer.map_err(Refusal::Gateway)?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            let whole = WholeAnswer::of(answer)
                .buffered(self.request.memory())
                .await;
            let whole = whole.map_err(Refusal::Gateway)?;
            if !(asks_usage && self.drops_usage(&whole)) {
                return Err(Refusal::Answer(Box::new(whole)));
            }
        }
    }
}

/// The body of an answer as an event stream, also if the provider does not stream.
async fn single_body(
    answer: Answer,
    memory: &BodyMemory,
) -> Result<(HeaderMap, ByteStream), ApiError> {
    if answer.has_unknown_encoding() {
        return Err(ApiError::UPSTREAM_ENCODING);
    }
    let mut headers = answer.headers.clone();
    headers.remove(CONTENT_ENCODING);
    if answer.is_content_type("text/event-stream") {
        return Ok((headers, answer.into_decoded()));
    }
    match distinguish(answer).await? {
        Kind::Stream(body) => Ok((headers, body)),
        Kind::Json(whole) => {
            let whole = whole.buffered(memory).await?;
            // Anything but a completion is an error of the provider, which the core reads.
            let body = as_stream(&whole.body).unwrap_or(whole.body);
            Ok((whole.headers, one_read(body)))
        }
    }
}

fn stream_error(refusal: &Refusal) -> StreamError {
    match refusal {
        Refusal::Answer(whole) => {
            // With the status of the response, which its body need not name.
            let error = whole.refused_error();
            StreamError::Server(Arc::new(ServerError::new(&error.0, 0)))
        }
        Refusal::Gateway(ApiError::UPSTREAM_TIMEOUT) => {
            StreamError::TimedOut(TimedOut::new(Timeout::FirstByte, std::time::Duration::ZERO))
        }
        Refusal::Gateway(error) => {
            StreamError::Transport(Arc::new(TransportError::new(0, error.code)))
        }
    }
}
