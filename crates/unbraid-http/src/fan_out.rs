//! Several choices from a provider that gives one: a request for each, joined.

mod native;
mod starts;

use std::{ops::Range, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use tokio::{sync::Semaphore, time::Instant};
use unbraid::{BoxError, Completions, CompletionsBuilder, Source, SourceSet};

use self::starts::{Starts, Waiting};
use crate::{
    client::{Client, Inner},
    error::HttpError,
    limits::MAX_FAN_OUT,
    request::{EachChoice, Kind, Request},
    send::{self, Outgoing},
};

pub(crate) use native::{Native, refuses_n};

/// How several choices are asked for; see [`Request::choice_strategy`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChoiceStrategy {
    /// By `n`: one request, one prompt on the bill, and the provider has to know `n`.
    #[default]
    Native,
    /// By one request a choice, as [`Client::fan_out`] sends them: any provider will do, and the prompt is billed for each.
    FanOut,
    /// By `n` where the provider gives as many, else by further requests.
    ///
    /// The provider is asked by `n` first. If it refuses that, every choice is requested on its own. If it ignores it, and
    /// its answer ends with one choice only, the missing ones are requested then. The client remembers either for the
    /// model, and asks no more by `n`.
    Auto,
}

impl Client {
    /// Sends `n` requests of one choice each, and gives them as one completion with `n` choices.
    ///
    /// If a server gives several choices for one of the requests, the first of them counts and the others are refused with a
    /// warning (E11). Their indices are read as one choice (E12) only by
    /// [`expect_choices(1)`](Builder::expect_choices) in the [`stream_config`](crate::ClientBuilder::stream_config).
    ///
    /// A list of prompts has `n` choices for each, in their order. Nothing tells it from one request of `n` choices, but for the bill: **the prompt is paid `n` times**, and
    /// [`usage`](Completions::usage) adds it up. A `seed` is counted up from choice to choice, for equal seeds would give equal answers. A
    /// request that fails is the error of its choice, with an [`HttpError`] as its cause (see [`HttpError::find_in`]); retries are made for each.
    /// Cancelling a choice closes its connection. So many requests run at once as
    /// [`ClientBuilder::max_requests`](crate::ClientBuilder::max_requests) allows; the others wait their turn.
    ///
    /// It waits for nothing and never fails itself. Without a runtime, or with more requests than
    /// [`MAX_FAN_OUT`](crate::limits::MAX_FAN_OUT), the completion is closed with that error. [`send`](Self::send) with
    /// [`ChoiceStrategy::FanOut`] waits for the first answer instead, and gives the error of a fan-out that is refused as a whole.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::from_env()?;
    /// let completions = client.fan_out(&Request::chat("a-model-without-n").user("Name a colour."), 8);
    /// let first = completions.first_finished(1).await; // the other seven connections are closed
    /// println!("{}", first[0].message.content);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fan_out(&self, request: &Request, n: u32) -> Completions {
        let started = start(self.inner(), request, n);
        started.map_or_else(failed, |(completions, _)| completions)
    }
}

/// A completion that is closed with this error, and has no choices.
fn failed(error: HttpError) -> Completions {
    Completions::from_byte_stream(stream::iter([Err::<Vec<u8>, _>(error)]))
}

/// Sends the requests of a fan-out, and waits until the first of their answers has begun or all of them have failed.
pub(crate) async fn begun(
    client: &Arc<Inner>,
    request: &Request,
    n: u32,
) -> Result<Completions, HttpError> {
    send::can_wait()?;
    let (completions, waiting) = start(client, request, n)?;
    waiting.first(&completions).await?;
    Ok(completions)
}

/// Starts a request of one choice for each choice.
fn start(
    client: &Arc<Inner>,
    request: &Request,
    n: u32,
) -> Result<(Completions, Waiting), HttpError> {
    let requests = count(request, n)?;
    let settings = bounded(settings(client, request), client.timeouts.total);
    let (completions, source_set) = settings.source_set();
    let (starts, waiting) = starts::channel();
    let requests = Requests {
        client: Arc::clone(client),
        kind: request.kind(),
        bodies: request.encode_each_choice(n),
        indices: 0..requests,
    };
    requests.add_to(&source_set, &starts);
    Ok((completions, waiting))
}

