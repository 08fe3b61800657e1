//! The tokenizers of OpenAI's models, with the tokens of tiktoken-rs. Only with the feature `tokens`.
//!
//! [`Encoding`] is one tokenizer; [`Counter`] chooses one by the model of a response.
//!
//! The tables are part of the binary, in the form in which they are read: nothing is fetched or loaded. The first text that an
//! encoding counts compiles a pattern, which takes some milliseconds.
//!
//! # Examples
//!
//! Count what a server did not report, with the encoding of the model:
//!
//! ```
//! # use futures::stream;
//! use unbraid::{Completions, tokens::Counter};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # let body = "data: {\"model\":\"gpt-4o\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"tiktoken is great!\"},\"finish_reason\":\"stop\"}]}\n\n";
//! # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
//! let completions = Completions::builder().tokenizer_for(Counter::for_response).from_byte_stream(bytes);
//! assert_eq!(completions.usage().await.completion_tokens, Some(6));
//! # }
//! ```

use tiktoken_rs::tokenizer::{self, get_tokenizer};
use unbraid_core::{Framing, Metadata, Prompt, Tokenizer};

use bpe::Bpe;

mod bpe;
mod layout;
mod table;

/// How a family of models cuts text into tokens.
///
/// # Examples
///
/// ```
/// use unbraid::{Tokenizer, tokens::Encoding};
///
/// let encoding = Encoding::for_model("openai/gpt-4o-2024-08-06").unwrap();
/// assert_eq!(encoding.name(), "o200k_base");
/// assert_eq!(encoding.count("tiktoken is great!"), 6);
/// assert_eq!(Encoding::for_model("llama-3.1-8b"), None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `o200k_base`: gpt-4o and everything since. It is also used for models whose own encoding is not public.
    #[default]
    O200k,
    /// `cl100k_base`: gpt-4, gpt-3.5-turbo.
    Cl100k,
    /// `p50k_base`: the code and text models of 2022.
    P50k,
    /// `r50k_base`: GPT-3 and GPT-2.
    R50k,
}

/// The number of bytes that are tokenized at once, if a text can be cut so that the count stays the same. It bounds the cost
/// of a text without gaps. A million spaces in one piece would even overflow the tokenizer's regular expression.
const PIECE_BYTES: usize = 8 * 1024;

impl Encoding {
    /// The encoding of a model, if it is known. A provider's prefix (`openai/`) and a variant (`:extended`) are ignored.
    ///
    /// # Examples
    ///
    /// See [`Encoding`].
    #[must_use]
    pub fn for_model(model: &str) -> Option<Self> {
        let name = model.rsplit('/').next()?;
        let name = name.strip_prefix("openai.").unwrap_or(name);
        let (base, _) = name.split_once(':').unwrap_or((name, ""));
        let tokenizer = get_tokenizer(name).or_else(|| get_tokenizer(base))?;
        Some(match tokenizer {
            // These differ in their special tokens only, and text is counted without those.
            tokenizer::Tokenizer::O200kBase | tokenizer::Tokenizer::O200kHarmony => Self::O200k,
            tokenizer::Tokenizer::Cl100kBase => Self::Cl100k,
            tokenizer::Tokenizer::P50kBase | tokenizer::Tokenizer::P50kEdit => Self::P50k,
            tokenizer::Tokenizer::R50kBase | tokenizer::Tokenizer::Gpt2 => Self::R50k,
        })
    }

    /// The encoding for a response: that of the model that the response names, or else the request, or else
    /// [`O200k`](Self::O200k).
    ///
    /// The response's model comes first, because a request may name a deployment.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid::{Demux, Config, Prompt, tokens::Encoding};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"model\":\"qwen3-32b\",\"choices\":[]}\n\n");
    /// assert_eq!(Encoding::for_response(demux.metadata(), &Prompt::default()), Encoding::O200k);
    /// let prompt = Prompt::from_request(&json!({ "model": "gpt-4" }));
    /// assert_eq!(Encoding::for_response(demux.metadata(), &prompt), Encoding::Cl100k);
    /// ```
    #[must_use]
    pub fn for_response(metadata: &Metadata, prompt: &Prompt) -> Self {
        Self::known(metadata, prompt).unwrap_or_default()
    }

    fn known(metadata: &Metadata, prompt: &Prompt) -> Option<Self> {
        let models = metadata.model.as_deref().into_iter().chain(prompt.model());
        models.into_iter().find_map(Self::for_model)
    }

    /// The name that OpenAI gives it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::P50k => "p50k_base",
            Self::R50k => "r50k_base",
        }
    }

    fn bpe(self) -> &'static Bpe {
        match self {
            Self::O200k => &bpe::O200K,
            Self::Cl100k => &bpe::CL100K,
            Self::P50k => &bpe::P50K,
            Self::R50k => &bpe::R50K,
        }
    }
}

/// Text that looks like a special token is counted as text. Calls and tools are counted as OpenAI's models write them.
impl Tokenizer for Encoding {
    fn count(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let bpe = self.bpe();
        pieces(text).map(|piece| bpe.count(piece) as u64).sum()
    }

    fn framing(&self) -> Framing {
        Framing::OpenAi
    }
}

/// The tokenizer for one response: an encoding, which approximates an unknown one, and the framing of the calls.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid::{Tokenizer, Framing, Metadata, Prompt, tokens::{Counter, Encoding}};
///
/// let counter = |model| Counter::for_response(&Metadata::default(), &Prompt::from_request(&json!({ "model": model })));
/// assert_eq!(counter("gpt-4o").framing(), Framing::OpenAi);
/// assert_eq!(counter("qwen3-32b").framing(), Framing::Other);
/// assert_eq!(counter("qwen3-32b").encoding(), Encoding::O200k);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counter {
    encoding: Encoding,
    framing: Framing,
}

impl Counter {
    /// The counter for the first model that is known, of the response and of the request; see [`Encoding::for_response`].
    #[must_use]
    pub fn for_response(metadata: &Metadata, prompt: &Prompt) -> Self {
        match Encoding::known(metadata, prompt) {
            Some(encoding) => Self {
                encoding,
                framing: Framing::OpenAi,
            },
            None => Self::default(),
        }
    }

    /// The encoding that counts the texts.
    #[must_use]
    pub fn encoding(self) -> Encoding {
        self.encoding
    }
}

impl Tokenizer for Counter {
    fn count(&self, text: &str) -> u64 {
        self.encoding.count(text)
    }

    fn framing(&self) -> Framing {
        self.framing
    }
}

/// Cuts a text into pieces of at most [`PIECE_BYTES`].
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, more) = rest.split_at(cut(rest));
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where to cut: before the last single space between two words, because every encoding begins a token there, so the count
/// stays the same. Without such a space, between two characters, which may cost a token or two.
fn cut(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let end = (0..=PIECE_BYTES)
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let (head, _) = text.split_at(end.unwrap_or(0));
    let word_at_end = |text: &str| !text.ends_with(char::is_whitespace);
    let word_at_start = |text: &str| !text.starts_with(char::is_whitespace);
    let gap = head.rmatch_indices(' ').map(|(at, _)| at).find(|at| {
        let (before, from) = text.split_at(*at);
        let after = from.strip_prefix(' ').unwrap_or(from);
        !before.is_empty() && word_at_end(before) && word_at_start(after)
    });
    gap.unwrap_or(head.len())
}

#[cfg(test)]
mod tests;
