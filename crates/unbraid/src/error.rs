//! Errors of JSON texts, and one error for callers who do not tell the scopes apart.

use std::{fmt, sync::Arc};

use unbraid_core::{CallIndex, ChoiceError, ChoiceIndex, JsonErrorKind, StreamError};

/// JSON that a model wrote and that cannot be handed out: which choice, which call, and why. The text is given only when
/// asked for.
#[derive(Clone)]
pub struct JsonError {
    choice: ChoiceIndex,
    call: Option<CallIndex>,
    raw: Arc<str>,
    kind: JsonErrorKind,
}

impl JsonError {
    pub(crate) fn new(
        choice: ChoiceIndex,
        call: Option<CallIndex>,
        raw: Arc<str>,
        kind: JsonErrorKind,
    ) -> Self {
        Self {
            choice,
            call,
            raw,
            kind,
        }
    }

    /// Which choice.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.choice
    }

    /// The call's ordinal within the choice; `None` for content.
    #[must_use]
    pub fn call_index(&self) -> Option<CallIndex> {
        self.call
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &JsonErrorKind {
        &self.kind
    }

    /// The raw text, as far as it came; empty for an error of one field.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "choice {}: ", self.choice)?;
        match self.call {
            Some(call) => write!(f, "tool call {call}: {}", self.kind),
            None => write!(f, "content: {}", self.kind),
        }
    }
}

impl fmt::Debug for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonError({self})")
    }
}

impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            JsonErrorKind::Choice(error) => Some(error),
            kind => Some(kind),
        }
    }
}

/// Any error of this crate; `?` makes it from the error of each scope.
///
/// # Examples
///
/// ```
/// use unbraid::{Error, StreamError};
///
/// fn read() -> Result<(), Error> {
///     Err(StreamError::Cancelled)?
/// }
/// assert_eq!(read().unwrap_err().to_string(), "cancelled");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream as a whole.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// One choice.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// One JSON text: a call's arguments, or content.
    #[error(transparent)]
    Json(#[from] JsonError),
}
