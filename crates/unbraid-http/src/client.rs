//! The client: an address, a key, timeouts, and a pool of connections.

use std::{env, sync::Arc, time::Duration};

use reqwest::{
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use unbraid::{Builder, Completions};

use crate::{
    endpoint::{ApiKey, Endpoint},
    error::{BuildError, HttpError},
    limits::{CONNECT_TIMEOUT, RETRIES},
    request::Request,
    send, tls,
};

const OPENAI: &str = "https://api.openai.com/v1";

/// Sends requests to one OpenAI-compatible endpoint.
///
/// A clone is the same client, with the same connections. Dropping it ends no completion that is being read.
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
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    pub(crate) key: Option<ApiKey>,
    pub(crate) retries: u32,
    pub(crate) timeouts: Timeouts,
    /// How the stream of each answer is read.
    pub(crate) settings: Builder,
}

/// What bounds the wait for an answer's head; its body is bounded by the settings of the stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub(crate) first_byte: Option<Duration>,
    pub(crate) total: Option<Duration>,
}

/// Settings of a [`Client`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    address: Address,
    key: Option<ApiKey>,
    key_header: Option<String>,
    headers: Vec<(String, Secret)>,
    roots: Vec<Vec<u8>>,
    proxy: bool,
    http2: bool,
    connect: Duration,
    retries: u32,
    timeouts: Timeouts,
    settings: Builder,
}

/// An address as it was given; it is parsed by `build`.
#[derive(Clone)]
enum Address {
    Base(String),
    Azure {
        endpoint: String,
        deployment: String,
        version: String,
    },
}

/// The value of a header, which may be a key like any other.
#[derive(Clone)]
struct Secret(String);

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
    /// Requests that were surely not answered are sent again, within bounds; none is once an answer has begun.
    ///
    /// # Errors
    ///
    /// [`HttpError`]: there is no answer, or its status is no success. What is wrong with the body of a success is told by
    /// the handles.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; the server may have begun to answer, and may bill it.
    pub async fn send(&self, request: &Request) -> Result<Completions, HttpError> {
        // Boxed: the machinery of a connection would lie on the caller's stack.
        Box::pin(send::send(&self.0, request)).await
    }
}

impl ClientBuilder {
    fn new() -> Self {
        Self {
            address: Address::Base(OPENAI.to_owned()),
            key: None,
            key_header: None,
            headers: Vec::new(),
            roots: Vec::new(),
            proxy: true,
            http2: false,
            connect: CONNECT_TIMEOUT,
            retries: RETRIES,
            timeouts: Timeouts::default(),
            settings: Completions::builder(),
        }
    }

