//! The provider: its address, the key, and the timeouts.

use std::{convert::Infallible, fmt, time::Duration};

use clap::ValueHint;
use unbraid::CompletionsBuilder;
use unbraid_http::{BuildError, Client, ClientBuilder, limits::RETRIES};

const HEADING: &str = "Provider";

/// The endpoint.
#[derive(Debug, clap::Args)]
pub(super) struct ProviderArgs {
    /// The base URL, to which `chat/completions` is appended
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "URL",
        value_hint = ValueHint::Url,
        env = "OPENAI_BASE_URL",
        hide_env_values = true,
        default_value = "https://api.openai.com/v1"
    )]
    base_url: String,
    /// The API key; the variable is safer, because other users may see a command line
    #[arg(long, help_heading = HEADING, value_name = "KEY", value_parser = key, env = "OPENAI_API_KEY", hide_env_values = true)]
    api_key: Option<Key>,
    /// Give up after this time, even if data arrives
    #[arg(long, help_heading = HEADING, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Give up when the server is silent for this time: while connecting, before its answer, or within it
    #[arg(long, help_heading = HEADING, value_name = "SECONDS", value_parser = seconds)]
    idle_timeout: Option<Duration>,
    /// How long the first byte may take, connecting included; without it, `--idle-timeout` applies, or else 600 seconds
    #[arg(long, help_heading = HEADING, value_name = "SECONDS", value_parser = seconds)]
    first_byte_timeout: Option<Duration>,
    /// How often a request without an answer is retried
    #[arg(long, help_heading = HEADING, value_name = "N", default_value_t = RETRIES)]
    retries: u32,
}

/// An API key, which is never printed.
#[derive(Clone)]
struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl ProviderArgs {
    /// Creates a client for this endpoint. It reads streams with this builder.
    pub(super) fn client(&self, builder: CompletionsBuilder) -> Result<Client, BuildError> {
        let mut client = ClientBuilder::from_env().stream_config(builder);
        // An empty variable counts as unset, as in other clients.
        if !self.base_url.is_empty() {
            client = client.base_url(&self.base_url);
        }
        if let Some(Key(key)) = self.api_key.as_ref().filter(|key| !key.0.is_empty()) {
            client = client.api_key(key);
        }
        if let Some(timeout) = self.timeout {
            client = client.total_timeout(timeout);
        }
        if let Some(timeout) = self.first_byte_timeout {
            client = client.first_byte_timeout(timeout);
        }
        if let Some(timeout) = self.idle_timeout {
            client = client.idle_timeout(timeout);
        }
        client.retries(self.retries).build()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
fn key(text: &str) -> Result<Key, Infallible> {
    Ok(Key(text.to_owned()))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    crate::args::number(text, 0.001..=1_000_000.0).map(Duration::from_secs_f64)
}
