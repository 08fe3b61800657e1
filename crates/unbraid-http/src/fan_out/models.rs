//! Remembers which models return one choice only.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use crate::{limits::MAX_KNOWN_MODELS, status::StatusError};

/// The models for which the provider refused or ignored `n`.
#[derive(Debug, Default)]
pub(super) struct SingleChoiceModels(Mutex<BTreeSet<String>>);

impl SingleChoiceModels {
    pub(super) fn contains(&self, model: &str) -> bool {
        let models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.contains(model)
    }

    pub(super) fn insert(&self, model: &str) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A model that is not remembered costs one more request with `n` each time, which does no harm.
        if models.len() < MAX_KNOWN_MODELS {
            models.insert(model.to_owned());
        }
    }
}

/// Whether the provider refuses `n`. If this guess is wrong, each of the single requests is refused for the actual reason.
pub(super) fn refuses_n(status: &StatusError) -> bool {
    matches!(status.status(), 400 | 404 | 422 | 501) && is_about_n(status.param(), status.message())
}

/// Whether the provider refuses this `n` only, because it is above a maximum: `n must be less than or equal to 8`. Then a
/// smaller `n` may be accepted, so the model is not remembered.
///
/// The wording differs between providers, but a maximum that permits several choices is a number between 1 and `n`. If this guess
/// is wrong, the next request tries `n` once more.
pub(super) fn permits_fewer(status: &StatusError, n: u32) -> bool {
    status.message().is_some_and(|text| names_maximum(text, n))
}

fn names_maximum(message: &str, n: u32) -> bool {
    // The numbers in the name of a model, such as `gemini-2.5-flash`, are a part of a longer word.
    let words = message.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '.')));
    let mut words = words.map(|word| word.trim_end_matches('.'));
    words.any(|word| word.parse().is_ok_and(|max: u32| 1 < max && max < n))
}

/// Where the error names a parameter, the message may quote other names: a schema with a property `n`.
fn is_about_n(param: Option<&str>, message: Option<&str>) -> bool {
    let param = param.filter(|param| !param.is_empty());
    param.or(message).is_some_and(mentions_n)
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
                | "best_of"
                | "candidates"
                | "candidateCount"
                | "candidate_count"
        )
    })
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
        assert!(is_about_n(Some(""), Some("'n' must be 1")));
        assert!(is_about_n(None, Some("'n' must be 1")));
        assert!(!is_about_n(None, None));
    }

    #[test]
    fn the_number_of_remembered_models_is_bounded() {
        let models = SingleChoiceModels::default();
        for model in 0..2 * MAX_KNOWN_MODELS {
            models.insert(&model.to_string());
        }
        assert!(models.contains("0"));
        assert!(!models.contains("absent"));
        assert_eq!(models.0.lock().unwrap().len(), MAX_KNOWN_MODELS);
    }
}
