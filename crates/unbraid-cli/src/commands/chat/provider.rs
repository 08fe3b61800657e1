//! The provider: its address, the key, and the timeouts.

use std::{convert::Infallible, fmt, time::Duration};

use clap::{ArgMatches, Command, Error, FromArgMatches, ValueHint, parser::ValueSource};
use unbraid::CompletionsBuilder;
use unbraid_http::{BuildError, Client, Provider, limits::RETRIES};

use super::question::{MAX_COMPLETION_TOKENS, MAX_TOKENS};

const HEADING: &str = "Provider";

const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The endpoint, and which of its values the command line has. The others are of OpenAI's variables or defaults, and are not
/// for another provider.
#[derive(Debug)]
pub(super) struct ProviderArgs {
    values: ProviderValues,
    has_base_url: bool,
    has_api_key: bool,
}

#[derive(Debug, clap::Args)]
struct ProviderValues {
    /// The base URL, to which `chat/completions` is appended, or with `--provider` the path of that provider
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "URL",
        value_hint = ValueHint::Url,
        env = "OPENAI_BASE_URL",
        hide_env_values = true,
        default_value = DEFAULT_BASE_URL
    )]
    base_url: String,
    /// The API key; the variable is safer, because other users may see a command line. With `--provider` the variables are those
    /// of the provider's own SDK
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
    /// Creates a client for a provider. It reads streams with this builder.
    pub(super) fn client(
        &self,
        provider: Provider,
        builder: CompletionsBuilder,
    ) -> Result<Client, BuildError> {
        let values = &self.values;
        let mut client = Client::builder_for(provider).env().stream_config(builder);
        // An empty value counts as unset, as in other clients.
        if self.has_base_url && !values.base_url.is_empty() {
            client = client.base_url(&values.base_url);
        }
        let key = values.api_key.as_ref().filter(|_| self.has_api_key);
        if let Some(Key(key)) = key.filter(|key| !key.0.is_empty()) {
            client = client.api_key(key);
        }
        if let Some(timeout) = values.timeout {
            client = client.total_timeout(timeout);
        }
        if let Some(timeout) = values.first_byte_timeout {
            client = client.first_byte_timeout(timeout);
        }
        if let Some(timeout) = values.idle_timeout {
            client = client.idle_timeout(timeout);
        }
        client.retries(values.retries).build()
    }

    /// Sets the timeouts of the streams of several providers.
    pub(super) fn with_timeouts(&self, mut builder: CompletionsBuilder) -> CompletionsBuilder {
        if let Some(timeout) = self.values.timeout {
            builder = builder.total_timeout(timeout);
        }
        if let Some(timeout) = self.values.idle_timeout {
            builder = builder.idle_timeout(timeout);
        }
        builder
    }

    /// The name of the limit of tokens in a chat with the interface of OpenAI. The translation for another provider takes either.
    ///
    /// The models of OpenAI that reason refuse `max_tokens`, also at Azure. Other servers may know only that name.
    pub(super) fn limit_name(&self) -> &'static str {
        let url = Some(self.values.base_url.as_str()).filter(|url| !url.is_empty());
        match is_openai(url.unwrap_or(DEFAULT_BASE_URL)) {
            true => MAX_COMPLETION_TOKENS,
            false => MAX_TOKENS,
        }
    }

    /// An option that concerns one provider only, if the command line has one.
    pub(super) fn of_one_provider(&self) -> Option<&'static str> {
        match (self.has_base_url, self.has_api_key) {
            (true, _) => Some("--base-url"),
            (_, true) => Some("--api-key"),
            _ => None,
        }
    }
}

impl FromArgMatches for ProviderArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let has = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        Ok(Self {
            values: ProviderValues::from_arg_matches(matches)?,
            has_base_url: has("base_url"),
            has_api_key: has("api_key"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for ProviderArgs {
    fn augment_args(command: Command) -> Command {
        ProviderValues::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ProviderValues::augment_args_for_update(command)
    }
}

/// Whether an address is one of OpenAI, or of a resource at Azure.
fn is_openai(base_url: &str) -> bool {
    const HOSTS: [&str; 4] = [
        "api.openai.com",
        "openai.azure.com",
        "services.ai.azure.com",
        "cognitiveservices.azure.com",
    ];
    let Ok(url) = reqwest::Url::parse(base_url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let is_of = |name: &str| {
        // `eu.api.openai.com` is one of OpenAI's regions.
        host.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    HOSTS.into_iter().any(is_of)
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
fn key(text: &str) -> Result<Key, Infallible> {
    Ok(Key(text.to_owned()))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    crate::args::number(text, 0.001..=1_000_000.0).map(Duration::from_secs_f64)
}
