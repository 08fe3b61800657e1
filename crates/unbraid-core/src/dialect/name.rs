//! `Dialect`: which provider's format a stream has.

use std::{fmt, str::FromStr};

/// The format in which a provider streams an answer.
///
/// It is recognized by the first value of the body (D01 to D05), and [`Metadata::dialect`](crate::Metadata::dialect)
/// returns it. [`Config::dialect`](crate::Config::dialect) overrides it.
///
/// # Examples
///
/// ```
/// use unbraid_core::Dialect;
///
/// assert_eq!("anthropic".parse(), Ok(Dialect::Anthropic));
/// assert_eq!(Dialect::Responses.to_string(), "responses");
/// assert!("claude".parse::<Dialect>().is_err());
/// assert_eq!(Dialect::ALL.len(), 8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Chat completions: `choices[].delta`.
    Chat,
    /// Text completions: `choices[].text`. They are read together with chat completions.
    Text,
    /// The Responses API of OpenAI.
    Responses,
    /// The Messages API of Anthropic.
    Anthropic,
    /// `streamGenerateContent` of Gemini and Vertex AI.
    Gemini,
    /// `/api/chat` and `/api/generate` of Ollama.
    Ollama,
    /// `/v2/chat` of Cohere.
    Cohere,
    /// `ConverseStream` and `InvokeModelWithResponseStream` of Amazon Bedrock.
    Bedrock,
}

impl Dialect {
    /// Every dialect, in the order of their names' documentation.
    pub const ALL: [Self; 8] = [
        Self::Chat,
        Self::Text,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Cohere,
        Self::Bedrock,
    ];

    /// Returns the name, which [`FromStr`] reads.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::Dialect::Gemini.as_str(), "gemini");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Text => "text",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Cohere => "cohere",
            Self::Bedrock => "bedrock",
        }
    }

    /// Whether its events have `choices`.
    pub(crate) fn has_choices(self) -> bool {
        matches!(self, Self::Chat | Self::Text)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let mut all = Self::ALL.into_iter();
        all.find(|dialect| dialect.as_str() == name)
            .ok_or(UnknownDialect)
    }
}

/// The error of a name that is not a [`Dialect`].
///
/// # Examples
///
/// ```
/// use unbraid_core::{Dialect, UnknownDialect};
///
/// assert_eq!("gpt".parse::<Dialect>(), Err(UnknownDialect));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dialect: expected chat, text, responses, anthropic, gemini, ollama, cohere or bedrock"
)]
pub struct UnknownDialect;
