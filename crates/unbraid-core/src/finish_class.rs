//! `FinishClass`: what a finish reason means, across the words of all providers (F11).

use crate::{ChoiceEnd, FinishReason};

/// What a finish reason means, across providers: see [`FinishReason::class`].
///
/// # Examples
///
/// ```
/// use unbraid_core::{FinishClass, FinishReason};
///
/// assert_eq!(FinishReason::from("MAX_TOKENS").class(), FinishClass::Length);
/// assert_eq!(FinishClass::Length.as_str(), "length");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishClass {
    /// The answer is complete.
    Stop,
    /// A limit on tokens cut the answer.
    Length,
    /// The model wants its calls answered.
    ToolCalls,
    /// A filter cut the answer, or the model refused.
    ContentFilter,
    /// The provider failed.
    Error,
    /// The word is unknown, or means something else.
    Other,
}

impl FinishClass {
    /// The name in lower case: `stop`, `length`, `tool_calls`, `content_filter`, `error` or `other`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Error => "error",
            Self::Other => "other",
        }
    }

    /// Whether the answer was cut: by a limit, by a filter, or because the provider failed. Its last call may then lack
    /// arguments. An unknown word does not count: most of them mean that the answer is complete.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::FinishReason;
    ///
    /// assert!(FinishReason::from("max_tokens").class().is_cut());
    /// assert!(!FinishReason::from("tool_use").class().is_cut());
    /// ```
    #[must_use]
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter | Self::Error)
    }
}

/// The words of the providers. Each is compared without regard to case: Gemini and Cohere write capitals, and bridges
/// write either.
const WORDS: [(FinishClass, &[&str]); 5] = [
    (
        FinishClass::Stop,
        &[
            "stop",
            "eos",
            "eos_token",
            "end_turn",
            "stop_sequence",
            "pause_turn",
            "completed",
            "complete",
            "load",
            "unload",
            "finish",
            "stop_criteria_met",
        ],
    ),
    (
        FinishClass::Length,
        &[
            "length",
            "max_tokens",
            "max_output_tokens",
            "max_messages",
            "model_context_window_exceeded",
            "model_length",
            "continuation",
        ],
    ),
    (
        FinishClass::ToolCalls,
        &["tool_calls", "tool_call", "tool_use", "function_call"],
    ),
    (
        FinishClass::ContentFilter,
        &[
            "content_filter",
            "content_filtered",
            "refusal",
            "sensitive",
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "model_armor",
            "language",
            "image_safety",
            "image_prohibited_content",
            "image_recitation",
            "escalation",
            "guardrail_intervened",
        ],
    ),
    (
        FinishClass::Error,
        &[
            "error",
            "network_error",
            "insufficient_system_resource",
            "timeout",
        ],
    ),
];

impl FinishReason {
    /// What the reason means, across the words of all providers. The raw text is unchanged: see [`as_str`](Self::as_str).
    ///
    /// The case of letters does not matter. An unknown word is [`FinishClass::Other`].
    ///
    /// | class | words |
    /// |---|---|
    /// | `Stop` | `stop`, `eos`, `eos_token`, `end_turn`, `stop_sequence`, `pause_turn`, `completed`, `complete`, `load`, `unload`, `finish`, `stop_criteria_met` |
    /// | `Length` | `length`, `max_tokens`, `max_output_tokens`, `max_messages`, `model_context_window_exceeded`, `model_length`, `continuation` |
    /// | `ToolCalls` | `tool_calls`, `tool_call`, `tool_use`, `function_call` |
    /// | `ContentFilter` | `content_filter`, `content_filtered`, `refusal`, `sensitive`, `safety`, `recitation`, `blocklist`, `prohibited_content`, `spii`, `model_armor`, `language`, `image_safety`, `image_prohibited_content`, `image_recitation`, `escalation`, `guardrail_intervened` |
    /// | `Error` | `error`, `network_error`, `insufficient_system_resource`, `timeout` |
    ///
    /// The class is that of the word alone. Some providers report calls with a word for a complete answer: whether a
    /// choice wants its calls answered is said by [`ChoiceOutcome::derived_reason`](crate::ChoiceOutcome::derived_reason).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{FinishClass, FinishReason};
    ///
    /// let reason = FinishReason::from("end_turn");
    /// assert_eq!((reason.class(), reason.as_str()), (FinishClass::Stop, "end_turn"));
    /// assert_eq!(FinishReason::from("abort").class(), FinishClass::Other);
    /// ```
    #[must_use]
    pub fn class(&self) -> FinishClass {
        let raw = self.as_str();
        let known = WORDS
            .iter()
            .find(|(_, words)| words.iter().any(|word| word.eq_ignore_ascii_case(raw)));
        known.map_or(FinishClass::Other, |(class, _)| *class)
    }
}

