//! One request: its attempts until an answer begins.
//!
//! Nothing here sees the body of a success. Once an answer has begun, no further attempt is made: it would be billed again.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout};
use unbraid::{Completions, TimedOut, Timeout};

use crate::{
    client::Inner,
    error::HttpError,
    limits::{FIRST_PAUSE, MAX_PAUSE, MAX_RETRY_AFTER},
    request::Request,
    response,
    status::StatusError,
};

/// Sends a request and gives its completions once an answer has begun.
pub(crate) async fn send(client: &Inner, request: &Request) -> Result<Completions, HttpError> {
    // reqwest would panic.
    tokio::runtime::Handle::try_current().map_err(|_| HttpError::NoRuntime)?;
    let mut settings = client.settings.clone();
    if let Some(n) = request.expected_choices() {
        settings = settings.expect_choices(n);
    }
    let Some(total) = client.timeouts.total else {
        let response = attempts(client, request).await?;
        return Ok(response::read(response, settings));
    };
    let started = Instant::now();
    let response = within(total, Timeout::Total, attempts(client, request)).await?;
    // The body has what is left of it.
    let rest = total.saturating_sub(started.elapsed());
    Ok(response::read(response, settings.total_timeout(rest)))
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
async fn attempts(client: &Inner, request: &Request) -> Result<Response, HttpError> {
    let url = client.endpoint.url(request.kind());
    let body = Bytes::from(request.to_json().to_string());
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
) -> Result<Response, HttpError> {
    let head = async { request.send().await.map_err(HttpError::unanswered) };
    let response = match client.timeouts.first_byte {
        Some(after) => within(after, Timeout::FirstByte, head).await?,
        None => head.await?,
    };
    let status = response.status();
    tracing::debug!(
        status = status.as_u16(),
        attempt,
        version = ?response.version(),
        "answer begins"
    );
    if status.is_success() {
        return Ok(response);
    }
    let refused = StatusError::read(response, client.key.as_ref(), attempt).await;
    Err(HttpError::Status(refused))
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
        | HttpError::Tls { .. } => false,
    }
}

/// The server's wish on top of our own pause: its jitter keeps those apart who were all told the same second.
fn pause(error: &HttpError, ours: Option<Duration>) -> Option<Duration> {
    let ours = ours?; // none are left
    let HttpError::Status(refused) = error else {
        return Some(ours);
    };
    let wish = refused.retry_after().unwrap_or_default();
    (wish <= MAX_RETRY_AFTER).then(|| wish + ours)
}
