//! The options of `unbraid serve`. Each has an environment variable: `UNBRAID_` and its name.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueHint;
use unbraid_gateway::{FanOut, GatewayBuilder, OnLogFailure};

use super::{
    log::{LogKind, LogOptions},
    resolve,
    values::{OrNever, duration, duration_or_never, flag, non_zero, number, size},
};
use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(in crate::commands) struct ServeArgs {
    /// The base URL of the upstream, to which `chat/completions` is appended
    #[arg(long, env = "UNBRAID_UPSTREAM", hide_env_values = true, value_name = "URL", value_hint = ValueHint::Url)]
    #[arg(required_unless_present = "new_key")]
    pub(super) upstream: Option<String>,
    /// A file with the provider's key; otherwise the key is read from the variable UNBRAID_UPSTREAM_KEY
    #[arg(long, env = "UNBRAID_UPSTREAM_KEY_FILE", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) upstream_key_file: Option<PathBuf>,
    /// The header that carries the bare key, in place of `Authorization`
    #[arg(
        long,
        env = "UNBRAID_UPSTREAM_KEY_HEADER",
        hide_env_values = true,
        value_name = "NAME"
    )]
    upstream_key_header: Option<String>,
    /// The address to listen on; port 0 picks a free port
    #[arg(
        long,
        env = "UNBRAID_LISTEN",
        hide_env_values = true,
        value_name = "ADDR",
        default_value = "127.0.0.1:8080"
    )]
    listen: String,
    /// The certificate chain, in PEM
    #[arg(long, env = "UNBRAID_TLS_CERT", hide_env_values = true, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, env = "UNBRAID_TLS_KEY", hide_env_values = true, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// How `n` choices are requested: by `n`, by one request for each (the prompt is billed n times), or by what works
    #[arg(long, env = "UNBRAID_FAN_OUT", hide_env_values = true, value_name = "native|auto|always", default_value = "auto", value_parser = fan_out)]
    fan_out: FanOut,
    /// Where streams are kept: `memory`, `file:PATH`, `redis://..`, `rediss://..`, `nats://..` or `tls://..` (NATS). Gateways
    /// with the same log read, resume and cancel each other's streams
    #[arg(
        long,
        env = "UNBRAID_LOG",
        hide_env_values = true,
        value_name = "LOG",
        default_value = "memory"
    )]
    log: String,
    /// What separates deployments in a shared log. The memory log has no use for it
    #[arg(
        long,
        env = "UNBRAID_LOG_PREFIX",
        hide_env_values = true,
        value_name = "PREFIX",
        default_value = "unbraid"
    )]
    log_prefix: String,
    /// How many replicas of a shared log confirm an append. The memory log has none
    #[arg(
        long,
        env = "UNBRAID_LOG_REPLICAS",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 0
    )]
    log_replicas: u32,
    /// What happens if the log fails: answers continue from memory and are written later, or they end
    #[arg(long, env = "UNBRAID_ON_LOG_FAILURE", hide_env_values = true, value_name = "degrade|fail", default_value = "degrade", value_parser = on_log_failure)]
    on_log_failure: OnLogFailure,
    /// How long to wait for more events before an append, at most a third of the lease; the log in memory never waits
    #[arg(long, env = "UNBRAID_LINGER", hide_env_values = true, value_name = "DURATION", default_value = "0", value_parser = duration)]
    linger: Duration,
    /// How long a stream is kept after its end
    #[arg(long, env = "UNBRAID_TTL", hide_env_values = true, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    ttl: Duration,
    /// How long a producer may be out of contact with the log before it is declared lost
    #[arg(long, env = "UNBRAID_LEASE", hide_env_values = true, value_name = "DURATION", default_value = "15s", value_parser = non_zero(duration))]
    lease: Duration,
    /// Cancel a generation that has had no reader for this long
    #[arg(long, env = "UNBRAID_ORPHAN_AFTER", hide_env_values = true, value_name = "DURATION|never", default_value = "never", value_parser = duration_or_never)]
    orphan_after: OrNever,
    /// Require a key of this file: `name sha256:<64 hex>` on each line. It is read again on SIGHUP
    #[arg(long, env = "UNBRAID_AUTH_FILE", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    auth_file: Option<PathBuf>,
    /// Listen on other addresses than loopback although no key is required
    #[arg(long, env = "UNBRAID_INSECURE_NO_AUTH", hide_env_values = true, value_parser = flag)]
    insecure_no_auth: bool,
    /// A file with the secret that signs links; otherwise it is read from UNBRAID_LINK_SECRET, or random
    #[arg(long, env = "UNBRAID_LINK_SECRET_FILE", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) link_secret_file: Option<PathBuf>,
    /// Let the pages of this origin read answers; repeatable
    #[arg(
        long,
        env = "UNBRAID_CORS_ORIGIN",
        hide_env_values = true,
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    cors_origin: Vec<String>,
    /// Accept this `Host` where no key is required; repeatable
    #[arg(
        long,
        env = "UNBRAID_ALLOW_HOST",
        hide_env_values = true,
        value_name = "NAME",
        value_delimiter = ','
    )]
    allow_host: Vec<String>,
    /// The largest `n` of a request
    #[arg(
        long,
        env = "UNBRAID_MAX_N",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 128,
        value_parser = non_zero(number::<u32>)
    )]
    max_n: u32,
    /// The largest body of a request
    #[arg(long, env = "UNBRAID_MAX_BODY", hide_env_values = true, value_name = "SIZE", default_value = "32MiB", value_parser = non_zero(size))]
    max_body: u64,
    /// How much of one stream is kept before it ends as limit_exceeded
    #[arg(long, env = "UNBRAID_MAX_STREAM_BYTES", hide_env_values = true, value_name = "SIZE", default_value = "64MiB", value_parser = non_zero(size))]
    max_stream_bytes: u64,
    /// How much all streams may take; above it the oldest ended streams are evicted, then new requests get 503
    #[arg(long, env = "UNBRAID_MAX_MEMORY", hide_env_values = true, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    max_memory: u64,
    /// How many generations may run at once
    #[arg(
        long,
        env = "UNBRAID_MAX_STREAMS",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 2000
    )]
    max_streams: usize,
    /// How many generations of one key may run at once
    #[arg(
        long,
        env = "UNBRAID_MAX_STREAMS_PER_KEY",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 256
    )]
    max_streams_per_key: usize,
    /// How many readers one stream may have at once
    #[arg(
        long,
        env = "UNBRAID_MAX_READERS",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 64,
        value_parser = non_zero(number::<usize>)
    )]
    max_readers: usize,
    /// Disconnect a reader that accepts no data for this long
    #[arg(long, env = "UNBRAID_READER_STALL", hide_env_values = true, value_name = "DURATION", default_value = "30s", value_parser = non_zero(duration))]
    reader_stall: Duration,
    /// How long the head of the upstream's response may take
    #[arg(long, env = "UNBRAID_FIRST_BYTE_TIMEOUT", hide_env_values = true, value_name = "DURATION", default_value = "600s", value_parser = non_zero(duration))]
    first_byte_timeout: Duration,
    /// How long the upstream may be silent
    #[arg(long, env = "UNBRAID_IDLE_TIMEOUT", hide_env_values = true, value_name = "DURATION", default_value = "300s", value_parser = non_zero(duration))]
    idle_timeout: Duration,
    /// How often a request is sent again if no answer can have begun
    #[arg(
        long,
        env = "UNBRAID_RETRIES",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 0
    )]
    retries: u32,
    /// The silence after which a view sends a ping; 0 for never
    #[arg(long, env = "UNBRAID_PING", hide_env_values = true, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    ping: Duration,
    /// After how long a view closes, so that its client resumes; 0 for never
    #[arg(long, env = "UNBRAID_MAX_CONNECTION_AGE", hide_env_values = true, value_name = "DURATION", default_value = "300s", value_parser = duration)]
    max_connection_age: Duration,
    /// How long running generations may continue after SIGTERM
    #[arg(long, env = "UNBRAID_DRAIN", hide_env_values = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    drain: Duration,
    /// Serve /metrics on this address, without a key, in place of the main one
    #[arg(
        long,
        env = "UNBRAID_METRICS_LISTEN",
        hide_env_values = true,
        value_name = "ADDR"
    )]
    metrics_listen: Option<String>,
    /// Forward every other path below /v1/ unchanged
    #[arg(long, env = "UNBRAID_PASS_THROUGH", hide_env_values = true, value_parser = flag)]
    pass_through: bool,
    /// Print a new key and its line for the auth file, then exit
    #[arg(
        long,
        env = "UNBRAID_NEW_KEY",
        hide_env_values = true,
        value_name = "NAME"
    )]
    new_key: Option<String>,
}

