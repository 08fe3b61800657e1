//! Which models are known to give one choice only.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use crate::{limits::MAX_KNOWN_MODELS, status::StatusError};

/// What a client has learned of its provider.
#[derive(Debug, Default)]
pub(crate) struct Native(Mutex<BTreeSet<String>>);

impl Native {
    pub(crate) fn is_refused(&self, model: &str) -> bool {
        let models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.contains(model)
    }

    pub(crate) fn refused(&self, model: &str) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is not remembered is asked again: that costs a request and harms nothing.
        if models.len() < MAX_KNOWN_MODELS {
            models.insert(model.to_owned());
        }
    }
}

/// Whether a refusal is about `n`. Where this is wrong, each of the single requests is refused for the true reason.
pub(crate) fn refuses_n(status: &StatusError) -> bool {
    matches!(status.status(), 400 | 404 | 422 | 501)
        && (status.param() == Some("n") || status.message().is_some_and(names_n))
}

/// Providers write ``Only `n=1` is supported``, `'n' : number must be at most 1`, `n_cmpl cannot be greater than ..`.
fn names_n(message: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = message.split(|c| !is_name(c));
    words.any(|word| matches!(word, "n" | "n_cmpl" | "num_choices" | "best_of"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_n_as_a_word() {
        for message in [
            "Only `n=1` is supported by this model.",
            "'n' : number must be at most 1",
            "body.n: Input should be 1",
            "n_cmpl cannot be greater than the number of slots",
            "best_of must be 1",
        ] {
            assert!(names_n(message), "{message}");
        }
        for message in ["The model `nn` does not exist", "no route", ""] {
            assert!(!names_n(message), "{message}");
        }
    }

    #[test]
    fn only_so_many_models_are_remembered() {
        let native = Native::default();
        for model in 0..2 * MAX_KNOWN_MODELS {
            native.refused(&model.to_string());
        }
        assert!(native.is_refused("0"));
        assert!(!native.is_refused("absent"));
        assert_eq!(native.0.lock().unwrap().len(), MAX_KNOWN_MODELS);
    }
}
