//! Counts tokens with the tokenizer of a model, which is a trait.

use crate::Message;

/// Counts the tokens of a text, as the tokenizer of a model does.
///
/// Every `Fn(&str) -> u64` implements it.
///
/// # Examples
///
/// ```
/// use unbraid_core::Tokenizer;
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// assert_eq!(words.count("tiktoken is great!"), 3);
/// ```
pub trait Tokenizer: Send + Sync {
    /// Returns the number of tokens of this text.
    fn count(&self, text: &str) -> u64;

    /// Returns how the model formats calls and tools. The default is [`Framing::Other`].
    fn framing(&self) -> Framing {
        Framing::Other
    }
}

impl<F: Fn(&str) -> u64 + Send + Sync> Tokenizer for F {
    fn count(&self, text: &str) -> u64 {
        self(text)
    }
}

/// How a family of models formats the calls of its tools.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Tokenizer, Framing};
///
/// struct Words;
///
/// impl Tokenizer for Words {
///     fn count(&self, text: &str) -> u64 {
///         text.split_whitespace().count() as u64
///     }
///
///     fn framing(&self) -> Framing {
///         Framing::OpenAi
///     }
/// }
///
/// assert_eq!(Framing::default(), Framing::Other);
/// # assert_eq!(Words.count("a b"), 2);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// As OpenAI's chat models do: the recipient `functions.NAME` precedes the arguments. Parallel calls are one call
    /// of `multi_tool_use.parallel` that contains them as JSON. Tools are declared to the model as TypeScript.
    OpenAi,
    /// Unknown: the name, the arguments, and the usual number of tokens around them.
    #[default]
    Other,
}

/// The tokens of an answer without its calls.
pub(super) fn texts_of(message: &Message, counter: &dyn Tokenizer) -> u64 {
    let texts = [&*message.content, &*message.reasoning, &*message.refusal];
    let spoken = message.audio.iter().map(|audio| &*audio.transcript);
    let all = texts.into_iter().chain(spoken);
    sum(all
        .filter(|text| !text.is_empty())
        .map(|text| counter.count(text)))
}

pub(super) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
