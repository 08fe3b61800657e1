//! What the choices of an answer were requested from.

use unbraid_core::ChoiceIndex;
use unbraid_http::Provider;

use crate::labels::Labels;

/// What an answer was requested from.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) provider: Provider,
    /// Of several providers, which choice is whose.
    pub(super) labels: &'c Labels,
    /// How many choices were requested.
    pub(super) expected: u32,
}

impl Context<'_> {
    /// The provider of a choice.
    pub(super) fn provider_of(self, choice: ChoiceIndex) -> Provider {
        let label = self.labels.get(choice);
        let provider = label.and_then(|label| label.provider.parse().ok());
        provider.unwrap_or(self.provider)
    }
}
