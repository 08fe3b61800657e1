//! Remembers which models give one choice only.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use crate::limits::{MAX_KNOWN_MODELS, MAX_MODEL_NAME};

/// The models for which the provider refused or ignored `n`.
#[derive(Debug, Default)]
pub(crate) struct SingleChoiceModels(Mutex<BTreeSet<String>>);

impl SingleChoiceModels {
    pub(crate) fn contains(&self, model: &str) -> bool {
        let models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.contains(model)
    }

    pub(crate) fn insert(&self, model: &str) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() < MAX_KNOWN_MODELS && model.len() <= MAX_MODEL_NAME {
            models.insert(model.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_remembered_models_is_bounded() {
        let models = SingleChoiceModels::default();
        let long = "m".repeat(MAX_MODEL_NAME + 1);
        models.insert(&long);
        assert!(!models.contains(&long), "a client chooses the name");
        for index in 0..=MAX_KNOWN_MODELS {
            models.insert(&index.to_string());
        }
        assert!(models.contains("0") && !models.contains(&MAX_KNOWN_MODELS.to_string()));
    }
}
