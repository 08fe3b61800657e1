//! What a body without any choice appears to be: other providers' answers, and pages.

use std::fmt;

/// What a body appears to be.
///
/// It is is_chunk by the names of its fields, or by its first bytes, and serves to explain why no choice came.
///
/// # Examples
///
/// ```
/// use unbraid_core::{BodyFormat, Demux, Config, StreamError};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n\n");
/// demux.finish();
/// let Some(Err(StreamError::UnsupportedFormat { format, .. })) = demux.closed() else { panic!() };
/// assert_eq!(*format, BodyFormat::Anthropic);
/// assert_eq!(format.to_string(), "an Anthropic Messages body");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BodyFormat {
    /// Chat or text completions: what this library reads.
    Completion,
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Responses API of OpenAI.
    Responses,
    /// The Assistants API of OpenAI.
    Assistants,
    /// `generateContent` and `streamGenerateContent` of Gemini.
    Gemini,
    /// The native API of Ollama.
    Ollama,
    /// The chat API of Cohere.
    Cohere,
    /// Amazon Bedrock: its Converse API, and its binary event streams.
    Bedrock,
    /// The native API of Hugging Face's text-generation-inference.
    TextGenerationInference,
    /// The native completions of llama.cpp's server.
    LlamaCpp,
    /// A page of HTML, as proxies send it in place of an answer.
    Html,
    /// JSON of an unknown kind.
    Json,
}

impl BodyFormat {
    /// The name that the command prints.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::BodyFormat::Responses.as_str(), "responses");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Assistants => "assistants",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Cohere => "cohere",
            Self::Bedrock => "bedrock",
            Self::TextGenerationInference => "text_generation_inference",
            Self::LlamaCpp => "llama_cpp",
            Self::Html => "html",
            Self::Json => "json",
        }
    }
}

/// With its article, for the end of a sentence.
impl fmt::Display for BodyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completion => "a chat or text completion",
            Self::Anthropic => "an Anthropic Messages body",
            Self::Responses => "a Responses API object",
            Self::Assistants => "an Assistants API object",
            Self::Gemini => "a Gemini response",
            Self::Ollama => "an Ollama response",
            Self::Cohere => "a Cohere chat response",
            Self::Bedrock => "a Bedrock response",
            Self::TextGenerationInference => "a response of text-generation-inference",
            Self::LlamaCpp => "a native completion of llama.cpp",
            Self::Html => "an error page (HTML)",
            Self::Json => "JSON of an unknown kind",
        })
    }
}

/// The first bytes of a body, by which a page or a binary stream differs from an event stream.
#[derive(Default)]
pub(crate) struct Head(Vec<u8>);

/// Shows how many bytes it holds: they are payload.
impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({} bytes)", self.0.len())
    }
}

impl Head {
    /// Enough for a byte order mark, some blank lines and the first tag.
    const LENGTH: usize = 64;

    /// Takes the next bytes of the body, as long as some are missing.
    #[inline]
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.0.len() < Self::LENGTH {
            let missing = Self::LENGTH - self.0.len();
            self.0
                .extend_from_slice(bytes.get(..missing).unwrap_or(bytes));
        }
    }

    /// What the body appears to be, if its first bytes show it.
    pub(crate) fn format(&self) -> Option<BodyFormat> {
        const TAGS: [&[u8]; 12] = [
            b"<!doctype html",
            b"<!--",
            b"<html",
            b"<head",
            b"<body",
            b"<title",
            b"<meta",
            b"<script",
            b"<style",
            b"<center",
            b"<div",
            b"<h1",
        ];
        let head = self.0.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.0);
        let text = head.trim_ascii_start();
        let begins = |tag: &&[u8]| {
            text.get(..tag.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(tag))
        };
        let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
        if TAGS.iter().any(begins) {
            Some(BodyFormat::Html)
        } else if head.starts_with(&[0, 0]) && (has(b":event-type") || has(b":message-type")) {
            // The first bytes are a length, those behind them the names of headers.
            Some(BodyFormat::Bedrock)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
