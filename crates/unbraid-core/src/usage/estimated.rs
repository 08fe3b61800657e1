//! Which numbers were counted.

use crate::ChoiceIndex;

/// Which numbers of a [`Usage`](crate::Usage) were counted here.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Usage, estimate};
///
/// let usage = estimate(&Usage::default(), None, &[(ChoiceIndex(0), 7)]);
/// assert!(usage.estimated.completion && !usage.estimated.prompt);
/// assert_eq!(usage.estimated.choices, [ChoiceIndex(0)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimated {
    /// The tokens of the prompt.
    pub prompt: bool,
    /// The tokens of the completion.
    pub completion: bool,
    /// The total, because one of the other two was.
    pub total: bool,
    /// The tokens of these choices.
    pub choices: Vec<ChoiceIndex>,
}

impl Estimated {
    pub(super) fn any(&self) -> bool {
        self.prompt || self.completion || self.total || !self.choices.is_empty()
    }
}
