//! One request: its attempts until an answer begins.
//!
//! Nothing here sees the body of a success. Once an answer has begun, no further attempt is made: it would be billed again.

use std::{
    panic::catch_unwind,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use unbraid::{Builder, TimedOut, Timeout};

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
    let settings = settings(client, request, &request.body());
    can_wait()?; // before the clock is asked
    let started = Instant::now();
    let answer = answer_to(client, request).await?;
    // The body has what is left of it.
    let settings = match client.timeouts.total {
        Some(total) => settings.total_timeout(total.saturating_sub(started.elapsed())),
        None => settings,
    };
    Ok(Body::new(answer, settings))
}

/// Sends a request until an answer has begun.
pub(crate) async fn answer_to(client: &Inner, request: &Request) -> Result<Answer, HttpError> {
    can_wait()?;
    let body = request.body();
    let work = attempts(client, request, &body);
    match client.timeouts.total {
        Some(total) => within(total, Timeout::Total, work).await,
        None => work.await,
    }
}

/// Whether this thread has a runtime, and timers: without them reqwest would panic.
fn can_wait() -> Result<(), HttpError> {
    tokio::runtime::Handle::try_current().map_err(|_| HttpError::NoRuntime)?;
    // Nobody can be asked, see design note 005; the attempt is caught.
    catch_unwind(|| drop(sleep(Duration::ZERO))).map_err(|_| HttpError::NoTimeDriver)
}

/// How the stream of one request is read: the one place where a stream learns what was asked.
pub(crate) fn settings(client: &Inner, request: &Request, body: &Value) -> Builder {
    let settings = client.settings.clone().request(body);
    match request.expected_choices() {
        Some(n) => settings.expect_choices(n),
        None => settings,
    }
}

async fn within<T>(
    after: Duration,
    kind: Timeout,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let passed = TimedOut {
        timeout: kind,
        after,
    };
    timeout(after, work)
        .await
        .map_err(|_| HttpError::TimedOut(passed))?
}

/// Attempts until one succeeds, or is refused for good, or none are left.
async fn attempts(client: &Inner, request: &Request, body: &Value) -> Result<Answer, HttpError> {
    let url = client.endpoint.url(request.kind());
    let body = Bytes::from(body.to_string());
    let made = AtomicU32::new(0);
    let pauses = ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .with_max_times(client.retries as usize)
        .with_jitter();
    (|| {
        let attempt = made.fetch_add(1, Ordering::Relaxed) + 1;
        let sent = client.http.post(url.clone()).body(body.clone());
        answer(client, sent, attempt)
    })
    .retry(pauses)
    .when(may_pass)
    .adjust(pause)
    .notify(|error, pause| {
        tracing::debug!(reason = error.name(), ?pause, "another attempt follows");
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
    let response = match client.timeouts.first_byte {
        Some(after) => within(after, Timeout::FirstByte, head).await?,
        None => head.await?,
    };
    told(&response, attempt);
    Answer::of(response, &client.secrets, attempt).await
}

fn told(response: &Response, attempt: u32) {
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
        // A server that was reached may be at work on it.
        HttpError::TimedOut(_) | HttpError::Transport { .. } => false,
        HttpError::Build(_)
        | HttpError::Request(_)
        | HttpError::NoRuntime
        | HttpError::NoTimeDriver
        | HttpError::Page(_)
        | HttpError::Tls { .. } => false,
    }
}

/// How long to pause before another attempt, if one is left.
fn pause(error: &HttpError, ours: Option<Duration>) -> Option<Duration> {
    let wish = error.answer().and_then(StatusError::retry_after);
    both(wish.unwrap_or_default(), ours?)
}

/// The server's wish on top of our own pause: its jitter keeps those apart who were all told the same second.
fn both(wish: Duration, ours: Duration) -> Option<Duration> {
    (wish <= MAX_RETRY_AFTER).then(|| wish + ours)
}

#[cfg(test)]
mod tests;
