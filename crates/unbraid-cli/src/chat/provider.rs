//! Who is asked: address, key, patience.

use std::{convert::Infallible, fmt, time::Duration};

use clap::ValueHint;
use unbraid::CompletionsBuilder;
use unbraid_http::{BuildError, Client, ClientBuilder};

/// The endpoint. What is not given comes from the environment.
#[derive(Debug, clap::Args)]
pub(crate) struct Provider {
    /// The address below which `chat/completions` stands; else OPENAI_BASE_URL, else OpenAI's
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    base_url: Option<String>,
    /// The key; it is safer in OPENAI_API_KEY, since others may see a command line
    #[arg(long, value_name = "KEY", value_parser = key)]
    api_key: Option<Key>,
    /// Give up after so long, whatever has come
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Give up when the server is silent for so long: while connecting, before its answer, or within it; never by default
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle_timeout: Option<Duration>,
    /// How long the first byte may take, connecting included; --idle-timeout if that is given, else 600
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    first_byte_timeout: Option<Duration>,
    /// How often a request that was not answered is sent again; 2 if this is not given
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
}

/// A key, which nothing prints.
#[derive(Clone)]
struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Provider {
    /// A client for this endpoint, whose streams are read by these settings.
    pub(super) fn client(&self, settings: CompletionsBuilder) -> Result<Client, BuildError> {
        let mut client = ClientBuilder::from_env().stream_config(settings);
        if let Some(url) = &self.base_url {
            client = client.base_url(url);
        }
        if let Some(Key(key)) = &self.api_key {
            client = client.api_key(key);
        }
        if let Some(after) = self.timeout {
            client = client.total_timeout(after);
        }
        if let Some(after) = self.first_byte_timeout {
            client = client.first_byte_timeout(after);
        }
        if let Some(after) = self.idle_timeout {
            client = client.idle_timeout(after);
        }
        if let Some(retries) = self.retries {
            client = client.retries(retries);
        }
        client.build()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what clap takes for a parser")]
fn key(text: &str) -> Result<Key, Infallible> {
    Ok(Key(text.to_owned()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    crate::args::number(text, 0.001..=1_000_000.0).map(Duration::from_secs_f64)
}