impl ServeArgs {
    /// The name for a new key. An empty variable is one that is not set, and an empty argument is a mistake.
    pub(super) fn new_key(&self) -> Option<&str> {
        let name = self.new_key.as_deref();
        let is_variable = std::env::var_os("UNBRAID_NEW_KEY").is_some();
        name.filter(|name| !(name.is_empty() && is_variable))
    }

    pub(super) fn listen_address(&self) -> Result<SocketAddr, Failure> {
        resolve(&self.listen)
    }

    pub(super) fn metrics_address(&self) -> Result<Option<SocketAddr>, Failure> {
        self.metrics_listen.as_deref().map(resolve).transpose()
    }

    /// Without keys anybody who reaches the socket can spend the upstream's money.
    pub(super) fn check_authentication(&self, address: SocketAddr) -> Result<(), Failure> {
        if address.ip().is_loopback() || self.auth_file.is_some() || self.insecure_no_auth {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{address} is not a loopback address: serve needs --auth-file there, or --insecure-no-auth"
        )))
    }

    /// Where streams are kept.
    pub(super) fn log(&self) -> Result<LogKind, Failure> {
        let log = LogKind::parse(&self.log)?;
        log.check_options(self.log_options())?;
        Ok(log)
    }

    pub(super) fn log_options(&self) -> LogOptions<'_> {
        LogOptions {
            prefix: &self.log_prefix,
            replicas: self.log_replicas,
            ttl: self.ttl,
            lease: self.lease,
        }
    }

    pub(super) fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    pub(super) fn configure(&self, mut builder: GatewayBuilder) -> GatewayBuilder {
        builder = builder
            .fan_out(self.fan_out)
            .on_log_failure(self.on_log_failure)
            .linger(self.linger)
            .ttl(self.ttl)
            .lease(self.lease)
            .orphan_after(self.orphan_after.0)
            .max_n(self.max_n)
            .max_body(usize::try_from(self.max_body).unwrap_or(usize::MAX))
            .max_stream_bytes(self.max_stream_bytes)
            .max_memory(self.max_memory)
            .max_streams(self.max_streams)
            .max_streams_per_principal(self.max_streams_per_key)
            .max_readers(self.max_readers)
            .reader_stall(self.reader_stall)
            .first_byte_timeout(self.first_byte_timeout)
            .idle_timeout(self.idle_timeout)
            .retries(self.retries)
            .ping(self.ping)
            .max_connection_age(Some(self.max_connection_age).filter(|age| !age.is_zero()))
            .drain_timeout(self.drain)
            .pass_through(self.pass_through)
            .serve_metrics(self.metrics_listen.is_none());
        if let Some(name) = &self.upstream_key_header {
            builder = builder.upstream_key_header(name);
        }
        if let Some(path) = &self.auth_file {
            builder = builder.auth_file(path);
        }
        for origin in items(&self.cors_origin) {
            builder = builder.cors_origin(origin);
        }
        for name in items(&self.allow_host) {
            builder = builder.allow_host(name);
        }
        builder
    }
}

/// The items of a list. In a variable there may be white space around them, and an empty variable is an empty list.
fn items(list: &[String]) -> impl Iterator<Item = &str> {
    let items = list.iter().map(|item| item.trim());
    items.filter(|item| !item.is_empty())
}

fn fan_out(text: &str) -> Result<FanOut, String> {
    // `chat` accepts this name as well.
    let text = if text == "never" { "native" } else { text };
    text.parse().map_err(|_| "native, auto or always".into())
}

fn on_log_failure(text: &str) -> Result<OnLogFailure, String> {
    text.parse().map_err(|_| "degrade or fail".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_fan_out_are_those_of_chat() {
        for (name, expected) in [
            ("native", Ok(FanOut::Native)),
            ("never", Ok(FanOut::Native)),
            ("auto", Ok(FanOut::Auto)),
            ("always", Ok(FanOut::Always)),
            ("Never", Err("native, auto or always".to_owned())),
        ] {
            assert_eq!(fan_out(name), expected, "{name}");
        }
    }
}
