//! Reported usage: merged field by field, the last value of each, never summed (U1 to U11). What is missing can be
//! estimated.

mod calls;
mod estimate;
mod exact;
mod fields;
mod prompt;
mod reported;
mod sum;
mod tools;

use exact::Exact;
use serde_json::Value;

pub use calls::Framing;
pub use estimate::{
    BYTES_PER_TOKEN, Estimated, Tokenizer, completion_tokens, estimate, estimate_for,
    estimate_with, prompt_tokens,
};
pub use prompt::Prompt;

pub(crate) use exact::may_differ;
pub(crate) use reported::{Known, Reported, Source};

use crate::ChoiceIndex;

/// Where the figures come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UsageSource {
    /// The server reported none, and none was estimated.
    #[default]
    Absent,
    /// The server reported it.
    Reported,
    /// It was counted here.
    Estimated,
    /// Some figures were reported and others counted; [`Usage::estimated`] tells which.
    Mixed,
}

impl UsageSource {
    /// The name that the command prints: `absent`, `reported`, `estimated` or `mixed`.
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

/// Tokens of a completion. What is not known is `None`, never 0.
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
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of all choices.
    pub completion_tokens: Option<u64>,
    /// The total as the server gave it; it need not be the sum (U11).
    pub total_tokens: Option<u64>,
    /// Completion tokens of single choices, where the server told them apart or they were estimated.
    pub per_choice: Vec<(ChoiceIndex, u64)>,
    /// Tokens of single prompts by their position in the request's list, where the server reported one by one (E15).
    pub prompts: Vec<(u32, u64)>,
    /// The reported completion is the sum over single choices: a choice without a report of its own is missing in it.
    pub by_choice: bool,
    /// The server reported fewer completion tokens than deltas with text came (U15).
    pub below_received: bool,
    /// Completion tokens as they were counted here, beside a reported figure that is below what was received (U15).
    pub counted: Option<u64>,
    /// Reported, estimated, or neither.
    pub source: UsageSource,
    /// Which figures were estimated; the others were reported.
    pub estimated: Estimated,
    /// All fields that were reported, merged, unknown ones included; `null` if none came. Nothing estimated is in it.
    /// A number that a `Value` has no room for is the nearest `f64`; [`raw_json`](Self::raw_json) has it as it came.
    pub raw: Value,
    exact: Exact,
}

#[cfg(test)]
mod tests;
