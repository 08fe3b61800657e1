//! Errors of JSON texts, and one error for callers who do not tell the scopes apart.

use std::{fmt, sync::Arc};

use unbraid_core::{ChoiceError, ChoiceIndex, JsonFault, StreamError};

/// JSON that a model wrote and that cannot be handed out: which choice, which call, and why. The text is given only when
/// asked for.
#[derive(Clone)]
pub struct JsonError {
    choice: ChoiceIndex,
    call: Option<u32>,
    raw: Arc<str>,
    fault: Fault,
}

/// What is wrong with a JSON text.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The choice was cut before the text could end.
    #[error("{}", .0.reason())]
    Choice(ChoiceError),
    /// The text itself, or a field of it.
    #[error(transparent)]
    Json(JsonFault),
}

impl From<ChoiceError> for Fault {
    fn from(error: ChoiceError) -> Self {
        Self::Choice(error)
    }
}

impl From<JsonFault> for Fault {
    fn from(fault: JsonFault) -> Self {
        Self::Json(fault)
    }
}

impl JsonError {
    pub(crate) fn new(choice: ChoiceIndex, call: Option<u32>, raw: Arc<str>, fault: Fault) -> Self {
        Self {
            choice,
            call,
            raw,
            fault,
        }
    }

    /// Which choice.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.choice
    }

    /// The call's ordinal within the choice; `None` for content.
    #[must_use]
    pub fn call_index(&self) -> Option<u32> {
        self.call
    }

    /// What is wrong.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.fault
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
            Some(call) => write!(f, "tool call {call}: {}", self.fault),
            None => write!(f, "content: {}", self.fault),
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
        match &self.fault {
            Fault::Choice(error) => Some(error),
            Fault::Json(fault) => Some(fault),
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
