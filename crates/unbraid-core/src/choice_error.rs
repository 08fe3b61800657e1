//! The error of a choice. It stands apart from those of a stream, because the end of a choice may contain one of them.

use std::{error::Error as StdError, fmt, sync::Arc};

use crate::{ChoiceEnd, ChoiceIndex, ChoiceOutcome};

/// The error of a choice, with everything that had arrived of it.
///
/// Two errors are equal if their outcomes are.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceEnd, ChoiceIndex, Config, Demux};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n");
/// demux.finish();
/// let error = demux.result(ChoiceIndex(0)).unwrap().unwrap_err();
/// assert!(matches!(error.end(), ChoiceEnd::Interrupted));
/// assert_eq!(error.reason(), "the stream ended before the choice did");
/// assert_eq!(error.to_string(), "choice 0: the stream ended before the choice did");
/// assert_eq!(error.partial().message.content, "Hel");
/// let message = error.into_partial().message; // without a copy if no other clone of the error exists
/// assert_eq!(message.content, "Hel");
/// ```
#[derive(Clone, PartialEq)]
pub struct ChoiceError {
    partial: Arc<ChoiceOutcome>,
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "choice {}: {}", self.partial.choice, self.reason())
    }
}

/// The `source()` is that of a failed transport: the error of the HTTP client.
impl StdError for ChoiceError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.partial.end {
            ChoiceEnd::Transport(error) => error.source(),
            _ => None,
        }
    }
}

/// The same text as `Display`: the partial answer is payload.
impl fmt::Debug for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChoiceError({self})")
    }
}

impl ChoiceError {
    /// The error of a choice that did not finish, or that was discarded.
    #[must_use]
    pub fn new(partial: ChoiceOutcome) -> Self {
        Self {
            partial: Arc::new(partial),
        }
    }

    /// Which choice.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.partial.choice
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> &ChoiceEnd {
        &self.partial.end
    }

    /// What went wrong, as one lower-case fragment without the choice: its end, or that it was discarded.
    #[must_use]
    pub fn reason(&self) -> String {
        let ChoiceOutcome { end, discarded, .. } = &*self.partial;
        if *discarded && !end.is_error() {
            "discarded after its end".into()
        } else {
            end.reason()
        }
    }

    /// Everything that had arrived.
    #[must_use]
    pub fn partial(&self) -> &ChoiceOutcome {
        &self.partial
    }

    /// Everything that had arrived, as an owned value.
    #[must_use]
    pub fn into_partial(self) -> ChoiceOutcome {
        Arc::unwrap_or_clone(self.partial)
    }
}
