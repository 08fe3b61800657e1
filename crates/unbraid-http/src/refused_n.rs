//! Recognizes a provider's refusal of several choices.

use crate::status::{ErrorBody, StatusError, is_exception_of_n};

/// A provider refuses `n`. If this guess is wrong, each of the single requests is refused for the actual reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedN {
    /// Whether it refuses this `n` only, because it is above a maximum: `n must be less than or equal to 8`. A smaller `n` may be
    /// accepted, so the model is not one that gives a single choice.
    pub permits_fewer: bool,
}

impl RefusedN {
    /// Recognizes the refusal in the answer to a request for `n` choices.
    #[must_use]
    pub fn find(status: u16, body: &str, n: u32) -> Option<Self> {
        let body = ErrorBody::parse(body);
        Self::of(status, body.param.as_deref(), body.message.as_deref(), n)
    }

    pub(crate) fn of_status(error: &StatusError, n: u32) -> Option<Self> {
        Self::of(error.status(), error.param(), error.message(), n)
    }

    fn of(status: u16, param: Option<&str>, message: Option<&str>, n: u32) -> Option<Self> {
        let is_refusal = match status {
            400 | 404 | 422 | 501 => is_about_n(param, message),
            _ => message.is_some_and(|message| is_exception_of_n(status, message)),
        };
        is_refusal.then(|| Self {
            permits_fewer: message.is_some_and(|text| names_maximum(text, n)),
        })
    }
}

/// Whether a message refuses several choices in words. `multiple choices` alone is also the meaning of the status 300.
fn says_single_choice(message: &str) -> bool {
    const CHOICES: [&str; 7] = [
        "one completion choice",
        "one choice",
        "single choice",
        "single completion",
        "multiple choices",
        "multiple completions",
        "number of choices",
    ];
    const REFUSALS: [&str; 8] = [
        "only",
        "support",
        "allowed",
        "must be",
        "must not",
        "cannot",
        "not enabled",
        "not available",
    ];
    let message = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
    has(&CHOICES) && has(&REFUSALS)
}

/// Where the error names a parameter, the message may quote other names: a schema with a property `n`.
fn is_about_n(param: Option<&str>, message: Option<&str>) -> bool {
    // LiteLLM sends the word `None` for a parameter that it does not know.
    let is_named = |param: &&str| !matches!(*param, "" | "None" | "null" | "none");
    let param = param.filter(is_named);
    match (param, message) {
        (Some(param), _) => mentions_n(param),
        (None, Some(message)) => mentions_n(message) || says_single_choice(message),
        (None, None) => false,
    }
}

/// Providers write ``Only `n=1` is supported``, `'n' : number must be at most 1`, `n_cmpl cannot be greater than ..`,
/// `Multiple candidates is not enabled for this model`.
fn mentions_n(message: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = message.split(|c| !is_name(c));
    words.any(|word| {
        matches!(
            word,
            "n" | "n_cmpl"
                | "num_choices"
                | "num_generations"
                | "num_return_sequences"
                | "best_of"
                | "candidates"
                | "candidateCount"
                | "candidate_count"
        )
    })
}

