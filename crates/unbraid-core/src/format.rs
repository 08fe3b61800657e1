//! The format of a body without any choice: another provider's answer, or a page of HTML.

use std::fmt;

use arrayvec::ArrayVec;

/// The format of a body.
///
/// It is recognized by the names of the fields, or by the first bytes, and explains why a body has no choice.
///
/// # Examples
///
/// ```
/// use unbraid_core::{BodyFormat, Demux, Config, StreamError};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"content\":\"Hi\",\"stop\":false}\n\n");
/// demux.finish();
/// let Some(Err(StreamError::UnsupportedFormat { format, .. })) = demux.closed() else { panic!() };
/// assert_eq!(*format, BodyFormat::LlamaCpp);
/// assert_eq!(format.to_string(), "a native completion of llama.cpp");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BodyFormat {
    /// Chat or text completions: the format that this library reads.
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
    /// The first version of Cohere's chat API.
    CohereV1,
    /// The agents of Amazon Bedrock.
    BedrockAgents,
    /// The text completions of Anthropic.
    AnthropicCompletion,
    /// The conversations API of Mistral.
    MistralConversations,
    /// The Interactions API of Gemini.
    GeminiInteractions,
    /// The message stream that the AI SDK sends to its front ends.
    AiSdk,
    /// A session of a realtime API: OpenAI's Realtime, or Gemini's Live.
    Realtime,
    /// An HTML page, which proxies send in place of an answer.
    Html,
    /// JSON of an unknown kind.
    Json,
}

impl BodyFormat {
    /// Returns the name that the command prints.
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
            Self::CohereV1 => "cohere_v1",
            Self::BedrockAgents => "bedrock_agents",
            Self::AnthropicCompletion => "anthropic_completion",
            Self::MistralConversations => "mistral_conversations",
            Self::GeminiInteractions => "gemini_interactions",
            Self::AiSdk => "ai_sdk",
            Self::Realtime => "realtime",
            Self::Html => "html",
            Self::Json => "json",
        }
    }
}

/// Formats the name with its article, for the end of a sentence.
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
            Self::CohereV1 => "a stream of Cohere's /v1/chat",
            Self::BedrockAgents => "a stream of Bedrock Agents",
            Self::AnthropicCompletion => "a text completion of Anthropic",
            Self::MistralConversations => "a stream of Mistral's conversations API",
            Self::GeminiInteractions => "a stream of Gemini's Interactions API",
            Self::AiSdk => "a message stream of the AI SDK",
            Self::Realtime => "a session of a realtime API",
            Self::Html => "an error page (HTML)",
            Self::Json => "JSON of an unknown kind",
        })
    }
}

/// Enough for a byte order mark, some blank lines and the first tag.
pub(crate) const HEAD_BYTES: usize = 64;

/// The first bytes of a body, which distinguish a page or a binary stream from an event stream.
#[derive(Default)]
pub(crate) struct Head(ArrayVec<u8, HEAD_BYTES>);

/// Shows only the number of bytes, because they are payload.
impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({} bytes)", self.0.len())
    }
}

impl Head {
    /// Adds the next bytes of the body, up to the maximum.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let missing = self.0.remaining_capacity();
        if missing > 0 {
            self.0.extend(bytes.iter().copied().take(missing));
        }
    }

    /// The format of the body, if its first bytes show it.
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
        let starts_with = |tag: &&[u8]| {
            text.get(..tag.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(tag))
        };
        let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
        if TAGS.iter().any(starts_with) {
            Some(BodyFormat::Html)
        } else if head.starts_with(&[0, 0]) && (has(b":event-type") || has(b":message-type")) {
            // A message starts with its length, and the names of its headers follow.
            Some(BodyFormat::Bedrock)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
