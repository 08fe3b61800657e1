//! Sends one request: attempts until a response begins.
//!
//! Nothing here reads the body of a success. Once a response has begun, no further attempt is made: it would be billed again.

pub(crate) mod outgoing;
mod runtime;
pub(crate) mod timeouts;
#[cfg(feature = "http2")]
mod unprocessed;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use reqwest::{Response, Url};
use tokio::time::timeout;
use unbraid::{CompletionsBuilder, Dialect, TimedOut, Timeout, internal::expected_dialect};

pub(crate) use self::runtime::check_runtime;
use self::{
    outgoing::Outgoing,
    timeouts::{Timeouts, with_deadline},
};
use crate::{
    body::{Body, FirstByte, Timers},
    endpoint::Endpoint,
    error::HttpError,
    limits::{FIRST_PAUSE, MAX_PAUSE, MAX_RETRY_AFTER},
    provider::Provider,
    request::Request,
    response::{CheckedResponse, dialect_of},
    secrets::Secrets,
    status::StatusError,
};

/// Sends requests to one endpoint over one pool of connections.
pub(crate) struct Sender {
    pub(crate) http: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    /// The texts that no error may repeat.
    pub(crate) secrets: Secrets,
    pub(crate) retries: u32,
    pub(crate) timeouts: Timeouts,
    /// How the stream of each response is read.
    pub(crate) stream_config: CompletionsBuilder,
}

impl Sender {
    /// Sends a request and returns the body once the response has begun.
    pub(crate) async fn open(&self, request: &Request) -> Result<Body, HttpError> {
        let config = self.config_for(request);
        let config = match request.expected_choices(self.provider()) {
            Some(n) => config.expect_choices(n),
            None => config,
        };
        let outgoing = self.outgoing(request)?;
        check_runtime()?; // before `Instant::now`, so that a missing runtime is an error
        let deadline = self.timeouts.deadline();
        let answer = self.send(&outgoing).await?;
        let config = with_deadline(config, deadline);
        let config = answer.configure(config);
        let total = deadline.and_then(|deadline| Some((deadline.at()?, deadline.timed_out())));
        let timers = Timers::new(self.timeouts.idle, total);
        let redact = self.secrets.redaction();
        Ok(Body::new(answer.bytes, timers, config, redact))
    }

    pub(crate) fn provider(&self) -> Provider {
        self.endpoint.provider()
    }

    /// What is sent for a request as a whole.
    pub(crate) fn outgoing(&self, request: &Request) -> Result<Outgoing, HttpError> {
        let body = request.encode(self.provider())?;
        Ok(Outgoing::single(self.url(request), body))
    }

    pub(crate) fn url(&self, request: &Request) -> Url {
        self.endpoint.url(request.kind(), request.model())
    }

    /// Sends a request until a response has begun.
    pub(crate) async fn send(&self, outgoing: &Outgoing) -> Result<Answer, HttpError> {
        check_runtime()?;
        let attempts = self.attempts(outgoing);
        match self.timeouts.total {
            Some(after) => {
                let timeout = Timeout::Total;
                with_timeout(TimedOut::new(timeout, after), attempts).await
            }
            None => attempts.await,
        }
    }

    /// How the stream of a request is read, except for the number of choices to expect.
    pub(crate) fn config_for(&self, request: &Request) -> CompletionsBuilder {
        self.stream_config.clone().request(&request.counted())
    }

    /// Makes attempts until one succeeds, or fails in a way that permits no other, or none are left.
    async fn attempts(&self, outgoing: &Outgoing) -> Result<Answer, HttpError> {
        let url = &outgoing.url;
        let made = AtomicU32::new(0);
        let pauses = ExponentialBuilder::new()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(MAX_PAUSE)
            .with_max_times(self.retries as usize)
            .with_jitter();
        (|| {
            let attempt = made.fetch_add(1, Ordering::Relaxed) + 1;
            self.attempt(self.http.post(url.clone()).body(outgoing.body()), attempt)
        })
        .retry(pauses)
        .when(is_retryable)
        .adjust(pause)
        .notify(|error, pause| {
            tracing::debug!(reason = error.as_str(), ?pause, "retrying the request");
        })
        .await
    }

    async fn attempt(
        &self,
        request: reqwest::RequestBuilder,
        attempt: u32,
    ) -> Result<Answer, HttpError> {
        let head = async { request.send().await.map_err(HttpError::from_reqwest) };
        let first_byte = self.timeouts.first_byte();
        let response = with_timeout(first_byte, head).await?;
        log_head(&response, attempt);
        let dialect = dialect_of(response.headers());
        let response = CheckedResponse::new(response, &self.secrets, attempt).await?;
        let bytes = response.into_bytes(Some(first_byte));
        Ok(Answer { bytes, dialect })
    }
}

/// A response of success that has begun.
pub(crate) struct Answer {
    pub(crate) bytes: FirstByte,
    /// The dialect that its content type identifies.
    dialect: Option<Dialect>,
}

impl Answer {
    /// Sets the dialect that the content type identifies, unless the caller set one (D05). Any other is recognized by the body:
    /// gateways answer in another dialect than that of the address.
    pub(crate) fn configure(&self, config: CompletionsBuilder) -> CompletionsBuilder {
        expected_dialect(config, self.dialect)
    }
}

async fn with_timeout<T>(
    timed_out: TimedOut,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    timeout(timed_out.after, work)
        .await
        .map_err(|_| HttpError::TimedOut(timed_out))?
}

fn log_head(response: &Response, attempt: u32) {
    tracing::debug!(
        status = response.status().as_u16(),
        attempt,
        version = ?response.version(),
        "the response begins"
    );
}

/// Whether another attempt may succeed, and cannot lead to a second response to the same request.
pub(crate) fn is_retryable(error: &HttpError) -> bool {
    match error {
        HttpError::Connect { .. } => true,
        HttpError::Status(status) => status.is_retryable(),
        // A server that was reached may be working on the request, unless it states that it is not.
        #[cfg(feature = "http2")]
        HttpError::Transport { source, .. } => unprocessed::is_unprocessed(&**source),
        #[cfg(not(feature = "http2"))]
        HttpError::Transport { .. } => false,
        HttpError::TimedOut(_)
        | HttpError::Build(_)
        | HttpError::Request(_)
        | HttpError::NoRuntime
        | HttpError::NoTimeDriver
        | HttpError::TooManyChoices { .. }
        | HttpError::UnexpectedHtml(_)
        | HttpError::Tls { .. } => false,
    }
}

/// How long to pause before the next attempt. `None` if there is none.
fn pause(error: &HttpError, backoff: Option<Duration>) -> Option<Duration> {
    let requested = error.status_error().and_then(StatusError::retry_after);
    total_pause(requested.unwrap_or_default(), backoff?)
}

/// Adds the client's own pause to the one that the server asks for: its jitter separates clients that were all given the same
/// pause.
fn total_pause(requested: Duration, backoff: Duration) -> Option<Duration> {
    (requested <= MAX_RETRY_AFTER).then(|| requested + backoff)
}

#[cfg(test)]
mod tests;
