//! The client: an address, a key, timeouts, and a pool of connections.

mod builder;

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;
use unbraid::{Completions, CompletionsBuilder, TimedOut, Timeout};

pub use self::builder::ClientBuilder;
use crate::{
    body::Body,
    endpoint::Endpoint,
    error::{BuildError, HttpError},
    fan_out::{self, ChoiceStrategy, Native},
    limits::FIRST_BYTE_TIMEOUT,
    request::Request,
    secrets::Secrets,
    send,
};

/// Sends requests to one OpenAI-compatible endpoint.
///
/// A clone is the same client, with the same connections. Dropping it ends no completion that is being read.
///
/// It needs a tokio runtime that has network and timers, as `#[tokio::main]` makes one.
///
/// # Examples
///
/// ```no_run
/// use unbraid_http::{Client, Request};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder()
///     .base_url("https://api.openai.com/v1")
///     .api_key(std::env::var("OPENAI_API_KEY")?)
///     .build()?;
/// let request = Request::chat("gpt-4o-mini").user("Name a prime number.").n(4);
/// let completions = client.send(&request).await?;
/// let mut choices = completions.choices();
/// while let Some(choice) = choices.next().await {
///     let choice = choice?;
///     println!("{}: {}", choice.index(), choice.text().await?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    /// What no error may repeat.
    pub(crate) secrets: Secrets,
    pub(crate) retries: u32,
    pub(crate) max_requests: usize,
    pub(crate) native: Native,
    pub(crate) timeouts: Timeouts,
    /// How the stream of each answer is read.
    pub(crate) settings: CompletionsBuilder,
}

/// The client's own timeouts, as they were given.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
}

impl Timeouts {
    /// How long the first byte may take, of a head and of a body: an idle timeout covers it unless it has one of its own.
    pub(crate) fn first_byte(self) -> TimedOut {
        let (timeout, after) = match (self.first_byte, self.idle) {
            (Some(after), _) => (Timeout::FirstByte, after),
            (None, Some(after)) => (Timeout::Idle, after),
            (None, None) => (Timeout::FirstByte, FIRST_BYTE_TIMEOUT),
        };
        TimedOut::new(timeout, after)
    }
}

impl Client {
    /// Settings before the first request. Without any, requests go to OpenAI, without a key.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// A client by the variables `OPENAI_BASE_URL` and `OPENAI_API_KEY`; see [`ClientBuilder::from_env`].
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self, BuildError> {
        ClientBuilder::from_env().build()
    }

    /// A client for one deployment at Azure; see [`ClientBuilder::azure`].
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn azure(
        endpoint: impl Into<String>,
        deployment: impl Into<String>,
        api_version: impl Into<String>,
        key: impl AsRef<str>,
    ) -> Result<Self, BuildError> {
        ClientBuilder::azure(endpoint, deployment, api_version)
            .api_key(key)
            .build()
    }

    /// Sends a request and gives its completions as soon as the head of a successful answer has come.
    ///
    /// Requests that were surely not answered are sent again, within bounds; none is once an answer has begun. With
    /// [`ChoiceStrategy::FanOut`] it waits until the first of the answers has begun. If none does, because every request is refused, the
    /// error is that of a request, as it is with [`ChoiceStrategy::Native`].
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{Client, HttpError, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::BuildError> {
    /// let nowhere = Client::builder().base_url("http://127.0.0.1:1/v1").proxy_from_env(false);
    /// let client = nowhere.retries(0).build()?;
    /// let refused = client.send(&Request::chat("a model").user("Hello?")).await.unwrap_err();
    /// assert!(matches!(refused, HttpError::Connect { .. }));
    /// assert_eq!(refused.to_string(), "no connection to 127.0.0.1:1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`HttpError`]: there is no answer, its status is no success, or it is a web page. What else is wrong with the body of
    /// a success is reported by the handles. [`HttpError::TooManyChoices`] if a fan-out would take more requests than
    /// [`MAX_FAN_OUT`](crate::limits::MAX_FAN_OUT).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; the server may have begun to answer, and may bill it.
    pub async fn send(&self, request: &Request) -> Result<Completions, HttpError> {
        let n = request.get("n").and_then(Value::as_u64).unwrap_or(1);
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        match request.asked_by() {
            ChoiceStrategy::FanOut => Box::pin(fan_out::begun(&self.0, request, n)).await,
            ChoiceStrategy::Auto if n > 1 => Box::pin(fan_out::auto(&self.0, request, n)).await,
            ChoiceStrategy::Native | ChoiceStrategy::Auto => {
                Ok(self.open(request).await?.into_completions())
            }
        }
    }

    /// The same, but gives the body of the answer as bytes, for who wants to record or forward them.
    ///
    /// It is one request whatever its [`ChoiceStrategy`] are, since there is one body.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub async fn open(&self, request: &Request) -> Result<Body, HttpError> {
        // Boxed: the machinery of a connection would lie on the caller's stack.
        Box::pin(send::open(&self.0, request)).await
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }
}

impl From<Arc<Inner>> for Client {
    fn from(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
}

/// By hand: that of the client inside may show what a proxy's address holds.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.0.endpoint)
            .field("retries", &self.0.retries)
            .field("timeouts", &self.0.timeouts)
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
