//! How many choices one body asks for.

/// How many choices a body asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choices {
    /// As many as the request's `n` says.
    AsRequested,
    /// One: the body of a fan-out.
    One,
}
