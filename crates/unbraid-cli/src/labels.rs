//! What the choices of several providers are called beside their index.

use std::{fmt, sync::Arc};

use unbraid_core::ChoiceIndex;

use crate::printable::printable;

/// The provider and the model that a choice was requested from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// As the command line names it.
    pub(crate) provider: &'static str,
    pub(crate) model: String,
}

/// As the command line names both, safe for a terminal.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, printable(&self.model))
    }
}

/// The labels of the choices, by their index. There are none if only one provider was asked by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels(Arc<[Label]>);

impl Labels {
    pub(crate) fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        Self(labels.into_iter().collect())
    }

    pub(crate) fn get(&self, choice: ChoiceIndex) -> Option<&Label> {
        self.0.get(choice.0 as usize)
    }

    /// The text of a label.
    pub(crate) fn text(&self, choice: ChoiceIndex) -> Option<String> {
        self.get(choice).map(ToString::to_string)
    }
}
