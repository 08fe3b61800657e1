//! Token usage: merges what a stream reports field by field, and estimates what is missing.

mod by_finish;
mod calls;
pub(crate) mod estimate;
mod estimated;
mod exact;
mod fields;
mod names;
mod prompt;
mod reported;
mod reports;
mod search;
mod sum;
mod tokenizer;
mod tools;
mod unread;

use exact::Exact;
use serde_json::Value;

pub use estimated::Estimated;
pub use prompt::Prompt;
pub use sum::sum_across_dialects;
pub use tokenizer::{Framing, Tokenizer};

pub(crate) use exact::may_differ;
pub(crate) use reported::{Known, Reported, Source};
pub(crate) use unread::LastUsage;
pub use unread::UnreadUsage;

use crate::ChoiceIndex;

/// Where the numbers of a [`Usage`] come from.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Usage, UsageSource};
///
/// assert_eq!(Usage::default().source, UsageSource::Absent);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UsageSource {
    /// Nothing was reported or estimated.
    #[default]
    Absent,
    /// The server reported all of them.
    Reported,
    /// All of them were counted here.
    Estimated,
    /// Some numbers were reported and others counted; see [`Usage::estimated`].
    ///
    /// A [sum](Usage::sum) over several requests is also `Mixed` if their sources differ. If one was reported and one is
    /// [`Absent`](Self::Absent), nothing was counted, and the sums are `None`.
    Mixed,
}

impl UsageSource {
    /// Returns the name that the command prints: `absent`, `reported`, `estimated` or `mixed`.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::UsageSource::Estimated.as_str(), "estimated");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Reported => "reported",
            Self::Estimated => "estimated",
            Self::Mixed => "mixed",
        }
    }
}

/// The tokens of a completion. An unknown number is `None`, never 0.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config, UsageSource};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n");
/// demux.feed(b"data: [DONE]\n\n");
/// let usage = demux.usage();
/// assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(5), Some(2)));
/// assert_eq!(usage.source, UsageSource::Reported);
/// ```
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// The tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// The tokens of all choices.
    pub completion_tokens: Option<u64>,
    /// The total that the server reported, which need not be the sum (U11). The usage of a completion that has ended has the sum
    /// if no total was reported.
    pub total_tokens: Option<u64>,
    /// How many tokens of the prompt were read from a cache, if the server reported it.
    pub cached_tokens: Option<u64>,
    /// How many tokens of the completion are reasoning, if the server reported it.
    pub reasoning_tokens: Option<u64>,
    /// The completion tokens of single choices, if they were reported separately or estimated.
    pub per_choice: Vec<(ChoiceIndex, u64)>,
    /// The tokens of single prompts by their position in the request's list, if the server reported them separately
    /// (E15).
    pub prompts: Vec<(u32, u64)>,
    /// Whether `completion_tokens` is the sum of the reports of single choices, so that choices without a report are
    /// missing in it.
    pub by_choice: bool,
    /// Whether the server reported fewer completion tokens than deltas with text were received (U15).
    pub below_received: bool,
    /// The completion tokens that were counted here, if the reported number is below what was received (U15).
    pub counted: Option<u64>,
    /// Where the numbers come from.
    pub source: UsageSource,
    /// Which numbers were estimated. The others were reported.
    pub estimated: Estimated,
    /// All reported fields, merged, including unknown ones; `null` if none were reported. It contains no estimate. A
    /// number that a `Value` has no room for is the nearest `f64`; [`raw_json`](Self::raw_json) keeps its digits.
    pub raw: Value,
    exact: Exact,
}

#[cfg(test)]
mod tests;
