//! The configuration of a client.

mod headers;
mod proxies;
mod requests;

use std::{fmt, sync::Arc, time::Duration};

use reqwest::redirect::Policy;
use unbraid::{Completions, CompletionsBuilder};

use super::Client;
use crate::{
    endpoint::{ApiKey, Endpoint},
    error::BuildError,
    fan_out::FanOut,
    limits::{CONNECT_TIMEOUT, MAX_REQUESTS, RETRIES},
    provider::Provider,
    secrets::Secrets,
    send::{Sender, timeouts::Timeouts},
    tls,
};

/// Configures a [`Client`].
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
    provider: Provider,
    address: Address,
    key: Option<ApiKey>,
    key_header: Option<String>,
    headers: Vec<(String, String)>,
    roots: Vec<Vec<u8>>,
    tls: tls::Backend,
    proxy_from_env: bool,
    #[cfg(feature = "http2")]
    http2_prior_knowledge: bool,
    connect_timeout: Duration,
    retries: u32,
    max_requests: usize,
    timeouts: Timeouts,
    stream_config: CompletionsBuilder,
}

/// An address as it was given. `build` parses it.
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
    pub(super) fn for_provider(provider: Provider) -> Self {
        Self {
            provider,
            address: Address::Base(provider.default_base_url().to_owned()),
            key: None,
            key_header: provider.key_header().map(str::to_owned),
            headers: Vec::new(),
            roots: Vec::new(),
            tls: tls::Backend::default(),
            proxy_from_env: true,
            #[cfg(feature = "http2")]
            http2_prior_knowledge: false,
            connect_timeout: CONNECT_TIMEOUT,
            retries: RETRIES,
            max_requests: MAX_REQUESTS,
            timeouts: Timeouts::default(),
            stream_config: Completions::builder(),
        }
    }

    /// Reads the variables `OPENAI_BASE_URL` and `OPENAI_API_KEY`, which other clients use as well.
    ///
    /// A variable that is unset or empty changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let client = unbraid_http::ClientBuilder::from_env().retries(0).build()?;
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn from_env() -> Self {
        Self::for_provider(Provider::OpenAi).env()
    }

    /// Reads the environment variables of the provider: the [base URL](Provider::base_url_variable) and the
    /// [key](Provider::key_variables).
    ///
    /// A variable that is unset or empty changes nothing. A value that is set after this call takes precedence.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid_http::Client;
    ///
    /// let client = Client::anthropic().env().build()?; // ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
    /// # drop(client);
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn env(self) -> Self {
        let provider = self.provider;
        let base = Provider::variable(&[provider.base_url_variable()]);
        let builder = match base {
            Some(base) => self.base_url(provider.base_url_of(base)),
            None => self,
        };
        match Provider::variable(provider.key_variables()) {
            Some(key) => builder.api_key(key),
            None => builder,
        }
    }

    /// Starts with the configuration for one deployment at Azure: its path, its `api-version`, and the key in the header
    /// `api-key`.
    ///
    /// A token of Entra ID is sent as a bearer token instead: call `.header("authorization", "Bearer …")` and set no key.
    /// Azure's newer address, `https://….openai.azure.com/openai/v1`, is an ordinary base URL.
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
            ..Self::for_provider(Provider::OpenAi)
        }
        .key_header("api-key")
    }

    /// Sets the address below which `chat/completions` is found. It usually ends in `/v1`. A query is kept.
    ///
    /// For another provider it is the address of the server. The version of the interface (`v1`, `v1beta`, `api`, `v2`) is
    /// appended unless the address ends with it already.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().base_url("http://localhost:8000/v1").build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.address = Address::Base(url.into());
        self
    }

    /// Sets the key, which is sent as a bearer token. White space around it is removed. An empty key is not sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().api_key("a key").build()?;
    /// assert!(!format!("{client:?}").contains("a key"));
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        self.key = ApiKey::new(key.as_ref());
        self
    }

    /// Sends the bare key in this header, such as `api-key`, instead of a bearer token.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().api_key("a key").key_header("x-api-key").build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn key_header(mut self, name: impl Into<String>) -> Self {
        self.key_header = Some(name.into());
        self
    }

    /// Sends an additional header with every request. It replaces a header of the client with the same name.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().header("openai-organization", "org-1").build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Trusts a root certificate, in PEM or DER, in addition to those of the system.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use unbraid_http::Client;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder().root_certificate(std::fs::read("company-ca.pem")?).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn root_certificate(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.roots.push(certificate.into());
        self
    }

    /// Uses the TLS library of the operating system: SChannel, Secure Transport or OpenSSL.
    ///
    /// Without the feature `rustls-ring` that library is the default. Call this method if another crate may switch that
    /// feature on and the library still has to be that of the system.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().native_tls().build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    #[cfg(feature = "native-tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "native-tls")))]
    pub fn native_tls(mut self) -> Self {
        self.tls = tls::Backend::Native;
        self
    }

    /// Sets whether the environment's proxies are used (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`). The default is
    /// `true`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().base_url("http://localhost:8000/v1").proxy_from_env(false).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn proxy_from_env(mut self, proxy: bool) -> Self {
        self.proxy_from_env = proxy;
        self
    }

    /// Sets whether to use HTTP/2 at once, also without TLS. By default TLS negotiates the version, and HTTP/1.1 is used
    /// without TLS.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_http::Client;
    /// let client = Client::builder().base_url("http://localhost:8000/v1").http2_prior_knowledge(true).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    #[cfg(feature = "http2")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http2")))]
    pub fn http2_prior_knowledge(mut self, http2: bool) -> Self {
        self.http2_prior_knowledge = http2;
        self
    }

    /// Sets how streams are read: limits and policies. Its timeouts apply to the body alone. The timeouts of this builder take
    /// precedence over them, in whichever order they are set.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::Completions;
    /// use unbraid_http::Client;
    ///
    /// let client = Client::builder().stream_config(Completions::builder().strict(true)).build()?;
    /// # Ok::<(), unbraid_http::BuildError>(())
    /// ```
    pub fn stream_config(mut self, config: CompletionsBuilder) -> Self {
        self.stream_config = config;
        self
    }

    /// Creates the client. It does not connect yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{BuildError, Client};
    ///
    /// let error = Client::builder().api_key("a\nkey").build().unwrap_err();
    /// assert!(matches!(error, BuildError::Key));
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the address, the key, a header or a root certificate is invalid, and for an address that needs TLS if
    /// no TLS library is compiled in.
    pub fn build(self) -> Result<Client, BuildError> {
        let endpoint = self.address.endpoint(self.provider)?;
        if endpoint.needs_tls() && !tls::IS_AVAILABLE {
            return Err(BuildError::Url {
                why: "https:// needs the feature rustls-ring or native-tls of unbraid-http"
                    .to_owned(),
            });
        }
        let http = self.http_client()?;
        let secrets = self.secrets(&endpoint);
        let config = self.stream_config.redact(secrets.redaction());
        let sender = Sender {
            http,
            endpoint,
            secrets,
            retries: self.retries,
            timeouts: self.timeouts,
            stream_config: match self.timeouts.idle {
                Some(after) => config.idle_timeout(after),
                None => config,
            },
        };
        Ok(Client(Arc::new(FanOut::new(sender, self.max_requests))))
    }

    /// The HTTP client alone.
    pub(crate) fn http_client(&self) -> Result<reqwest::Client, BuildError> {
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("unbraid/", env!("CARGO_PKG_VERSION")))
            .default_headers(self.all_headers()?)
            .connect_timeout(self.connect_timeout)
            // A redirect would send the prompt, and a key in a header of its own, to another host.
            .redirect(Policy::none())
            // Bodies are decompressed by this crate, whichever features of reqwest other crates switch on.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        if !self.proxy_from_env {
            http = http.no_proxy();
        }
        #[cfg(feature = "http2")]
        if self.http2_prior_knowledge {
            http = http.http2_prior_knowledge();
        }
        // Another crate may switch on HTTP/2 in reqwest, whose errors are not understood here then.
        #[cfg(not(feature = "http2"))]
        {
            http = http.http1_only();
        }
        let http = self.tls.configure(http, &self.roots)?.build();
        http.map_err(|error| BuildError::Tls(Arc::new(error.without_url())))
    }

    /// The texts that no error may repeat: everything that is sent and may be a key, whatever the name of its header.
    fn secrets(&self, endpoint: &Endpoint) -> Secrets {
        let mut secrets = Secrets::default();
        endpoint.add_to(&mut secrets);
        if let Some(key) = &self.key {
            key.add_to(&mut secrets);
        }
        for (_, value) in &self.headers {
            secrets.add_header(value);
        }
        if self.proxy_from_env {
            proxies::from_env().for_each(|proxy| secrets.add_url(&proxy));
        }
        secrets
    }
}

impl Address {
    fn endpoint(&self, provider: Provider) -> Result<Endpoint, BuildError> {
        match self {
            Self::Base(base) => Endpoint::new(provider, base),
            Self::Azure {
                endpoint,
                deployment,
                version,
            } => Endpoint::azure(endpoint, deployment, version),
        }
    }
}

/// Prints selected fields: a base URL may contain a key, and so may any header.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ClientBuilder")
            .field("provider", &self.provider)
            .field("key", &self.key)
            .field("key_header", &self.key_header)
            .field("headers", &names)
            .field("retries", &self.retries)
            .field("timeouts", &self.timeouts)
            .field("stream_config", &self.stream_config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
