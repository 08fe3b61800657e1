//! Several choices from a provider that gives one: a request for each, joined.

mod first_byte;
mod native;

use std::{ops::Range, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use tokio::{sync::Semaphore, time::Instant};
use unbraid::{BoxError, Builder, Completions, Joiner, Source};

use crate::{
    client::{Client, Inner},
    error::HttpError,
    request::Request,
    send,
};

pub(crate) use native::{Native, refuses_n};

/// How several choices are asked for; see [`Request::choices`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choices {
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
    /// A list of prompts has `n` choices for each, in their order. Nothing tells it from one request of `n` choices, but for the bill: **the prompt is paid `n` times**, and
    /// [`usage`](Completions::usage) adds it up. A `seed` is counted up from choice to choice, for equal seeds would give equal answers. A
    /// request that fails is the error of its choice, with an [`HttpError`] as its cause (see [`HttpError::cause_of`]); retries are made for each.
    /// Cancelling a choice closes its connection. So many requests run at once as
    /// [`ClientBuilder::max_requests`](crate::ClientBuilder::max_requests) allows; the others wait their turn.
    ///
    /// It never fails itself: without a runtime the completion is closed with that error.
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
    /// let first = completions.take_finished(1).await; // the other seven connections are closed
    /// println!("{}", first[0].message.content);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fan_out(&self, request: &Request, n: u32) -> Completions {
        let client = self.inner();
        let prompts = request
            .prompts()
            .len()
            .max(1)
            .try_into()
            .unwrap_or(u32::MAX);
        let settings = send::settings(client, request, &request.body());
        let settings = bounded(settings, client.timeouts.total);
        let settings = first_byte::left_to_source(settings, client.timeouts);
        let (completions, joiner) = settings.joiner();
        add_each(client, request, &joiner, 0..n.saturating_mul(prompts), n);
        completions
    }
}

fn bounded(settings: Builder, total: Option<Duration>) -> Builder {
    match total {
        Some(total) => settings.total_timeout(total),
        None => settings,
    }
}

/// Adds a request of one choice for each index; each prompt has `n` of them.
fn add_each(client: &Arc<Inner>, request: &Request, joiner: &Joiner, indices: Range<u32>, n: u32) {
    let turns = Arc::new(Semaphore::new(client.max_requests));
    for index in indices {
        let source = one(
            Arc::clone(client),
            request.one_choice(index, n),
            Arc::clone(&turns),
        );
        if joiner.add(source, index..index + 1).is_none() {
            return; // nobody wants them any more
        }
    }
}

/// A source that sends its request when it is its turn.
fn one(client: Arc<Inner>, request: Request, turns: Arc<Semaphore>) -> Source {
    let begun = async move {
        let turn = turns.acquire_owned().await;
        let answer = Box::pin(send::answer_to(&client, &request)).await?;
        let body = answer.body().map(move |read| {
            let _held = &turn; // to the end of the body
            read.map_err(BoxError::from)
        });
        Ok::<_, BoxError>(first_byte::within(body, client.timeouts))
    };
    Source::sse(stream::once(begun).try_flatten())
}

/// As the provider may know `n` or not.
pub(crate) async fn auto(
    client: &Arc<Inner>,
    request: &Request,
    n: u32,
) -> Result<Completions, HttpError> {
    let started = Instant::now();
    let client = Arc::clone(client);
    if client.native.is_refused(request.model()) {
        return Ok(Client::from(client).fan_out(request, n));
    }
    let settings = send::settings(&client, request, &request.body());
    let answer = match send::answer_to(&client, request).await {
        Err(HttpError::Status(status)) if refuses_n(&status) => {
            client.native.refused(request.model());
            return Ok(Client::from(client).fan_out(request, n));
        }
        answer => answer?,
    };
    let rest = client
        .timeouts
        .total
        .map(|total| total.saturating_sub(started.elapsed()));
    let settings = first_byte::left_to_source(bounded(settings, rest), client.timeouts);
    let (completions, joiner) = settings.joiner();
    let expected = request.expected_choices().unwrap_or(n);
    let body = first_byte::within(answer.body().map_err(BoxError::from), client.timeouts);
    if let Some(first) = joiner.add(Source::sse(body), 0..expected) {
        let request = request.clone();
        // It ends with the first answer, whose reader ends with the last handle.
        tokio::spawn(async move {
            // Several prompts give several choices, whether or not `n` is known: then nothing can be concluded.
            let one_prompt = request.prompts().len() < 2;
            if first.closed().await.is_ok() && first.choices() == 1 && one_prompt {
                client.native.refused(request.model());
                add_each(&client, &request, &joiner, 1..n, n);
            }
        });
    }
    Ok(completions)
}
