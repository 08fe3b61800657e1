//! Which ends of a choice may have cut its calls.

use crate::{ChoiceEnd, FinishClass, FinishReason};

/// Which calls of a choice the end may have cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// None: the model ended the answer.
    None,
    /// The one that the model was writing: servers write one call after the other, up to the limit on tokens.
    Last,
    /// Any: what the model wrote of it may not have arrived.
    Any,
}

/// Which calls of a choice may have been incomplete when it ended.
///
/// An unknown finish reason counts as the model's own end: most of them mean `stop` (F11).
pub(crate) fn cut_of(end: &ChoiceEnd) -> Cut {
    match end {
        ChoiceEnd::Finished(reason) if reason.class() == FinishClass::Length => Cut::Last,
        ChoiceEnd::Finished(reason) if reason_cuts(reason) => Cut::Any,
        ChoiceEnd::Finished(_) => Cut::None,
        ChoiceEnd::DoneWithoutFinish
        | ChoiceEnd::Interrupted
        | ChoiceEnd::ServerError(_)
        | ChoiceEnd::Transport(_)
        | ChoiceEnd::Cancelled
        | ChoiceEnd::TimedOut(_)
        | ChoiceEnd::LimitExceeded(_)
        | ChoiceEnd::Lost => Cut::Any,
    }
}

/// Whether a finish reason means that the choice was cut.
pub(crate) fn reason_cuts(reason: &FinishReason) -> bool {
    reason.class().is_cut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reason: &str, expected: Cut) {
        let end = ChoiceEnd::Finished(reason.into());
        assert_eq!(cut_of(&end), expected, "{reason}");
        assert_eq!(reason_cuts(&reason.into()), expected != Cut::None);
    }

    #[test]
    fn f11_only_reasons_that_mean_a_cut_cut_a_call() {
        for reason in [
            "stop",
            "tool_calls",
            "function_call",
            "eos",
            "end_turn",
            "STOP",
            "128008",
        ] {
            check(reason, Cut::None);
        }
        for reason in ["length", "max_tokens", "MAX_TOKENS"] {
            check(reason, Cut::Last);
        }
        for reason in ["content_filter", "SAFETY", "error"] {
            check(reason, Cut::Any);
        }
    }

    #[test]
    fn every_end_without_a_reason_may_cut_any_call() {
        for end in [
            ChoiceEnd::DoneWithoutFinish,
            ChoiceEnd::Interrupted,
            ChoiceEnd::Cancelled,
            ChoiceEnd::Lost,
        ] {
            assert_eq!(cut_of(&end), Cut::Any, "{}", end.as_str());
        }
    }
}
