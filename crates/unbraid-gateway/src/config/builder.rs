//! `GatewayBuilder`.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use axum::http::{HeaderName, HeaderValue, header::AUTHORIZATION, uri::Authority};
use reqwest::Url;
use unbraid_log::LogStore;

use super::{Config, FanOut, OnLogFailure, Options};
use crate::{auth::cors::Cors, auth::hosts::AllowedHosts, error::BuildError, gateway::Gateway};

/// Configures a [`Gateway`]. Every option but the upstream has a default. A duration of more than a century, such as
/// [`Duration::MAX`], means forever.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_gateway::{FanOut, Gateway, OnLogFailure};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unbraid_gateway::BuildError> {
/// let gateway = Gateway::builder("http://127.0.0.1:8000/v1")
///     .upstream_key("a key")
///     .upstream_key_header("api-key")
///     .fan_out(FanOut::Auto)
///     .on_log_failure(OnLogFailure::Degrade)
///     .linger(Duration::ZERO)
///     .ttl(Duration::from_secs(600))
///     .lease(Duration::from_secs(15))
///     .orphan_after(Some(Duration::from_secs(60)))
///     .link_secret(b"the same on every gateway")
///     .cors_origin("https://app.example")
///     .allow_host("gateway.lan")
///     .max_n(16)
///     .max_body(1 << 20)
///     .max_stream_bytes(1 << 20)
///     .max_memory(64 << 20)
///     .max_streams(100)
///     .max_streams_per_principal(10)
///     .max_readers(8)
///     .reader_stall(Duration::from_secs(10))
///     .first_byte_timeout(Duration::from_secs(60))
///     .idle_timeout(Duration::from_secs(30))
///     .retries(0)
///     .proxy_from_env(false)
///     .ping(Duration::from_secs(15))
///     .max_connection_age(None)
///     .drain_timeout(Duration::from_secs(5))
///     .pass_through(false)
///     .serve_metrics(true)
///     .public_path("/llm")
///     .build()?;
/// assert!(!format!("{gateway:?}").contains("a key"));
/// # Ok(())
/// # }
/// ```
///
/// An auth file, a log of your own and certificates are options, too:
///
/// ```no_run
/// use std::sync::Arc;
/// use unbraid_gateway::Gateway;
/// use unbraid_log::{MemoryLog, MemoryOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder("https://llm.internal/v1")
///     .auth_file("/etc/unbraid/keys")
///     .log(Arc::new(MemoryLog::new(MemoryOptions::default())))
///     .upstream_root(std::fs::read("/etc/ssl/internal.pem")?)
///     .any_address()
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct GatewayBuilder {
    upstream: String,
    upstream_key: Option<String>,
    upstream_key_header: Option<String>,
    upstream_roots: Vec<Vec<u8>>,
    cors_origins: Vec<String>,
    allowed_hosts: Vec<String>,
    options: Options,
}