    /// Settings by the variables that people already have: `OPENAI_BASE_URL` and `OPENAI_API_KEY`.
    ///
    /// One that is unset or empty changes nothing.
    pub fn from_env() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let mut builder = Self::new();
        if let Some(base) = variable("OPENAI_BASE_URL") {
            builder = builder.base_url(base.to_string_lossy());
        }
        if let Some(key) = variable("OPENAI_API_KEY") {
            builder = builder.api_key(key.to_string_lossy());
        }
        builder
    }

    /// Settings for one deployment at Azure: its path, its `api-version`, and the key in the header `api-key`.
    ///
    /// A token of Entra ID goes as a bearer instead: say `.header("authorization", "Bearer …")` and give no key. Azure's
    /// newer address, `https://….openai.azure.com/openai/v1`, is a base URL like any other.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::ClientBuilder;
    ///
    /// let client = ClientBuilder::azure("https://example.openai.azure.com", "my-gpt", "2024-10-21")
    ///     .api_key("a key")
    ///     .build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn azure(
        endpoint: impl Into<String>,
        deployment: impl Into<String>,
        api_version: impl Into<String>,
    ) -> Self {
        Self {
            address: Address::Azure {
                endpoint: endpoint.into(),
                deployment: deployment.into(),
                version: api_version.into(),
            },
            ..Self::new()
        }
        .key_header("api-key")
    }

    /// The address below which `chat/completions` stands, mostly ending in `/v1`. A query is kept.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.address = Address::Base(url.into());
        self
    }

    /// The key, sent as a bearer token. White space around it is dropped; an empty one is none.
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        self.key = ApiKey::new(key.as_ref());
        self
    }

    /// Sends the key in a header of its own, such as `api-key`, and not as a bearer token.
    pub fn key_header(mut self, name: impl Into<String>) -> Self {
        self.key_header = Some(name.into());
        self
    }

    /// Sends a further header with every request. It takes the place of one of ours.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), Secret(value.into())));
        self
    }

    /// Trusts a root certificate, in PEM or DER, beside those of the system.
    pub fn root_certificate(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.roots.push(certificate.into());
        self
    }

    /// Whether the environment's proxies are used (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`); `true` unless said
    /// otherwise.
    pub fn proxy_from_env(mut self, proxy: bool) -> Self {
        self.proxy = proxy;
        self
    }

    /// Speaks HTTP/2 at once, over plain TCP too. Unless said so, TLS decides, and plain TCP speaks HTTP/1.1.
    pub fn http2_prior_knowledge(mut self, http2: bool) -> Self {
        self.http2 = http2;
        self
    }

    /// How many further attempts are made; 0 for none. See [`limits`](crate::limits) for the default.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// How long a connection may take, TLS included.
    pub fn connect_timeout(mut self, after: Duration) -> Self {
        self.connect = after;
        self
    }

    /// How long the first byte may take: of the head, in each attempt, and then of the body. Off by default.
    pub fn first_byte_timeout(mut self, after: Duration) -> Self {
        self.timeouts.first_byte = Some(after);
        self.settings = self.settings.first_byte_timeout(after);
        self
    }

    /// How long a body may be silent once it has begun. Off by default.
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.settings = self.settings.idle_timeout(after);
        self
    }

    /// How long everything may take: all attempts, their pauses, and the body. Off by default.
    pub fn total_timeout(mut self, after: Duration) -> Self {
        self.timeouts.total = Some(after);
        self
    }

    /// How streams are read: limits, policies. Timeouts that this builder was given before are replaced by those of the
    /// settings, so say this first.
    pub fn stream_settings(mut self, settings: Builder) -> Self {
        self.settings = settings;
        self
    }

    /// Makes the client. It sends nothing yet.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: the address, the key or a header is none.
    pub fn build(self) -> Result<Client, BuildError> {
        let endpoint = self.address.endpoint()?;
        let headers = self.all_headers()?;
        let tls = tls::config(&self.roots)?;
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("unbraid/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(self.connect)
            // A redirect would carry the prompt, and a key in a header of its own, to wherever the server points.
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls);
        if !self.proxy {
            http = http.no_proxy();
        }
        if self.http2 {
            http = http.http2_prior_knowledge();
        }
        let http = http
            .build()
            .map_err(|error| BuildError::Tls(Arc::new(error.without_url())))?;
        Ok(Client(Arc::new(Inner {
            http,
            endpoint,
            key: self.key,
            retries: self.retries,
            timeouts: self.timeouts,
            settings: self.settings,
        })))
    }

    fn all_headers(&self) -> Result<HeaderMap, BuildError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(key) = &self.key {
            let own = self.key_header.as_deref().map(header_name).transpose()?;
            let (name, value) = key.header(own.as_ref())?;
            headers.insert(name, value);
        }
        for (name, Secret(value)) in &self.headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| BuildError::Header { name: name.clone() })?;
            value.set_sensitive(true);
            headers.insert(header_name(name)?, value);
        }
        Ok(headers)
    }
}

fn header_name(name: &str) -> Result<HeaderName, BuildError> {
    HeaderName::try_from(name).map_err(|_| BuildError::Header {
        name: name.to_owned(),
    })
}

impl Address {
    fn endpoint(&self) -> Result<Endpoint, BuildError> {
        match self {
            Self::Base(base) => Endpoint::new(base),
            Self::Azure {
                endpoint,
                deployment,
                version,
            } => Endpoint::azure(endpoint, deployment, version),
        }
    }
}

/// A base URL may hold a key.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Address(..)")
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
