//! How a choice or a stream ended.

use std::fmt;

use unbraid_core::ChoiceEnd;

/// How a choice or a stream ended. The names are those of the library's ends, and two more that only a gateway has.
///
/// # Examples
///
/// ```
/// use unbraid_log::End;
///
/// assert_eq!(End::ProducerLost.as_str(), "producer_lost");
/// assert!(End::ProducerLost.is_error() && !End::Cancelled.is_error());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The finish reason arrived; of a stream: `[DONE]`, or all choices finished.
    Finished,
    /// `[DONE]` arrived, but no finish reason.
    DoneWithoutFinish,
    /// The upstream's body ended with neither.
    Interrupted,
    /// The upstream reported an error.
    ServerError,
    /// The connection to the upstream failed.
    Transport,
    /// A client cancelled it.
    Cancelled,
    /// A timeout of the upstream passed.
    TimedOut,
    /// A limit was exceeded.
    LimitExceeded,
    /// The task that carried it was lost.
    Lost,
    /// The gateway that produced it was lost; another one sealed the log.
    ProducerLost,
    /// The upstream refused the request.
    Refused,
}

impl End {
    /// Every end, in the order of their codes.
    pub(crate) const ALL: [Self; 11] = [
        Self::Finished,
        Self::DoneWithoutFinish,
        Self::Interrupted,
        Self::ServerError,
        Self::Transport,
        Self::Cancelled,
        Self::TimedOut,
        Self::LimitExceeded,
        Self::Lost,
        Self::ProducerLost,
        Self::Refused,
    ];

    /// One lower-case word, as the status object contains it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::DoneWithoutFinish => "done_without_finish",
            Self::Interrupted => "interrupted",
            Self::ServerError => "server_error",
            Self::Transport => "transport",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::LimitExceeded => "limit_exceeded",
            Self::Lost => "lost",
            Self::ProducerLost => "producer_lost",
            Self::Refused => "refused",
        }
    }

    /// Whether a view ends with an error event. A cancelled answer ends with `[DONE]`, because its client requested it.
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(
            self,
            Self::Finished | Self::DoneWithoutFinish | Self::Cancelled
        )
    }

    /// The number that stands for it in a record.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Finished => 1,
            Self::DoneWithoutFinish => 2,
            Self::Interrupted => 3,
            Self::ServerError => 4,
            Self::Transport => 5,
            Self::Cancelled => 6,
            Self::TimedOut => 7,
            Self::LimitExceeded => 8,
            Self::Lost => 9,
            Self::ProducerLost => 10,
            Self::Refused => 11,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.code() == code)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<&ChoiceEnd> for End {
    fn from(end: &ChoiceEnd) -> Self {
        match end {
            ChoiceEnd::Finished(_) => Self::Finished,
            ChoiceEnd::DoneWithoutFinish => Self::DoneWithoutFinish,
            ChoiceEnd::Interrupted => Self::Interrupted,
            ChoiceEnd::ServerError(_) => Self::ServerError,
            ChoiceEnd::Transport(_) => Self::Transport,
            ChoiceEnd::Cancelled => Self::Cancelled,
            ChoiceEnd::TimedOut(_) => Self::TimedOut,
            ChoiceEnd::LimitExceeded(_) => Self::LimitExceeded,
            // An end of a later version of the core has no other meaning here.
            _ => Self::Lost,
        }
    }
}

/// The end of a stream, with which its log is sealed. The first one is kept.
///
/// # Examples
///
/// ```
/// use unbraid_log::{End, StreamEnd};
///
/// let end = StreamEnd::new(End::Refused).with_error(r#"{"status":429}"#.to_owned());
/// assert_eq!(StreamEnd::decode(&end.encode())?, end);
/// # Ok::<(), unbraid_log::LogError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamEnd {
    /// How the stream ended.
    pub end: End,
    /// The error object of the status, as JSON text. It may contain the upstream's message.
    pub error: Option<String>,
    /// The reported usage, as JSON text.
    pub usage: Option<String>,
}

impl StreamEnd {
    /// An end without further data.
    #[must_use]
    pub fn new(end: End) -> Self {
        Self {
            end,
            error: None,
            usage: None,
        }
    }

    /// Sets the error object.
    #[must_use]
    pub fn with_error(mut self, error: impl Into<Option<String>>) -> Self {
        self.error = error.into();
        self
    }

    /// Sets the usage.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{End, StreamEnd};
    ///
    /// let end = StreamEnd::new(End::Finished).with_usage(r#"{"total_tokens":7}"#.to_owned());
    /// assert!(end.usage.is_some());
    /// ```
    #[must_use]
    pub fn with_usage(mut self, usage: impl Into<Option<String>>) -> Self {
        self.usage = usage.into();
        self
    }
}

/// Shows the end, and no payload.
impl fmt::Debug for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEnd")
            .field("end", &self.end)
            .field("error_bytes", &self.error.as_ref().map(String::len))
            .field("usage_bytes", &self.usage.as_ref().map(String::len))
            .finish()
    }
}
