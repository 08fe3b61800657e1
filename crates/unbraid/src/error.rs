//! The error of a JSON text, and one error for callers that do not distinguish the scopes.

use std::{fmt, sync::Arc};

use unbraid_core::{CallIndex, ChoiceError, ChoiceIndex, JsonErrorKind, StreamError};

/// Why JSON that a model wrote cannot be returned, and in which choice and call. Neither `Display` nor `Debug` shows the text;
/// [`raw`](Self::raw) returns it.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{ChoiceIndex, Completions, JsonErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let json = Completions::from_byte_stream(bytes).first().await?.content_json();
/// let error = json.parse::<serde_json::Value>().await.unwrap_err();
/// assert!(matches!(error.kind(), JsonErrorKind::Invalid { .. }));
/// assert_eq!((error.choice(), error.call_index()), (ChoiceIndex(0), None));
/// assert_eq!(error.raw(), "Hi"); // only on request
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct JsonError {
    choice: ChoiceIndex,
    call_index: Option<CallIndex>,
    raw: Arc<str>,
    kind: JsonErrorKind,
}

impl JsonError {
    pub(crate) fn new(
        choice: ChoiceIndex,
        call_index: Option<CallIndex>,
        raw: Arc<str>,
        kind: JsonErrorKind,
    ) -> Self {
        Self {
            choice,
            call_index,
            raw,
            kind,
        }
    }

    /// The choice.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.choice
    }

    /// The ordinal of the call within its choice; `None` for content.
    #[must_use]
    pub fn call_index(&self) -> Option<CallIndex> {
        self.call_index
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &JsonErrorKind {
        &self.kind
    }

    /// The raw text, as far as it arrived; empty for an error of a single field.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "choice {}: ", self.choice)?;
        match self.call_index {
            Some(call_index) => write!(f, "tool call {call_index}: {}", self.kind),
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
        // The text of the kind is part of this error's.
        match &self.kind {
            JsonErrorKind::Choice(error) => error.source(),
            kind => kind.source(),
        }
    }
}

/// Any error of this crate; `?` converts the error of each scope into it.
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
