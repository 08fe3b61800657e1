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
    matches!(status.status(), 400 | 404 | 422 | 501)
        && (status.param() == Some("n") || status.message().is_some_and(mentions_n))
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
