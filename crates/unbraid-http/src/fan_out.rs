//! Several choices from a provider that returns one for each request: one request per choice, merged into one completion.

mod auto;
mod first_response;
mod models;

use std::{ops::Range, sync::Arc, task::Poll};

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Url;
use tokio::{sync::Semaphore, time::sleep_until};
use unbraid::{BoxError, Completions, Source, SourceSet, StreamError};

use self::{
    first_response::{FirstResponse, Reports, RequestReport},
    models::SingleChoiceModels,
};
use crate::{
    error::HttpError,
    limits::MAX_FAN_OUT,
    request::{Request, encode::FanOutBodies},
    send::{
        Sender, check_runtime,
        outgoing::Outgoing,
        timeouts::{Deadline, with_deadline},
    },
};

/// Sends requests for several choices.
pub(crate) struct FanOut {
    pub(crate) sender: Sender,
    max_requests: usize,
    single_choice_models: SingleChoiceModels,
}

impl FanOut {
    pub(crate) fn new(sender: Sender, max_requests: usize) -> Self {
        Self {
            sender,
            max_requests,
            single_choice_models: SingleChoiceModels::default(),
        }
    }

    /// Starts one request for each choice, and waits for none.
    pub(crate) fn start(self: &Arc<Self>, request: &Request, n: u32) -> Completions {
        let deadline = self.sender.timeouts.deadline();
        match self.start_requests(request, n, deadline) {
            Ok((completions, _)) => completions,
            // A completion without choices that is closed with this error.
            Err(error) => Completions::from_byte_stream(stream::iter([Err::<Vec<u8>, _>(error)])),
        }
    }

    /// Starts one request for each choice, and waits until the first response has begun or every request has failed.
    pub(crate) async fn send_each(
        self: &Arc<Self>,
        request: &Request,
        n: u32,
    ) -> Result<Completions, HttpError> {
        let deadline = self.sender.timeouts.deadline();
        self.start_and_wait(request, n, deadline).await
    }

    async fn start_and_wait(
        self: &Arc<Self>,
        request: &Request,
        n: u32,
        deadline: Option<Deadline>,
    ) -> Result<Completions, HttpError> {
        check_runtime()?;
        let (completions, first_response) = self.start_requests(request, n, deadline)?;
        first_response.wait(&completions).await?;
        Ok(completions)
    }

    fn start_requests(
        self: &Arc<Self>,
        request: &Request,
        n: u32,
        deadline: Option<Deadline>,
    ) -> Result<(Completions, FirstResponse), HttpError> {
        let requests = count_requests(request, n)?;
        // How many choices each response may have follows from its range of indices. To expect one choice would fold the
        // indices of each response into one, which only the caller's own configuration may ask for.
        let config = self.sender.config_for(request);
        let config = with_deadline(config, deadline);
        let requests = SingleChoiceRequests::new(self, request, n, 0..requests, deadline)?;
        let (completions, source_set) = config.source_set();
        let (reports, first_response) = first_response::channel();
        requests.add_to(&source_set, &reports);
        Ok((completions, first_response))
    }
}

/// Returns how many requests a fan-out needs.
fn count_requests(request: &Request, n: u32) -> Result<u32, HttpError> {
    let prompts = request.prompts().len().max(1) as u64;
    let requested = prompts.saturating_mul(n.into());
    match u32::try_from(requested) {
        Ok(requests) if requests <= MAX_FAN_OUT => Ok(requests),
        _ => Err(HttpError::TooManyChoices {
            requested,
            max: MAX_FAN_OUT,
        }),
    }
}

/// Requests for one choice each.
struct SingleChoiceRequests {
    fan_out: Arc<FanOut>,
    url: Url,
    bodies: FanOutBodies,
    indices: Range<u32>,
    /// When all of them have to be over, those that have to wait for their turn included.
    deadline: Option<Deadline>,
}

impl SingleChoiceRequests {
    fn new(
        fan_out: &Arc<FanOut>,
        request: &Request,
        n: u32,
        indices: Range<u32>,
        deadline: Option<Deadline>,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            fan_out: Arc::clone(fan_out),
            url: fan_out.sender.url(request),
            bodies: request.encode_fan_out(fan_out.sender.provider(), n)?,
            indices,
            deadline,
        })
    }

    fn add_to(self, source_set: &SourceSet, reports: &Reports) {
        let permits = Arc::new(Semaphore::new(self.fan_out.max_requests));
        for index in self.indices {
            let outgoing = Outgoing::segments(self.url.clone(), self.bodies.body(index));
            let fan_out = Arc::clone(&self.fan_out);
            let report = reports.of(index);
            let body = body(fan_out, outgoing, Arc::clone(&permits), report);
            let source = Source::from_byte_stream(until(self.deadline, body));
            if source_set.add(source, index..index + 1).is_none() {
                return; // every handle was dropped, or the completion was cancelled
            }
        }
    }
}

/// A body that sends its request once it has a permit, and holds the permit until it ends.
fn body(
    fan_out: Arc<FanOut>,
    outgoing: Outgoing,
    permits: Arc<Semaphore>,
    report: RequestReport,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let response = async move {
        let permit = permits.acquire_owned().await;
        let response = Box::pin(fan_out.sender.send(&outgoing)).await;
        report.send(response.as_ref().err());
        let body = response?.bytes.map(move |read| {
            let _held = &permit;
            read
        });
        Ok::<_, BoxError>(body)
    };
    stream::once(response).try_flatten()
}

/// A body that fails at a deadline. The timeout of the completion does not do for requests that are added to it later.
fn until(
    deadline: Option<Deadline>,
    body: impl Stream<Item = Result<Bytes, BoxError>> + Send,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let mut body = Box::pin(body);
    let mut timer = None;
    stream::poll_fn(move |cx| {
        if let Some(deadline) = deadline
            && let Some(at) = deadline.at()
        {
            // Not before the first poll, which is within a runtime.
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if timer.as_mut().poll(cx).is_ready() {
                let error = StreamError::TimedOut(deadline.timed_out());
                return Poll::Ready(Some(Err(error.into())));
            }
        }
        body.as_mut().poll_next(cx)
    })
}

#[cfg(test)]
mod tests;
