//! The client: an address, a key, timeouts, and a pool of connections.

mod builder;
mod providers;
mod source;

use std::{fmt, sync::Arc};

use serde_json::Value;
use unbraid::Completions;

pub use self::builder::ClientBuilder;
use crate::{
    body::Body,
    error::{BuildError, HttpError},
    fan_out::FanOut,
    provider::Provider,
    request::{ChoiceStrategy, Request},
};

/// Sends requests to one endpoint: OpenAI-compatible, or the interface of [another provider](Client::builder_for).
///
/// A clone is the same client and uses the same connections. Dropping a client ends no completion that is being read.
///
/// A client needs a tokio runtime with I/O and time drivers, such as that of `#[tokio::main]`. It brings its own TLS provider:
/// none has to be installed.
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
pub struct Client(Arc<FanOut>);

impl Client {
    /// Returns a builder. Without any configuration, requests are sent to OpenAI without a key.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::builder().base_url("http://localhost:8000/v1").build()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::for_provider(Provider::OpenAi)
    }

    /// Creates a client from the variables `OPENAI_BASE_URL` and `OPENAI_API_KEY`; see [`ClientBuilder::from_env`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let client = unbraid_http::Client::from_env()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self, BuildError> {
        ClientBuilder::from_env().build()
    }

    /// Creates a client for one deployment at Azure; see [`ClientBuilder::azure`].
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Client;
    ///
    /// let client = Client::azure("https://example.openai.azure.com", "my-gpt", "2024-10-21", "a key")?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
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

    /// Sends a request and returns its completions as soon as the head of a successful response has arrived.
    ///
    /// Requests that certainly got no response are sent again, within [`limits`](crate::limits). None is sent again once a
    /// response has begun. With [`ChoiceStrategy::FanOut`] this method waits until the first of the responses has begun. If
    /// none does, because every request failed, it returns the error of one of them, as with [`ChoiceStrategy::Native`].
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{Client, HttpError, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::BuildError> {
    /// let builder = Client::builder().base_url("http://127.0.0.1:1/v1").proxy_from_env(false);
    /// let client = builder.retries(0).build()?;
    /// let error = client.send(&Request::chat("a model").user("Hello?")).await.unwrap_err();
    /// assert!(matches!(error, HttpError::Connect { .. }));
    /// assert_eq!(error.to_string(), "no connection to 127.0.0.1:1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`HttpError`] if there is no response, if its status is not a success, or if it is a web page. Any other problem with
    /// the body of a success is reported by the handles. [`HttpError::Request`] if the client's provider has nothing that
    /// means the same as a field of the request. [`HttpError::TooManyChoices`] if a fan-out would need more requests
    /// than [`MAX_FAN_OUT`](crate::limits::MAX_FAN_OUT).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection. The server may have begun to respond, and may bill it.
    pub async fn send(&self, request: &Request) -> Result<Completions, HttpError> {
        let n = request.get("n").and_then(Value::as_u64).unwrap_or(1);
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        match request.strategy() {
            ChoiceStrategy::FanOut => Box::pin(self.0.send_each(request, n)).await,
            ChoiceStrategy::Auto if n > 1 => Box::pin(self.0.send_auto(request, n)).await,
            ChoiceStrategy::Native | ChoiceStrategy::Auto => {
                Ok(self.open(request).await?.into_completions())
            }
        }
    }

    /// Sends a request and returns the body of the response as bytes, to record or forward them.
    ///
    /// This is one request with any [`ChoiceStrategy`], because there is one body.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures::StreamExt;
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid::BoxError> {
    /// let mut body = Client::from_env()?.open(&Request::chat("gpt-4o-mini").user("Hello?")).await?;
    /// while let Some(bytes) = body.next().await {
    ///     print!("{}", String::from_utf8_lossy(&bytes?));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub async fn open(&self, request: &Request) -> Result<Body, HttpError> {
        // Boxed, because the state of a connection would make the caller's future large.
        Box::pin(self.0.sender.open(request)).await
    }

    /// Sends `n` requests for one choice each, and returns them as one completion with `n` choices.
    ///
    /// A request with a list of prompts gets `n` choices for each of them, in their order. The completion differs from that of
    /// one request with `n` only in its bill: **the prompt is paid `n` times**, and [`usage`](Completions::usage) is the sum. A
    /// `seed` increases from choice to choice, because equal seeds would give equal answers.
    ///
    /// A request that fails is the error of its choice, with an [`HttpError`] as its cause (see [`HttpError::find_in`]). Each
    /// request is retried on its own. Cancelling a choice closes its connection. At most
    /// [`ClientBuilder::max_requests`] run at once; the others wait, and are never sent if
    /// [`ClientBuilder::total_timeout`] ends first.
    ///
    /// If a server returns several choices for one of the requests, the first counts, and the others are refused with a
    /// warning. The choices that count are not affected, but [`closed`](Completions::closed) is then an error
    /// ([`LimitExceeded`](unbraid::LimitExceeded)), and [`choices`](Completions::choices) and
    /// [`outcomes`](Completions::outcomes) yield it as their last item. For a server that counts tokens in `index`, set
    /// [`expect_choices(1)`](unbraid::CompletionsBuilder::expect_choices) in the
    /// [`stream_config`](ClientBuilder::stream_config): then the indices of each response are read as one choice.
    ///
    /// This method does not wait and does not fail. Without a runtime, or with more requests than
    /// [`MAX_FAN_OUT`](crate::limits::MAX_FAN_OUT), the completion is closed with that error. [`send`](Self::send) with
    /// [`ChoiceStrategy::FanOut`] waits for the first response instead, and returns an error if every request failed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::from_env()?;
    /// let completions = client.fan_out(&Request::chat("a-model-without-n").user("Name a color."), 8);
    /// let first = completions.first_finished(1).await; // closes the other seven connections
    /// if let Some(answer) = first.first() {
    ///     println!("{}", answer.message.content);
    /// } else {
    ///     completions.closed().await?; // every request has failed
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn fan_out(&self, request: &Request, n: u32) -> Completions {
        self.0.start(request, n)
    }
}

/// Prints selected fields: the `Debug` of reqwest's client may contain the credentials of a proxy.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sender = &self.0.sender;
        f.debug_struct("Client")
            .field("endpoint", &sender.endpoint)
            .field("retries", &sender.retries)
            .field("timeouts", &sender.timeouts)
            .field("stream_config", &sender.stream_config)
            .finish_non_exhaustive()
    }
}
