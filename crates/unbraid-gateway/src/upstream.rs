//! The provider's side: sends a request exactly as the client sent it, and retries nothing unless configured to.

mod clients;
pub(crate) mod headers;
mod idle;
mod retry;
mod stop;

use std::{fmt, time::Duration};

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version,
    header::{AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use unbraid_core::BoxError;

pub(crate) use self::idle::read_error;
use self::{
    clients::Clients,
    idle::with_idle_timeout,
    retry::{NoAnswer, Retries},
    stop::until_stopped,
};
use crate::{api_error::ApiError, config::Config, error::BuildError, metrics::Metrics};

/// The bytes of an upstream's body as they arrive.
pub(crate) type ByteStream = BoxStream<'static, Result<Bytes, BoxError>>;

/// Sends requests to one upstream.
#[derive(Clone)]
pub(crate) struct Upstream {
    clients: Clients,
    base: Url,
    key: Option<(HeaderName, HeaderValue)>,
    forwards_authorization: bool,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    retries: u32,
    metrics: Metrics,
    /// Cancelled at the end of a drain: nothing more is sent, and no head is waited for.
    stop: CancellationToken,
}

/// A request for the upstream.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// The path below the base URL, without a slash at its start.
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A response whose head has arrived.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The headers that a client gets.
    pub(crate) headers: HeaderMap,
    /// How long its body may be silent.
    pub(crate) idle_timeout: Duration,
    response: Response,
    /// Cancelled at the end of a drain.
    pub(crate) stop: CancellationToken,
}

