//! Remembers which models return one choice only.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use crate::limits::MAX_KNOWN_MODELS;

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

#[cfg(test)]
mod tests {
    use super::*;

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
