//! One request: its attempts until an answer begins.
//!
//! Nothing here sees the body of a success. Once an answer has begun, no further attempt is made: it would be billed again.

mod nack;
mod outgoing;

use std::{
    panic::catch_unwind,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use reqwest::Response;
use tokio::time::{Instant, sleep, timeout};
use unbraid::{CompletionsBuilder, TimedOut, Timeout};

pub(crate) use self::outgoing::Outgoing;
use crate::{
    body::Body,
    client::Inner,
    error::HttpError,
    limits::{FIRST_PAUSE, MAX_PAUSE, MAX_RETRY_AFTER},
    request::Request,
    response::Answer,
    status::StatusError,
};

/// Sends a request and gives its body once an answer has begun.
pub(crate) async fn open(client: &Inner, request: &Request) -> Result<Body, HttpError> {
    let settings = settings(client, request);
    let outgoing = Outgoing::whole(request.kind(), request.encode());
    can_wait()?; // before the clock is asked
    let started = Instant::now();
    let answer = answer_to(client, &outgoing).await?;
    // The body has what is left of it.
    let settings = match client.timeouts.total {
        Some(total) => settings.total_timeout(total.saturating_sub(started.elapsed())),
        None => settings,
    };
    Ok(Body::new(answer, settings, client.secrets.redaction()))
}

/// Sends a request until an answer has begun.
pub(crate) async fn answer_to(client: &Inner, outgoing: &Outgoing) -> Result<Answer, HttpError> {
    can_wait()?;
    let work = attempts(client, outgoing);
    match client.timeouts.total {
        Some(after) => {
            let timeout = Timeout::Total;
            within(TimedOut::new(timeout, after), work).await
        }
        None => work.await,
    }
}

/// Whether this thread has a runtime, and timers: without them reqwest would panic.
pub(crate) fn can_wait() -> Result<(), HttpError> {
    tokio::runtime::Handle::try_current().map_err(|_| HttpError::NoRuntime)?;
    // Nobody can be asked, see design note 005; the attempt is caught.
    catch_unwind(|| drop(sleep(Duration::ZERO))).map_err(|_| HttpError::NoTimeDriver)
}

/// How the stream of one request is read: the one place where a stream learns what was asked.
pub(crate) fn settings(client: &Inner, request: &Request) -> CompletionsBuilder {
    let settings = client.settings.clone().request(&request.body());
    match request.expected_choices() {
        Some(n) => settings.expect_choices(n),
        None => settings,
    }
}

async fn within<T>(
    passed: TimedOut,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    timeout(passed.after, work)
        .await
        .map_err(|_| HttpError::TimedOut(passed))?
}

/// Attempts until one succeeds, or is refused for good, or none are left.
async fn attempts(client: &Inner, outgoing: &Outgoing) -> Result<Answer, HttpError> {
    let url = client.endpoint.url(outgoing.kind);
    let made = AtomicU32::new(0);
    let pauses = ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .with_max_times(client.retries as usize)
        .with_jitter();
    (|| {
        let attempt = made.fetch_add(1, Ordering::Relaxed) + 1;
        let sent = client.http.post(url.clone()).body(outgoing.body());
        answer(client, sent, attempt)
    })
    .retry(pauses)
    .when(may_pass)
    .adjust(pause)
    .notify(|error, pause| {
        tracing::debug!(reason = error.as_str(), ?pause, "another attempt follows");
    })
    .await
}

/// One attempt: a success, or why not.
async fn answer(
    client: &Inner,
    request: reqwest::RequestBuilder,
    attempt: u32,
) -> Result<Answer, HttpError> {
    let head = async { request.send().await.map_err(HttpError::unanswered) };
    let wait = client.timeouts.first_byte();
    let response = within(wait, head).await?;
    log_head(&response, attempt);
    let answer = Answer::of(response, &client.secrets, attempt).await?;
    Ok(answer.with_first_byte(wait))
}

fn log_head(response: &Response, attempt: u32) {
    tracing::debug!(
        status = response.status().as_u16(),
        attempt,
        version = ?response.version(),
        "answer begins"
    );
}

/// Whether another attempt may be answered otherwise, and cannot be a second answer.
fn may_pass(error: &HttpError) -> bool {
    match error {
        HttpError::Connect { .. } => true,
        HttpError::Status(refused) => refused.is_passing(),
        // A server that was reached may be at work on it, unless it says that it is not.
        HttpError::Transport { source, .. } => nack::is_refusal(&**source),
        HttpError::TimedOut(_) => false,
        HttpError::Build(_)
        | HttpError::Request(_)
        | HttpError::NoRuntime
        | HttpError::NoTimeDriver
        | HttpError::TooManyChoices { .. }
        | HttpError::UnexpectedHtml(_)
        | HttpError::Tls { .. } => false,
    }
}

/// How long to pause before another attempt, if one is left.
fn pause(error: &HttpError, ours: Option<Duration>) -> Option<Duration> {
    let requested = error.status_error().and_then(StatusError::retry_after);
    both(requested.unwrap_or_default(), ours?)
}

/// The pause that the server asks for on top of our own, whose jitter separates clients that were given the same one.
fn both(requested: Duration, ours: Duration) -> Option<Duration> {
    (requested <= MAX_RETRY_AFTER).then(|| requested + ours)
}

#[cfg(test)]
mod tests;