impl ChoiceEnd {
    /// Whether the server has reported that the answer is complete: the choice finished, for a reason of the
    /// [class](FinishReason::class) `Stop` or `ToolCalls`.
    ///
    /// Not complete are an answer that a limit on tokens or a filter cut, one that ended without a reason, one whose reason is
    /// unknown, and every error.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceEnd, FinishReason};
    ///
    /// assert!(ChoiceEnd::Finished(FinishReason::from("end_turn")).is_complete());
    /// assert!(!ChoiceEnd::Finished(FinishReason::Length).is_complete());
    /// assert!(!ChoiceEnd::DoneWithoutFinish.is_complete());
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let Self::Finished(reason) = self else {
            return false;
        };
        match reason.class() {
            FinishClass::Stop | FinishClass::ToolCalls => true,
            FinishClass::Length
            | FinishClass::ContentFilter
            | FinishClass::Error
            | FinishClass::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, LimitExceeded};

    #[track_caller]
    fn check(class: FinishClass, words: &[&str]) {
        for word in words {
            for raw in [word.to_lowercase(), word.to_uppercase(), (*word).to_owned()] {
                let reason = FinishReason::from(raw.as_str());
                assert_eq!(reason.class(), class, "{raw}");
                assert_eq!(reason.as_str(), raw, "the raw text is kept");
            }
        }
    }

    #[test]
    fn f11_the_words_of_every_provider_have_a_class() {
        let anthropic = ["end_turn", "stop_sequence", "pause_turn"];
        check(FinishClass::Stop, &anthropic);
        check(
            FinishClass::Stop,
            &["stop", "eos", "eos_token", "completed"],
        );
        check(
            FinishClass::Stop,
            &["COMPLETE", "FINISH", "STOP_CRITERIA_MET"],
        );
        check(FinishClass::Length, &["length", "max_tokens", "MAX_TOKENS"]);
        check(FinishClass::Length, &["model_context_window_exceeded"]);
        check(FinishClass::Length, &["max_output_tokens", "CONTINUATION"]);
        check(FinishClass::ToolCalls, &["tool_calls", "function_call"]);
        check(FinishClass::ToolCalls, &["tool_use", "TOOL_CALL"]);
        check(FinishClass::ContentFilter, &["content_filter", "refusal"]);
        check(
            FinishClass::ContentFilter,
            &["SAFETY", "RECITATION", "SPII"],
        );
        check(FinishClass::ContentFilter, &["guardrail_intervened"]);
        check(FinishClass::Error, &["error", "network_error", "TIMEOUT"]);
        check(FinishClass::Error, &["insufficient_system_resource"]);
    }

    #[test]
    fn f11_f13_any_other_text_is_other() {
        let unknown = ["abort", "cancelled", "OTHER", "MALFORMED_FUNCTION_CALL"];
        check(FinishClass::Other, &unknown);
        check(
            FinishClass::Other,
            &["", "128008", "{\"a\":1}", " stop", "stop."],
        );
    }

    #[test]
    fn f11_no_word_is_in_two_rows() {
        let mut words: Vec<&str> = WORDS
            .iter()
            .flat_map(|(_, words)| *words)
            .copied()
            .collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn only_a_reason_that_is_known_to_be_good_is_a_complete_answer() {
        let finished = |word: &str| ChoiceEnd::Finished(word.into());
        for word in ["stop", "end_turn", "STOP", "tool_calls", "function_call"] {
            assert!(finished(word).is_complete(), "{word}");
        }
        let cut = ["length", "MAX_TOKENS", "content_filter", "SAFETY", "error"];
        for word in cut.into_iter().chain(["abort", "OTHER", ""]) {
            assert!(!finished(word).is_complete(), "{word}");
            assert!(!finished(word).is_error(), "{word}");
        }
        let limit = LimitExceeded {
            limit: Limit::ChoiceBytes,
            max: 1,
        };
        for end in [
            ChoiceEnd::DoneWithoutFinish,
            ChoiceEnd::Interrupted,
            ChoiceEnd::Cancelled,
            ChoiceEnd::LimitExceeded(limit),
            ChoiceEnd::Lost,
        ] {
            assert!(!end.is_complete(), "{end}");
        }
    }
}
