//! The ends of a log as those of the library.

use std::fmt;

use unbraid::{ChoiceEnd, StreamError, TransportError};

use crate::End;

/// The end of a stream that another process has reported, where the library has no error of its own for it.
///
/// It is the source of the [`StreamError::Transport`] or [`ChoiceEnd::Transport`] with which the handles end.
///
/// # Examples
///
/// ```
/// use unbraid_log::{End, EndError};
///
/// let error = EndError { end: End::ProducerLost };
/// assert_eq!(error.to_string(), "the producer of the stream was lost");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndError {
    /// How the stream or the choice ended.
    pub end: End,
}

impl EndError {
    /// The end of a stream whose handles end with an error like this.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{StreamError, TransportError};
    /// use unbraid_log::{End, EndError};
    ///
    /// let error = TransportError::new(0, EndError { end: End::ProducerLost });
    /// let error = StreamError::Transport(error.into());
    /// assert_eq!(EndError::find_in(&error).unwrap().end, End::ProducerLost);
    /// assert!(EndError::find_in(&StreamError::Cancelled).is_none());
    /// ```
    #[must_use]
    pub fn find_in<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            // An error that is transparent has the source of the error that it contains.
            if let Some(StreamError::Transport(error)) = error.downcast_ref() {
                return Self::find_in(&**error);
            }
            cause = error.source();
        }
        None
    }
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.end {
            End::ProducerLost => "the producer of the stream was lost",
            End::Refused => "the request of the stream was refused",
            End::Transport => "the producer lost its connection to the upstream",
            End::TimedOut => "the upstream did not answer the producer in time",
            End::LimitExceeded => "the answer exceeded a limit of the producer",
            End::ServerError => "the upstream reported an error to the producer",
            End::Interrupted => "the upstream's answer was cut off",
            End::Cancelled => "the answer was cancelled",
            End::Finished | End::DoneWithoutFinish | End::Lost => "the answer was lost",
        })
    }
}

impl std::error::Error for EndError {}

/// The library's end of a choice. A finish reason that has arrived takes precedence over it.
pub(super) fn choice_end(end: End) -> ChoiceEnd {
    match end {
        End::DoneWithoutFinish => ChoiceEnd::DoneWithoutFinish,
        // Without a reason, such a choice is cut.
        End::Finished | End::Interrupted => ChoiceEnd::Interrupted,
        End::Cancelled => ChoiceEnd::Cancelled,
        End::Lost => ChoiceEnd::Lost,
        End::ServerError
        | End::Transport
        | End::TimedOut
        | End::LimitExceeded
        | End::ProducerLost
        | End::Refused => ChoiceEnd::Transport(TransportError::new(0, EndError { end }).into()),
    }
}

/// How the handles of a stream end.
pub(super) enum LibraryEnd {
    /// With the end mark.
    Done,
    /// Without it.
    Interrupted,
    Error(StreamError),
}

pub(super) fn stream_end(end: End) -> LibraryEnd {
    match end {
        End::Finished | End::DoneWithoutFinish => LibraryEnd::Done,
        End::Interrupted => LibraryEnd::Interrupted,
        End::Cancelled => LibraryEnd::Error(StreamError::Cancelled),
        End::Lost => LibraryEnd::Error(StreamError::Lost),
        End::ServerError
        | End::Transport
        | End::TimedOut
        | End::LimitExceeded
        | End::ProducerLost
        | End::Refused => {
            let error = TransportError::new(0, EndError { end });
            LibraryEnd::Error(StreamError::Transport(error.into()))
        }
    }
}
