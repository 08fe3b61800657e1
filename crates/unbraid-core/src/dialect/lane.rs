//! The texts of a choice.

/// Which text of a choice a fragment continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Content,
    Reasoning,
    Refusal,
}
