//! Counts tokens with tiktoken-rs: the tokenizer behind [`CountTokens`]. Only with the feature `tokens`.
//!
//! Its tables are part of the binary; nothing is fetched. The first text of an encoding loads its table, which takes
//! about 0.1 s for `o200k_base` and 0.04 s for `cl100k_base` in a release build, and then keeps it for the process.

use std::sync::Arc;

use tiktoken_rs::{
    CoreBPE, cl100k_base_singleton, o200k_base_singleton, p50k_base_singleton, r50k_base_singleton,
    tokenizer::{Tokenizer, get_tokenizer},
};
use tokio::{runtime::Handle, task::JoinError};
use unbraid_core::{CountTokens, Usage, completion_tokens, estimate_with};

use crate::{board::Board, log::Log};

/// How a family of models cuts text into tokens.
///
/// # Examples
///
/// ```
/// use unbraid::{CountTokens, tokens::Encoding};
///
/// let encoding = Encoding::of_model("openai/gpt-4o-2024-08-06").unwrap();
/// assert_eq!(encoding.name(), "o200k_base");
/// assert_eq!(encoding.count("tiktoken is great!"), 6);
/// assert_eq!(Encoding::of_model("llama-3.1-8b"), None);
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
    pub fn of_model(model: &str) -> Option<Self> {
        let name = model.rsplit('/').next()?;
        let name = name.strip_prefix("openai.").unwrap_or(name);
        let (plain, _) = name.split_once(':').unwrap_or((name, ""));
        let tokenizer = get_tokenizer(name).or_else(|| get_tokenizer(plain))?;
        Some(match tokenizer {
            // They differ in their special tokens only, which no text has.
            Tokenizer::O200kBase | Tokenizer::O200kHarmony => Self::O200k,
            Tokenizer::Cl100kBase => Self::Cl100k,
            Tokenizer::P50kBase | Tokenizer::P50kEdit => Self::P50k,
            Tokenizer::R50kBase | Tokenizer::Gpt2 => Self::R50k,
        })
    }

    /// The encoding of the first model that is known, or else [`O200k`](Self::O200k).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::tokens::Encoding;
    ///
    /// assert_eq!(Encoding::of_first_known(["my-deployment", "gpt-4"]), Encoding::Cl100k);
    /// assert_eq!(Encoding::of_first_known(["qwen3-32b"]), Encoding::O200k);
    /// ```
    #[must_use]
    pub fn of_first_known<'m>(models: impl IntoIterator<Item = &'m str>) -> Self {
        let known = models.into_iter().find_map(Self::of_model);
        known.unwrap_or_default()
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

/// Text that looks like a special token is counted as text.
impl CountTokens for Encoding {
    fn count(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let table = self.table();
        pieces(text)
            .map(|piece| table.count_ordinary(piece) as u64)
            .sum()
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
/// It never fails: without a runtime, or in one that is shutting down, it is what was reported.
pub(crate) async fn estimated(board: &Board, reported: Usage) -> Usage {
    let estimated = board.read(|listing| Arc::clone(&listing.estimated));
    let counted = estimated.get_or_try_init(|| async {
        let runtime = Handle::try_current().map_err(|_| Uncounted)?;
        let count = Count::new(board, reported.clone());
        let counted = runtime.spawn_blocking(|| count.run()).await;
        counted.map_err(|_: JoinError| Uncounted)
    });
    counted.await.cloned().unwrap_or(reported)
}

/// Nobody could count.
struct Uncounted;

/// What counting needs.
struct Count {
    reported: Usage,
    logs: Vec<Arc<Log>>,
    prompt: Arc<unbraid_core::Prompt>,
    model: Option<Arc<str>>,
}

impl Count {
    fn new(board: &Board, reported: Usage) -> Self {
        board.read(|listing| Self {
            reported,
            logs: listing.choices.clone(),
            prompt: Arc::clone(&listing.prompt),
            model: listing.metadata.model.clone(),
        })
    }

    fn run(self) -> Usage {
        let models = self.model.as_deref().into_iter();
        let encoding = Encoding::of_first_known(models.chain(self.prompt.model()));
        let choices = self.logs.iter().map(|log| {
            let index = log.read(|record| record.transcript.index());
            (index, || tokens(log, encoding))
        });
        estimate_with(&self.reported, || self.prompt.tokens(&encoding), choices)
    }
}

/// Copies the text, so that nobody who reads the log waits while it is counted.
fn tokens(log: &Log, encoding: Encoding) -> u64 {
    let (message, discarded) = log.read(|record| {
        let transcript = &record.transcript;
        (transcript.message(), transcript.discarded_tokens())
    });
    completion_tokens(&message, &encoding).saturating_add(discarded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Encoding; 4] = [
        Encoding::O200k,
        Encoding::Cl100k,
        Encoding::P50k,
        Encoding::R50k,
    ];

    #[track_caller]
    fn check(encoding: Encoding, text: &str, expected: u64) {
        assert_eq!(encoding.count(text), expected, "{encoding:?}");
    }

    /// The page "How to count tokens with tiktoken" gives these.
    #[test]
    fn known_texts_have_their_known_counts() {
        for (text, r50k, cl100k, o200k) in [
            ("tiktoken is great!", 6, 6, 6),
            ("antidisestablishmentarianism", 5, 6, 6),
            ("2 + 2 = 4", 5, 7, 7),
            ("お誕生日おめでとう", 14, 9, 8),
        ] {
            check(Encoding::R50k, text, r50k);
            check(Encoding::Cl100k, text, cl100k);
            check(Encoding::O200k, text, o200k);
        }
        check(Encoding::O200k, "", 0);
    }

    #[test]
    fn text_that_looks_like_a_special_token_is_text() {
        assert!(Encoding::O200k.count("<|endoftext|>") > 1);
    }

    #[test]
    fn a_model_has_its_encoding_by_whatever_name() {
        for (model, expected) in [
            ("gpt-4o", Some(Encoding::O200k)),
            ("gpt-4o-mini-2024-07-18", Some(Encoding::O200k)),
            ("openai/gpt-4.1", Some(Encoding::O200k)),
            ("openrouter/openai/gpt-4o:extended", Some(Encoding::O200k)),
            ("openai.gpt-oss-120b-1:0", Some(Encoding::O200k)),
            ("gpt-5.1-codex", Some(Encoding::O200k)),
            ("o3-mini-2025-01-31", Some(Encoding::O200k)),
            ("gpt-4-0613", Some(Encoding::Cl100k)),
            ("azure/gpt-35-turbo-16k", Some(Encoding::Cl100k)),
            ("ft:gpt-3.5-turbo:me:x:1", Some(Encoding::Cl100k)),
            ("text-davinci-003", Some(Encoding::P50k)),
            ("code-davinci-edit-001", Some(Encoding::P50k)),
            ("davinci", Some(Encoding::R50k)),
            ("mistral-large-2411", None),
            ("", None),
        ] {
            assert_eq!(Encoding::of_model(model), expected, "{model}");
        }
    }

    #[test]
    fn a_cut_between_words_does_not_change_the_count() {
        let line = "It's 12 345 o'clock,  «déjà vu»: we'll\n\n  meet\u{a0}again  \n\t{\"a\": [1, 2]} // ok 雨 сегодня ! ";
        let text = line.repeat(600);
        assert!(pieces(&text).count() > 7);
        assert_eq!(pieces(&text).collect::<String>(), text);
        for encoding in ALL {
            let whole = encoding.table().count_ordinary(&text) as u64;
            check(encoding, &text, whole);
        }
    }

    #[test]
    fn a_text_without_gaps_is_cut_too() {
        for unit in ["a", " ", "\n", "雨", "!", "1", "\u{1f600}", " \n"] {
            let text = unit.repeat((256 << 10) / unit.len());
            assert!(pieces(&text).all(|piece| piece.len() <= PIECE_BYTES));
            assert_eq!(pieces(&text).map(str::len).sum::<usize>(), text.len());
            let whole = Encoding::Cl100k.table().count_ordinary(&text) as u64;
            let counted = Encoding::Cl100k.count(&text);
            let cuts = text.len().div_ceil(PIECE_BYTES) as u64;
            assert!(
                counted.abs_diff(whole) <= 2 * cuts,
                "{unit:?}: {counted}, {whole}"
            );
        }
    }

    #[test]
    fn a_million_spaces_do_not_overflow() {
        assert_eq!(Encoding::O200k.count(&" ".repeat(1 << 20)), 1 << 13);
    }
}
