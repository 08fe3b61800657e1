//! The providers whose interfaces a client supports, and what distinguishes their requests.

use std::{env, fmt, str::FromStr};

use unbraid::Dialect;

/// The interface of a provider: where a request is sent, how the key is sent, and which JSON is expected.
///
/// [`Client::builder_for`](crate::Client::builder_for) creates a client for it. Each interface is also offered by other
/// servers, at another base URL.
///
/// # Examples
///
/// ```
/// use unbraid_http::{Client, Provider};
///
/// assert_eq!("anthropic".parse(), Ok(Provider::Anthropic));
/// assert_eq!(Provider::Gemini.to_string(), "gemini");
/// assert!("claude".parse::<Provider>().is_err());
/// for provider in Provider::ALL {
///     let client = Client::builder_for(provider).api_key("a key").build()?;
///     # drop(client);
/// }
/// # Ok::<(), unbraid_http::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// Chat and text completions, of OpenAI and everything compatible.
    #[default]
    OpenAi,
    /// The Responses API of OpenAI.
    Responses,
    /// The Messages API of Anthropic.
    Anthropic,
    /// `streamGenerateContent` of Gemini.
    Gemini,
    /// `/api/chat` and `/api/generate` of Ollama.
    Ollama,
    /// `/v2/chat` of Cohere.
    Cohere,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 6] = [
        Self::OpenAi,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Cohere,
    ];

    /// Returns the name, which [`FromStr`] reads.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Provider::OpenAi.as_str(), "openai");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Cohere => "cohere",
        }
    }

    /// Returns the dialect of its answers, `None` for OpenAI, which has one for chat and one for text completions.
    ///
    /// A client recognizes the dialect by the body: a gateway may answer in another one.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::Dialect;
    /// use unbraid_http::Provider;
    ///
    /// assert_eq!(Provider::Cohere.dialect(), Some(Dialect::Cohere));
    /// assert_eq!(Provider::OpenAi.dialect(), None);
    /// ```
    #[must_use]
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::OpenAi => None,
            Self::Responses => Some(Dialect::Responses),
            Self::Anthropic => Some(Dialect::Anthropic),
            Self::Gemini => Some(Dialect::Gemini),
            Self::Ollama => Some(Dialect::Ollama),
            Self::Cohere => Some(Dialect::Cohere),
        }
    }

    /// Returns the base URL of a client without any other configuration.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Provider::Ollama.default_base_url(), "http://localhost:11434");
    /// ```
    #[must_use]
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://localhost:11434",
            Self::Cohere => "https://api.cohere.com",
        }
    }

    /// Returns the environment variables of the key, of which the first that is set and not empty counts. They are those of
    /// the provider's own SDK.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Provider::Anthropic.key_variables(), ["ANTHROPIC_API_KEY"]);
    /// ```
    #[must_use]
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi | Self::Responses => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Self::Ollama => &["OLLAMA_API_KEY"],
            Self::Cohere => &["CO_API_KEY", "COHERE_API_KEY"],
        }
    }

    /// Returns the environment variable of the base URL, that of the provider's own SDK.
    ///
    /// `OLLAMA_HOST` may lack the scheme and the port: `127.0.0.1` is `http://127.0.0.1:11434`.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_http::Provider::Ollama.base_url_variable(), "OLLAMA_HOST");
    /// ```
    #[must_use]
    pub fn base_url_variable(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GOOGLE_GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
            Self::Cohere => "CO_API_URL",
        }
    }

    /// The value of the first of these variables that is set and not empty.
    pub(crate) fn variable(names: &[&str]) -> Option<String> {
        let values = names.iter().filter_map(env::var_os);
        let value = values.into_iter().find(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    }

    /// The base URL that a variable names.
    pub(crate) fn base_url_of(self, value: String) -> String {
        match self {
            Self::Ollama => ollama_host(&value),
            Self::OpenAi | Self::Responses | Self::Anthropic | Self::Gemini | Self::Cohere => value,
        }
    }

    /// The header that carries the bare key, where it is not a bearer token.
    pub(crate) fn key_header(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("x-api-key"),
            Self::Gemini => Some("x-goog-api-key"),
            Self::OpenAi | Self::Responses | Self::Ollama | Self::Cohere => None,
        }
    }

    /// The header that names the version of the interface.
    pub(crate) fn version_header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Anthropic => Some(("anthropic-version", "2023-06-01")),
            Self::OpenAi | Self::Responses | Self::Gemini | Self::Ollama | Self::Cohere => None,
        }
    }

    /// The content type of a streamed answer.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            Self::OpenAi | Self::Responses | Self::Anthropic | Self::Gemini | Self::Cohere => {
                "text/event-stream"
            }
        }
    }

    /// Returns whether one request can ask for several choices.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Provider;
    ///
    /// assert!(Provider::Gemini.has_n() && !Provider::Anthropic.has_n());
    /// ```
    #[must_use]
    pub fn has_n(self) -> bool {
        match self {
            Self::OpenAi | Self::Gemini => true,
            Self::Responses | Self::Anthropic | Self::Ollama | Self::Cohere => false,
        }
    }

    /// Where a body has its seed.
    pub(crate) fn seed_path(self) -> (Option<&'static str>, &'static str) {
        match self {
            Self::Gemini => (Some("generationConfig"), "seed"),
            Self::Ollama => (Some("options"), "seed"),
            Self::OpenAi | Self::Responses | Self::Anthropic | Self::Cohere => (None, "seed"),
        }
    }
}

/// `OLLAMA_HOST` as a base URL. Scheme, host and port are optional; a URL has the port of its scheme, as in Ollama itself.
fn ollama_host(value: &str) -> String {
    let value = value.trim();
    if value.contains("://") {
        return value.to_owned();
    }
    let (authority, path) = value.split_at(value.find('/').unwrap_or(value.len()));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    // The colons of an IPv6 address are inside of brackets.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => (host, port),
        _ => (authority.trim_end_matches(':'), "11434"),
    };
    let host = if host.is_empty() { "localhost" } else { host };
    format!("http://{host}:{port}{path}")
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let mut all = Self::ALL.into_iter();
        all.find(|provider| provider.as_str() == name)
            .ok_or(UnknownProvider)
    }
}

/// The error of a name that is not a [`Provider`].
///
/// # Examples
///
/// ```
/// use unbraid_http::{Provider, UnknownProvider};
///
/// assert_eq!("claude".parse::<Provider>(), Err(UnknownProvider));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider: expected openai, responses, anthropic, gemini, ollama or cohere")]
pub struct UnknownProvider;

#[cfg(test)]
mod tests;
