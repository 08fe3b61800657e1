//! What a client is made of, before it is made.

use std::{env, fmt, sync::Arc, time::Duration};

use reqwest::{
    Url,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use tokio::sync::Semaphore;
use unbraid::{Completions, CompletionsBuilder};

use super::{Client, Inner, Timeouts};
use crate::{
    body::ACCEPTED,
    endpoint::{ApiKey, Endpoint},
    error::BuildError,
    fan_out::Native,
    limits::{CONNECT_TIMEOUT, MAX_REQUESTS, RETRIES},
    secrets::Secrets,
    tls,
};

const OPENAI: &str = "https://api.openai.com/v1";

/// Settings of a [`Client`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_http::Client;
///
/// let client = Client::builder()
///     .base_url("http://localhost:8000/v1") // vLLM, llama.cpp, SGLang, ..
///     .api_key("a key")
///     .header("x-team", "search")
///     .first_byte_timeout(Duration::from_secs(60))
///     .idle_timeout(Duration::from_secs(20))
///     .retries(4)
///     .build()?;
/// assert!(!format!("{client:?}").contains("a key"));
/// # Ok::<(), unbraid_http::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    address: Address,
    key: Option<ApiKey>,
    key_header: Option<String>,
    headers: Vec<(String, String)>,
    roots: Vec<Vec<u8>>,
    proxy: bool,
    http2: bool,
    connect: Duration,
    retries: u32,
    max_requests: usize,
    timeouts: Timeouts,
    settings: CompletionsBuilder,
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

impl ClientBuilder {
    pub(super) fn new() -> Self {
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
            max_requests: MAX_REQUESTS,
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
        self.headers.push((name.into(), value.into()));
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

    /// How many requests of one [`fan_out`](Client::fan_out) run at once, at least 1;
    /// [`MAX_REQUESTS`](crate::limits::MAX_REQUESTS) unless said otherwise.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How long a connection may take, TLS included.
    pub fn connect_timeout(mut self, after: Duration) -> Self {
        self.connect = after;
        self
    }

    /// How long the first byte may take: of the head, connecting included, in each attempt, and then of the body.
    ///
    /// Unless it is set it is the [idle timeout](Self::idle_timeout), and without that one
    /// [`FIRST_BYTE_TIMEOUT`](crate::limits::FIRST_BYTE_TIMEOUT), ten minutes. [`Duration::MAX`] waits for ever. In a
    /// [`fan_out`](Client::fan_out) it counts for each request from its own turn.
    pub fn first_byte_timeout(mut self, after: Duration) -> Self {
        self.timeouts.first_byte = Some(after);
        self
    }

    /// How long a server may be silent: while the connection is made, before the head, before the first byte of the body, and
    /// then between two bytes. Off by default.
    ///
    /// A model that reasons before it answers may be silent for long at first only: give
    /// [`first_byte_timeout`](Self::first_byte_timeout) a longer time, which then takes the place of this one.
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.timeouts.idle = Some(after);
        self
    }

    /// How long everything may take: all attempts, their pauses, and the body. Off by default.
    pub fn total_timeout(mut self, after: Duration) -> Self {
        self.timeouts.total = Some(after);
        self
    }

    /// How streams are read: limits, policies. Timeouts among them hold for the body alone; those of this builder go before
    /// them, in whichever order they are given.
    pub fn stream_config(mut self, settings: CompletionsBuilder) -> Self {
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
            .tls_backend_preconfigured(tls)
            // Bodies are decompressed here, whatever features of reqwest another crate has switched on.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        if !self.proxy {
            http = http.no_proxy();
        }
        if self.http2 {
            http = http.http2_prior_knowledge();
        }
        let http = http
            .build()
            .map_err(|error| BuildError::Tls(Arc::new(error.without_url())))?;
        let secrets = self.secrets(&endpoint);
        let settings = self.settings.redact(secrets.redaction());
        Ok(Client(Arc::new(Inner {
            http,
            secrets,
            endpoint,
            retries: self.retries,
            max_requests: self.max_requests,
            native: Native::default(),
            timeouts: self.timeouts,
            settings: match self.timeouts.idle {
                Some(after) => settings.idle_timeout(after),
                None => settings,
            },
        })))
    }

    /// What no error may repeat: everything that is sent and may be a key, whatever the name of its header.
    fn secrets(&self, endpoint: &Endpoint) -> Secrets {
        let mut secrets = Secrets::default();
        endpoint.add_to(&mut secrets);
        if let Some(key) = &self.key {
            key.add_to(&mut secrets);
        }
        for (_, value) in &self.headers {
            secrets.add_header(value);
        }
        if self.proxy {
            proxies().for_each(|proxy| secrets.add_url(&proxy));
        }
        secrets
    }

    fn all_headers(&self) -> Result<HeaderMap, BuildError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        if let Some(key) = &self.key {
            let own = self.key_header.as_deref().map(header_name).transpose()?;
            let (name, value) = key.header(own.as_ref())?;
            headers.insert(name, value);
        }
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| BuildError::Header { name: name.clone() })?;
            value.set_sensitive(true);
            headers.insert(header_name(name)?, value);
        }
        Ok(headers)
    }
}

/// The proxies that the environment names. A password for one is part of its address.
fn proxies() -> impl Iterator<Item = Url> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let names = names
        .into_iter()
        .flat_map(|name| [name.to_owned(), name.to_lowercase()]);
    let values = names.filter_map(|name| env::var(name).ok());
    values.filter_map(|value| {
        let value = value.trim();
        match value.contains("://") {
            true => Url::parse(value),
            false => Url::parse(&format!("http://{value}")),
        }
        .ok()
    })
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

/// By hand: a base URL may hold a key, and so may any header.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ClientBuilder")
            .field("key", &self.key)
            .field("key_header", &self.key_header)
            .field("headers", &names)
            .field("retries", &self.retries)
            .field("timeouts", &self.timeouts)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
