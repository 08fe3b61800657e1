//! One error for callers who do not tell the scopes apart.

use unbraid_core::{ChoiceError, StreamError};

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
}