impl Upstream {
    pub(crate) fn new(
        config: &Config,
        has_keys: bool,
        metrics: Metrics,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            clients: Clients::new(&config.upstream_roots, config.options.proxy_from_env)?,
            base: config.upstream.clone(),
            key: config.upstream_key.clone(),
            forwards_authorization: config.upstream_key.is_none() && !has_keys,
            first_byte_timeout: config.options.first_byte_timeout,
            idle_timeout: config.options.idle_timeout,
            retries: config.options.retries,
            metrics,
            stop: CancellationToken::new(),
        })
    }

    /// The same upstream with a new connection for each request.
    pub(crate) fn with_new_connections(&self) -> Self {
        Self {
            clients: self.clients.without_kept_connections(),
            ..self.clone()
        }
    }

    /// The headers of a client's request that are sent on, and the upstream's key.
    ///
    /// A client that an application has authenticated did so with the application's credential, which the upstream must
    /// not see.
    pub(crate) fn request_headers(
        &self,
        client: &HeaderMap,
        is_authenticated: bool,
        is_passed_through: bool,
    ) -> HeaderMap {
        let mut headers = match is_passed_through {
            true => headers::passed_through(client),
            false => headers::for_upstream(client),
        };
        if self.forwards_authorization
            && !is_authenticated
            && let Some(value) = client.get(AUTHORIZATION)
        {
            headers.insert(AUTHORIZATION, headers::detached(value));
        }
        if let Some((name, value)) = &self.key {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }

    /// Sends a request, and waits for the head of the response. Dropping the future closes the connection.
    pub(crate) async fn send(&self, outgoing: &Outgoing) -> Result<Answer, ApiError> {
        tokio::select! {
            // Polled first, so that nothing is sent, and billed, that nobody can read.
            biased;
            () = self.stop.cancelled() => Err(ApiError::DRAINING),
            answer = self.send_with_retries(outgoing) => answer,
        }
    }

    /// How long a client waits for an answer to begin.
    pub(crate) fn first_byte_timeout(&self) -> Duration {
        self.first_byte_timeout
    }

    /// Ends the requests that wait now, whose clients get a response before their connections are closed, and refuses all
    /// further ones.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until [`stop`](Self::stop) is called.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    async fn send_with_retries(&self, outgoing: &Outgoing) -> Result<Answer, ApiError> {
        let started = Instant::now();
        // The timeout bounds all attempts, because a client waits for all of them.
        let deadline = started + self.first_byte_timeout;
        let mut retries = Retries::new(self.retries);
        let result = loop {
            let sent = timeout_at(deadline, self.attempt(outgoing)).await;
            let result = sent.unwrap_or(Err(NoAnswer::TimedOut));
            let Some(pause) = retries.next(&result) else {
                break result;
            };
            // After the deadline the client would learn less than what the provider has said.
            if Instant::now() + pause >= deadline {
                break result;
            }
            self.record(&result);
            drop(result);
            tokio::time::sleep(pause).await;
        };
        self.record(&result);
        if result.is_ok() {
            self.metrics.first_byte(started.elapsed());
        }
        result.map_err(ApiError::from)
    }

    async fn attempt(&self, outgoing: &Outgoing) -> Result<Answer, NoAnswer> {
        let url = self.url(&outgoing.path, outgoing.query.as_deref());
        let request = self
            .clients
            .of_this_runtime()
            .request(outgoing.method.clone(), url)
            .headers(outgoing.headers.clone());
        let request = match outgoing.method {
            Method::GET | Method::HEAD => request,
            _ => request.body(outgoing.body.clone()),
        };
        match request.send().await {
            Ok(response) if response.status().is_informational() => Err(NoAnswer::Invalid),
            Ok(response) => Ok(Answer {
                status: response.status(),
                headers: headers::for_client(response.headers()),
                idle_timeout: self.idle_timeout,
                response,
                stop: self.stop.clone(),
            }),
            Err(error) => {
                let error = error.without_url();
                tracing::debug!(%error, "the upstream did not answer");
                Err(NoAnswer::of(error))
            }
        }
    }

    fn record(&self, result: &Result<Answer, NoAnswer>) {
        let status = match result {
            Ok(answer) => answer.status.as_u16(),
            Err(no_answer) => ApiError::from(*no_answer).status.as_u16(),
        };
        self.metrics.upstream_request(status);
    }

    /// The base URL with a path appended to its own, and its query kept.
    fn url(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.base.clone();
        // A URL takes a backslash for a slash, which would make another path of it.
        let path = path.replace('\\', "%5C");
        let joined = format!("{}/{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&joined);
        if let Some(query) = query {
            let query = match self.base.query() {
                Some(base) => format!("{base}&{query}"),
                None => query.to_owned(),
            };
            url.set_query(Some(&query));
        }
        url
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}

impl Answer {
    /// Whether the declared content type is this one, whatever its parameters.
    pub(crate) fn is_content_type(&self, expected: &str) -> bool {
        let value = self.response.headers().get(reqwest::header::CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
        let essence = text.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case(expected)
    }

    /// Whether its connection takes the next request, and several at once. A server announces its end.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.response.version() >= Version::HTTP_2
    }

    /// The declared length of the body as it was sent. That of a body in chunks counts for nothing (RFC 9112, 6.3), and would cut it.
    pub(crate) fn content_length(&self) -> Option<HeaderValue> {
        let headers = self.response.headers();
        let length = headers.get(CONTENT_LENGTH);
        let length = length.filter(|_| !headers.contains_key(TRANSFER_ENCODING));
        length.map(headers::detached)
    }

    /// The body as it was sent, compressed if the upstream compressed it. It fails if it is silent for too long, and at the end of
    /// a drain, so that its client does not take it for complete.
    pub(crate) fn into_raw(
        self,
    ) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + Unpin + 'static {
        let body = self
            .response
            .bytes_stream()
            .map_err(|error| BoxError::from(error.without_url()));
        until_stopped(with_idle_timeout(body, self.idle_timeout), self.stop)
    }

    /// Whether the body has an encoding that the gateway cannot decompress.
    pub(crate) fn has_unknown_encoding(&self) -> bool {
        !unbraid_http::internal::is_supported_encoding(self.response.headers())
    }

    /// The body, decompressed. It fails if it is silent for too long, and at the end of a drain.
    pub(crate) fn into_bounded(self) -> ByteStream {
        let (idle, stop) = (self.idle_timeout, self.stop.clone());
        bounded(self.into_decoded(), idle, stop)
    }

    /// The body, decompressed, for a generation, whose clock ends a silent one.
    pub(crate) fn into_decoded(self) -> ByteStream {
        unbraid_http::internal::byte_stream(self.response)
    }
}

/// A body that fails if it is silent for too long, and at the end of a drain.
pub(crate) fn bounded(body: ByteStream, idle: Duration, stop: CancellationToken) -> ByteStream {
    until_stopped(with_idle_timeout(body, idle), stop).boxed()
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
