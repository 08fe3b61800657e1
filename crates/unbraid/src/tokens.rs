//! Counts tokens with tiktoken-rs: the tokenizer behind [`Tokenizer`]. Only with the feature `tokens`.
//!
//! Its tables are part of the binary; nothing is fetched. The first text of an encoding loads its table, which takes
//! about 0.1 s for `o200k_base` and 0.04 s for `cl100k_base` in a release build, and then keeps it for the process.

use std::sync::Arc;

use tiktoken_rs::{
    CoreBPE, cl100k_base_singleton, o200k_base_singleton, p50k_base_singleton, r50k_base_singleton,
    tokenizer::{self, get_tokenizer},
};
use tokio::runtime::Handle;
use unbraid_core::{
    ChoiceIndex, Framing, Metadata, Prompt, Tokenizer, Usage, estimate_for, estimate_with,
};

use crate::{
    apart::apart,
    state::{choice_log::Log, completion::Board},
};

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
    /// `o200k_base`: gpt-4o and everything since. It stands in for models whose own encoding is not public.
    #[default]
    O200k,
    /// `cl100k_base`: gpt-4, gpt-3.5-turbo.
    Cl100k,
    /// `p50k_base`: the code and text models of 2022.
    P50k,
    /// `r50k_base`: GPT-3 and GPT-2.
    R50k,
}

/// Bytes that are tokenized at once, if a text can be cut so that the count stays the same. It bounds what a text
/// without gaps costs, and more: a million spaces in one piece overflow the tokenizer's regular expression.
const PIECE_BYTES: usize = 8 * 1024;

impl Encoding {
    /// The encoding of a model, if it is known. A provider's prefix (`openai/`) and a variant (`:extended`) are left out.
    #[must_use]
    pub fn for_model(model: &str) -> Option<Self> {
        let name = model.rsplit('/').next()?;
        let name = name.strip_prefix("openai.").unwrap_or(name);
        let (plain, _) = name.split_once(':').unwrap_or((name, ""));
        let tokenizer = get_tokenizer(name).or_else(|| get_tokenizer(plain))?;
        Some(match tokenizer {
            // They differ in their special tokens only, which no text has.
            tokenizer::Tokenizer::O200kBase | tokenizer::Tokenizer::O200kHarmony => Self::O200k,
            tokenizer::Tokenizer::Cl100kBase => Self::Cl100k,
            tokenizer::Tokenizer::P50kBase | tokenizer::Tokenizer::P50kEdit => Self::P50k,
            tokenizer::Tokenizer::R50kBase | tokenizer::Tokenizer::Gpt2 => Self::R50k,
        })
    }

    /// The encoding of an answer: that of the model that it names, or else the request, or else [`O200k`](Self::O200k).
    ///
    /// The answer's model comes first, since a request may name a deployment.
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

    fn table(self) -> &'static CoreBPE {
        match self {
            Self::O200k => o200k_base_singleton(),
            Self::Cl100k => cl100k_base_singleton(),
            Self::P50k => p50k_base_singleton(),
            Self::R50k => r50k_base_singleton(),
        }
    }
}

/// Text that looks like a special token is counted as text. Calls and tools are counted as OpenAI's models write them.
impl Tokenizer for Encoding {
    fn count(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let table = self.table();
        pieces(text)
            .map(|piece| table.count_ordinary(piece) as u64)
            .sum()
    }

    fn framing(&self) -> Framing {
        Framing::OpenAi
    }
}

/// What counts the tokens of one answer: an encoding, which may stand in for another, and what frames the calls.
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
    /// By the first model that is known, of the answer and of the request; see [`Encoding::for_response`].
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

    /// The encoding that texts are counted with.
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

/// Before the last single space between two words: every encoding begins a token there, so that nothing changes the
/// count. Without one, between two characters, which may cost a token or two.
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

/// The usage of a stream that has closed, with what was not reported counted on a thread that may block.
///
/// It never fails: without a runtime it is what was reported. If no thread begins in time, since all of them are taken or
/// the runtime is shutting down, it is counted on the task: those threads may wait for this very count.
pub(crate) async fn estimated(board: &Board, reported: Usage) -> Usage {
    let estimated = board.read(|listing| Arc::clone(&listing.estimated));
    let counted = estimated.get_or_try_init(|| async {
        Handle::try_current().map_err(|_| Uncounted)?;
        let count = Count::new(board, reported.clone());
        let counted = apart(count, |count| count.run()).await;
        counted.result.map_err(|_panic| Uncounted)
    });
    counted.await.cloned().unwrap_or(reported)
}

/// Nobody could count.
struct Uncounted;

/// What counting needs.
struct Count {
    /// One, or each of several sources that are joined: its reported usage, and its choices.
    sources: Vec<(Usage, Vec<Log>)>,
    prompt: Arc<Prompt>,
    counter: Counter,
}

impl Count {
    fn new(board: &Board, reported: Usage) -> Self {
        board.read(|listing| Self {
            sources: match &listing.joined {
                None => vec![(reported, listing.choices.clone())],
                Some(joined) => joined
                    .spoke()
                    .map(|known| (known.usage.clone(), known.logs.clone()))
                    .collect(),
            },
            prompt: Arc::clone(&listing.prompt),
            counter: Counter::for_response(&listing.metadata, &listing.prompt),
        })
    }

    fn run(&self) -> Usage {
        let several = self.sources.len() > 1;
        Usage::sum(self.sources.iter().map(|(reported, logs)| {
            let indices: Vec<ChoiceIndex> = logs.iter().map(Log::index).collect();
            let choices = logs.iter().zip(&indices);
            let choices = choices.map(|(log, index)| (*index, || self.tokens(log)));
            if several {
                estimate_with(reported, || self.prompt_of(&indices), choices)
            } else {
                estimate_for(reported, &self.prompt, &self.counter, choices)
            }
        }))
    }

    /// The tokens of the prompt that one of several sources was sent: of a list, as a fan-out sends it, the prompts that
    /// its choices answer.
    fn prompt_of(&self, choices: &[ChoiceIndex]) -> Option<u64> {
        let Some(n) = self.prompt.choices_per_prompt() else {
            return self.prompt.tokens(&self.counter);
        };
        let answered = |at| {
            choices
                .iter()
                .any(|choice| choice.split_by_prompt(n).0 == at)
        };
        let tokens = self.prompt.tokens_of(answered, &self.counter);
        // Choices beyond the list show that the source has another numbering.
        tokens
            .filter(|tokens| *tokens > 0)
            .or_else(|| self.prompt.tokens(&self.counter))
    }

    /// Copies the text, so that nobody who reads the log waits while it is counted.
    fn tokens(&self, log: &Log) -> u64 {
        let (message, discarded) = log.read(|record| {
            let transcript = &record.transcript;
            (transcript.message(), transcript.discarded_tokens())
        });
        let answer = self.prompt.completion_tokens(&message, &self.counter);
        answer.saturating_add(discarded)
    }
}

#[cfg(test)]
mod tests;
