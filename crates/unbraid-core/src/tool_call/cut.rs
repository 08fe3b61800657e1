//! Which ends of a choice may have cut its calls.

use crate::{ChoiceEnd, FinishReason};

/// Whether a choice may have ended before its calls were complete.
///
/// An unknown finish reason counts as the model's own end: most of them mean `stop` (F11).
pub(crate) fn cuts_calls(end: &ChoiceEnd) -> bool {
    match end {
        ChoiceEnd::Finished(reason) => reason_cuts(reason),
        ChoiceEnd::DoneWithoutFinish
        | ChoiceEnd::Interrupted
        | ChoiceEnd::ServerError(_)
        | ChoiceEnd::Transport(_)
        | ChoiceEnd::Cancelled
        | ChoiceEnd::TimedOut(_)
        | ChoiceEnd::LimitExceeded(_)
        | ChoiceEnd::Lost => true,
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
    fn check(reason: &str, expected: bool) {
        assert_eq!(
            cuts_calls(&ChoiceEnd::Finished(reason.into())),
            expected,
            "{reason}"
        );
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
            check(reason, false);
        }
        for reason in [
            "length",
            "content_filter",
            "max_tokens",
            "MAX_TOKENS",
            "SAFETY",
            "error",
        ] {
            check(reason, true);
        }
    }

    #[test]
    fn every_end_without_a_reason_cuts_a_call() {
        for end in [
            ChoiceEnd::DoneWithoutFinish,
            ChoiceEnd::Interrupted,
            ChoiceEnd::Cancelled,
            ChoiceEnd::Lost,
        ] {
            assert!(cuts_calls(&end), "{}", end.as_str());
        }
    }
}