/// Whether the message names a maximum that permits several choices: a number between 1 and `n`. The wording differs between
/// providers. If this guess is wrong, the next request tries `n` once more.
fn names_maximum(message: &str, n: u32) -> bool {
    // The numbers in the name of a model, such as `gemini-2.5-flash`, are a part of a longer word.
    let words = message.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '.')));
    let mut words = words.map(|word| word.trim_end_matches('.'));
    words.any(|word| word.parse().is_ok_and(|max: u32| 1 < max && max < n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_mentions_n_as_a_word() {
        for message in [
            "Only `n=1` is supported by this model.",
            "'n' : number must be at most 1",
            "body.n: Input should be 1",
            "n_cmpl cannot be greater than the number of slots",
            "best_of must be 1",
            "Multiple candidates is not enabled for this model",
            "Invalid value at 'generation_config.candidate_count'",
        ] {
            assert!(mentions_n(message), "{message}");
        }
        for message in ["The model `nn` does not exist", "no route", ""] {
            assert!(!mentions_n(message), "{message}");
        }
    }

    #[test]
    fn an_exception_of_llama_cpp_is_a_refusal() {
        let message = "Only one completion choice is allowed";
        for status in [400, 500] {
            let body = format!(
                r#"{{"error":{{"code":{status},"message":"{message}","type":"server_error"}}}}"#
            );
            check(status, &body, Some(false));
        }
        check(503, &format!(r#"{{"error":"{message}"}}"#), None);
        for message in [
            "multiple choices not supported",
            "num_generations must be 1",
        ] {
            check(400, &format!(r#"{{"message":"{message}"}}"#), Some(false));
        }
        check(
            400,
            r#"{"message":"upstream returned 300 Multiple Choices"}"#,
            None,
        );
        // Of another failure of a server, `n` is only a word.
        check(
            500,
            r#"{"error":{"message":"n is out of range","param":"n"}}"#,
            None,
        );
    }

    #[test]
    fn a_maximum_of_several_choices_is_below_n() {
        for message in [
            "n must be less than or equal to 8",
            "maximum value of n is 8",
            "Invalid 'n': integer above maximum value. Expected a value <= 8, but got 9 instead.",
            "n_cmpl cannot be greater than the number of slots (8)",
            "candidateCount must be in [1, 8]",
        ] {
            assert!(names_maximum(message, 9), "{message}");
        }
        for message in [
            "Only `n=1` is supported by this model.",
            "'n' : number must be at most 1",
            "n must be 1, not 9",
            "Multiple candidates is not enabled for gemini-2.5-flash",
            "",
        ] {
            assert!(!names_maximum(message, 9), "{message}");
        }
    }

    #[test]
    fn the_parameter_that_an_error_names_decides() {
        let message = Some("Invalid schema: property 'n' has no type.");
        assert!(!is_about_n(Some("tools[0].function.parameters"), message));
        assert!(is_about_n(Some("n"), Some("Too large.")));
        for unknown in ["", "None", "null"] {
            assert!(is_about_n(Some(unknown), Some("'n' must be 1")));
        }
        assert!(is_about_n(None, Some("'n' must be 1")));
        assert!(!is_about_n(None, None));
    }

    #[track_caller]
    fn check(status: u16, body: &str, permits_fewer: Option<bool>) {
        let refused = permits_fewer.map(|permits_fewer| RefusedN { permits_fewer });
        assert_eq!(RefusedN::find(status, body, 9), refused, "{body}");
    }

    #[test]
    fn a_refusal_is_found_in_every_form_of_an_error() {
        for body in [
            r#"{"error":{"message":"no","param":"n"}}"#,
            r#"{"error":{"message":"Only `n=1` is supported"}}"#,
            r#"{"error":{"message":"Only n=1 is supported","type":"None","param":"None","code":"400"}}"#,
            r#"{"detail":[{"loc":["body","n"],"msg":"Input should be 1"}]}"#,
            r#"{"detail":"n must be 1"}"#,
            r#"{"object":"error","message":"'n' : number must be at most 1"}"#,
            r#"{"error":"best_of must be 1"}"#,
            r#"[{"error":{"code":400,"message":"Multiple candidates is not enabled for this model"}}]"#,
        ] {
            check(400, body, Some(false));
            check(422, body, Some(false));
            check(401, body, None);
        }
        check(
            400,
            r#"{"error":{"message":"n must be at most 8"}}"#,
            Some(true),
        );
        for body in [
            r#"{"error":{"message":"The model `nn` does not exist"}}"#,
            r#"{"error":{"message":"property 'n' has no type","param":"tools[0].function"}}"#,
            r#"{"detail":[{"loc":["body","messages"],"msg":"the role n is unknown"}]}"#,
            "<html>",
        ] {
            check(400, body, None);
        }
    }
}