macro_rules! options {
    ($($(#[$doc:meta])* $method:ident($argument:ident: $type:ty): $field:ident;)*) => {
        impl GatewayBuilder {
            $($(#[$doc])*
            pub fn $method(mut self, $argument: $type) -> Self {
                self.options.$field = $argument;
                self
            })*
        }
    };
}

options! {
    /// Sets how `n` choices are requested: [`FanOut::Auto`] unless set. The header `X-Stream-Fan-Out` overrides it for
    /// one request.
    fan_out(fan_out: FanOut): fan_out;
    /// Sets what happens if the log fails: [`OnLogFailure::Degrade`] unless set.
    on_log_failure(policy: OnLogFailure): on_log_failure;
    /// Sets how long to wait for more events before an append: not at all unless set. A log in memory, and one that fails,
    /// delivers events at once.
    linger(linger: Duration): linger;
    /// Sets how long a stream is kept after its end: one hour unless set. A log that is given by [`log`](Self::log) has
    /// a lifetime of its own.
    ttl(ttl: Duration): ttl;
    /// Sets how long a producer may be out of contact with the log before it is declared lost: 15 s unless set. It must not
    /// be zero.
    lease(lease: Duration): lease;
    /// Sets after how long without a reader a generation is cancelled: never unless set. It does not apply to
    /// `respond-async`. The header `X-Stream-Orphan-After` overrides it for one request.
    orphan_after(after: Option<Duration>): orphan_after;
    /// Sets the largest `n` of a request: 128 unless set. It must not be zero.
    max_n(n: u32): max_n;
    /// Sets the largest body of a request, in bytes: 32 MiB unless set. It must not be zero.
    max_body(bytes: usize): max_body;
    /// Sets how many bytes of one stream are kept before it ends as `limit_exceeded`: 64 MiB unless set. It
    /// must not be zero.
    max_stream_bytes(bytes: u64): max_stream_bytes;
    /// Sets how many bytes all streams may take in the memory log: 1 GiB unless set. Above it the oldest ended streams
    /// are evicted, then new requests get 503. The bodies of requests may take as much.
    max_memory(bytes: u64): max_memory;
    /// Sets how many generations may run at once: 2,000 unless set. With zero, requests for a stream get 429.
    max_streams(streams: usize): max_streams;
    /// Sets how many generations of one principal may run at once: 256 unless set.
    max_streams_per_principal(streams: usize): max_streams_per_principal;
    /// Sets how many readers one stream may have at once: 64 unless set. It must not be zero.
    max_readers(readers: usize): max_readers;
    /// Sets how long a reader may accept no data before it is disconnected: 30 s unless set. It must not be zero.
    reader_stall(stall: Duration): reader_stall;
    /// Sets how long the head of an upstream's response may take: 600 s unless set. It must not be zero.
    first_byte_timeout(timeout: Duration): first_byte_timeout;
    /// Sets how long an upstream may be silent: 300 s unless set. It must not be zero.
    idle_timeout(timeout: Duration): idle_timeout;
    /// Sets how often a request is sent again if no answer can have begun: 0 unless set, because clients retry, and two
    /// layers of retries multiply.
    retries(retries: u32): retries;
    /// Sets whether the upstream is reached through the proxy that `HTTP_PROXY` and the like name: true unless set.
    proxy_from_env(enabled: bool): proxy_from_env;
    /// Sets the silence after which a view sends a ping: 15 s unless set; zero for no pings.
    ping(ping: Duration): ping;
    /// Sets after how long a view closes, so that its client resumes: 300 s unless set; `None` for never.
    max_connection_age(age: Option<Duration>): max_connection_age;
    /// Sets how long running generations may continue once the gateway drains: 30 s unless set.
    drain_timeout(drain: Duration): drain;
    /// Sets whether every other path below `/v1/` is forwarded unchanged: false unless set.
    pass_through(pass_through: bool): pass_through;
    /// Sets whether `/metrics` is one of the gateway's own paths: true unless set. [`Gateway::metrics`] has the text
    /// either way.
    serve_metrics(serve: bool): serves_metrics;
}

impl GatewayBuilder {
    pub(crate) fn new(upstream: String) -> Self {
        Self {
            upstream,
            upstream_key: None,
            upstream_key_header: None,
            upstream_roots: Vec::new(),
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            options: Options::default(),
        }
    }

    /// Sets the provider's key. It is sent as `Authorization: Bearer`, in place of the client's.
    pub fn upstream_key(mut self, key: impl Into<String>) -> Self {
        self.upstream_key = Some(key.into());
        self
    }

    /// Sets the header that carries the bare key, in place of `Authorization`. An empty name stands for `Authorization`.
    pub fn upstream_key_header(mut self, name: impl Into<String>) -> Self {
        self.upstream_key_header = Some(name.into());
        self
    }

    /// Trusts a further root certificate of the upstream, in PEM or DER.
    pub fn upstream_root(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.upstream_roots.push(certificate.into());
        self
    }

    /// Sets where streams are kept: a memory log unless set.
    pub fn log(mut self, log: Arc<dyn LogStore>) -> Self {
        self.options.log = Some(log);
        self
    }

    /// Requires a key of this file for each request: `name sha256:<64 hexadecimal digits>` on each line.
    pub fn auth_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.auth_file = Some(path.into());
        self
    }

    /// Sets the secret that signs links, of 16 bytes or more without the white space around it: a random one unless set.
    /// Gateways that share a log need the same.
    pub fn link_secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.options.link_secret = Some(secret.as_ref().trim_ascii().to_vec());
        self
    }

    /// Lets the pages of this origin read answers.
    pub fn cors_origin(mut self, origin: impl Into<String>) -> Self {
        self.cors_origins.push(origin.into());
        self
    }

    /// Accepts this `Host`, with any port, where the gateway has no auth file.
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.allowed_hosts.push(name.into());
        self
    }

    /// Accepts any IP address as `Host` where the gateway has no auth file, for one that listens on other addresses than
    /// loopback. Names are still refused, because DNS rebinding needs one.
    pub fn any_address(mut self) -> Self {
        self.options.any_address = true;
        self
    }

    /// Sets the path below which the gateway is mounted, for the addresses in its answers: empty unless set.
    pub fn public_path(mut self, path: impl Into<String>) -> Self {
        let path: String = path.into();
        path.trim_end_matches('/')
            .clone_into(&mut self.options.public_path);
        self
    }

    /// Builds the gateway, and starts its actors in the runtime of this thread.
    ///
    /// # Errors
    ///
    /// An option that is not valid, a file that cannot be read, or [`BuildError::NoRuntime`].
    pub fn build(self) -> Result<Gateway, BuildError> {
        let cors = Cors::new(
            self.cors_origins
                .iter()
                .map(|origin| parse_origin(origin))
                .collect::<Result<_, _>>()?,
        );
        let names = self.allowed_hosts.iter().map(|name| parse_host(name));
        let hosts = AllowedHosts {
            names: names.collect::<Result<_, _>>()?,
            any_address: self.options.any_address,
        };
        self.options.check_zeros()?;
        let config = Config {
            upstream: parse_upstream(&self.upstream)?,
            upstream_key: self.key_header()?,
            upstream_roots: self.upstream_roots,
            options: self.options.with_bounded_durations(),
        };
        Gateway::new(config, hosts, cors)
    }

    fn key_header(&self) -> Result<Option<(HeaderName, HeaderValue)>, BuildError> {
        // The name is checked without a key, too: a wrong one is a mistake, whatever else is missing.
        let name = self.upstream_key_header.as_deref().map(str::trim);
        let name = name
            .filter(|name| !name.is_empty())
            .map(HeaderName::try_from)
            .transpose()
            .map_err(|_| BuildError::UpstreamKey)?;
        let key = self.upstream_key.as_deref().map(str::trim);
        let Some(key) = key.filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        let (name, value) = match name {
            Some(name) => (name, key.to_owned()),
            None => (AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| BuildError::UpstreamKey)?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

/// Shows no key and no address, which may contain one.
impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").finish_non_exhaustive()
    }
}

fn parse_upstream(text: &str) -> Result<Url, BuildError> {
    let error = |why: String| BuildError::Upstream { why };
    match Url::parse(text.trim()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && !url.cannot_be_a_base() => Ok(url),
        Err(parse) if text.contains("://") => Err(error(parse.to_string())),
        // `localhost:8000` parses as a URL with the scheme `localhost`; `127.0.0.1:8000` does not parse.
        _ => Err(error("it does not begin with http:// or https://".into())),
    }
}

fn parse_origin(text: &str) -> Result<HeaderValue, BuildError> {
    let url = Url::parse(text).map_err(|_| BuildError::Origin)?;
    let origin = url.origin().ascii_serialization();
    if !url.origin().is_tuple() || text.trim_end_matches('/') != origin {
        return Err(BuildError::Origin);
    }
    HeaderValue::try_from(origin).map_err(|_| BuildError::Origin)
}

fn parse_host(text: &str) -> Result<String, BuildError> {
    let authority: Authority = text.parse().map_err(|_| BuildError::Host)?;
    if text.is_empty() || authority.host() != text {
        return Err(BuildError::Host);
    }
    Ok(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_scheme_and_a_host_and_no_path() {
        for origin in ["https://app.example", "http://localhost:3000"] {
            assert_eq!(parse_origin(origin).unwrap(), origin);
        }
        for origin in ["*", "app.example", "https://app.example/x", "null", ""] {
            assert!(parse_origin(origin).is_err(), "{origin}");
        }
    }

    #[test]
    fn an_allowed_host_has_no_port() {
        assert_eq!(parse_host("Gateway.LAN").unwrap(), "gateway.lan");
        for host in ["", "a:80", "a/b", "http://a"] {
            assert!(parse_host(host).is_err(), "{host}");
        }
    }

    #[test]
    fn an_upstream_is_an_http_url() {
        assert!(parse_upstream("http://127.0.0.1:8000/v1").is_ok());
        for url in [
            "",
            "localhost:8000",
            "127.0.0.1:8000/v1",
            "vllm/v1",
            "ftp://a",
        ] {
            let error = parse_upstream(url).unwrap_err().to_string();
            assert!(
                error.contains("does not begin with http://"),
                "{url}: {error}"
            );
        }
        let error = parse_upstream("http://").unwrap_err().to_string();
        assert!(error.contains("empty host"), "{error}");
    }
}