/// How many requests a fan-out takes.
fn count(request: &Request, n: u32) -> Result<u32, HttpError> {
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

/// How the answers are read. How many choices each may have follows from its indices; that only one is expected would fold
/// the indices of each (E12), so that the client's own settings decide that.
fn settings(client: &Inner, request: &Request) -> CompletionsBuilder {
    client.settings.clone().request(&request.body())
}

fn bounded(settings: CompletionsBuilder, total: Option<Duration>) -> CompletionsBuilder {
    match total {
        Some(total) => settings.total_timeout(total),
        None => settings,
    }
}

/// Requests of one choice each.
struct Requests {
    client: Arc<Inner>,
    kind: Kind,
    bodies: EachChoice,
    indices: Range<u32>,
}

impl Requests {
    fn add_to(self, source_set: &SourceSet, starts: &Starts) {
        let turns = Arc::new(Semaphore::new(self.client.max_requests));
        for index in self.indices {
            let outgoing = Outgoing::parts(self.kind, self.bodies.of(index));
            let client = Arc::clone(&self.client);
            let source = one(client, outgoing, Arc::clone(&turns), starts.of(index));
            if source_set.add(source, index..index + 1).is_none() {
                return; // every handle is gone, or the completion was cancelled
            }
        }
    }
}

/// A source that sends its request when it is its turn.
fn one(
    client: Arc<Inner>,
    outgoing: Outgoing,
    turns: Arc<Semaphore>,
    start: starts::Start,
) -> Source {
    let begun = async move {
        let turn = turns.acquire_owned().await;
        let answer = Box::pin(send::answer_to(&client, &outgoing)).await;
        start.report(answer.as_ref().err());
        let body = answer?.body().map(move |read| {
            let _held = &turn; // to the end of the body
            read
        });
        Ok::<_, BoxError>(body)
    };
    Source::from_byte_stream(stream::once(begun).try_flatten())
}

/// As the provider may know `n` or not.
pub(crate) async fn auto(
    client: &Arc<Inner>,
    request: &Request,
    n: u32,
) -> Result<Completions, HttpError> {
    count(request, n)?; // before the first request, which may be billed
    let started = Instant::now();
    if client.native.is_refused(request.model()) {
        return begun(client, request, n).await;
    }
    let settings = settings(client, request);
    let outgoing = Outgoing::whole(request.kind(), request.encode());
    let answer = match send::answer_to(client, &outgoing).await {
        Err(HttpError::Status(status)) if refuses_n(&status) => {
            client.native.refused(request.model());
            return begun(client, request, n).await;
        }
        answer => answer?,
    };
    let rest = client
        .timeouts
        .total
        .map(|total| total.saturating_sub(started.elapsed()));
    let (completions, source_set) = bounded(settings, rest).source_set();
    let expected = request.expected_choices().unwrap_or(n);
    let Some(first) = source_set.add(Source::from_byte_stream(answer.body()), 0..expected) else {
        return Ok(completions);
    };
    // Several prompts give several choices, whether or not `n` is known: then nothing can be concluded.
    if request.prompts().len() < 2 {
        let model = request.model().to_owned();
        let missing = Requests {
            client: Arc::clone(client),
            kind: request.kind(),
            bodies: request.encode_each_choice(n),
            indices: 1..n,
        };
        // It ends with the first answer, whose reader ends with the last handle.
        tokio::spawn(async move {
            if first.closed().await.is_ok() && first.choices() == 1 {
                missing.client.native.refused(&model);
                missing.add_to(&source_set, &starts::channel().0);
            }
        });
    }
    Ok(completions)
}

#[cfg(test)]
mod tests;
