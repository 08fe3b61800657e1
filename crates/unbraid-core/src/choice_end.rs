//! `ChoiceEnd`: how a choice ended, and `FinishReason`: why the model stopped.

use std::{fmt, sync::Arc};

use crate::{LimitExceeded, ServerError, StreamError, TimedOut, TransportError};

/// Why a model stopped, as the server reported it. The set is open, and the raw text is always kept (F11).
///
/// # Examples
///
/// ```
/// use unbraid_core::FinishReason;
///
/// assert_eq!(FinishReason::from("stop"), FinishReason::Stop);
/// assert_eq!(FinishReason::from("eos_token").as_str(), "eos_token");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// `stop`: the answer is complete.
    Stop,
    /// `length`: cut at the token limit.
    Length,
    /// `tool_calls`: the model wants its calls answered.
    ToolCalls,
    /// `function_call`: the same, in the API of 2023.
    FunctionCall,
    /// `content_filter`: cut by a filter.
    ContentFilter,
    /// Any other text.
    Other(Arc<str>),
}

impl FinishReason {
    /// The raw text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::FunctionCall => "function_call",
            Self::ContentFilter => "content_filter",
            Self::Other(raw) => raw,
        }
    }
}

impl From<&str> for FinishReason {
    fn from(raw: &str) -> Self {
        match raw {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "function_call" => Self::FunctionCall,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a choice ended. Every end but the first two is also the one error of the choice's streams.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceEnd, FinishReason};
///
/// assert!(!ChoiceEnd::Finished(FinishReason::Length).is_error(), "a cut answer is an outcome");
/// assert!(ChoiceEnd::Interrupted.is_error());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ChoiceEnd {
    /// Its finish reason arrived, and then no further delta for it.
    Finished(FinishReason),
    /// `[DONE]` arrived, but no finish reason (S24, F14).
    DoneWithoutFinish,
    /// The stream ended with neither (F7).
    Interrupted,
    /// The server reported an error.
    ServerError(Arc<ServerError>),
    /// The source failed.
    Transport(Arc<TransportError>),
    /// The caller cancelled it.
    Cancelled,
    /// A timeout passed.
    TimedOut(TimedOut),
    /// A limit was exceeded.
    LimitExceeded(LimitExceeded),
    /// The choice's actor was lost.
    Lost,
}

impl ChoiceEnd {
    /// One lower-case word, as the command prints it.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::ChoiceEnd::DoneWithoutFinish.as_str(), "done_without_finish");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Finished(_) => "finished",
            Self::DoneWithoutFinish => "done_without_finish",
            Self::Interrupted => "interrupted",
            Self::ServerError(_) => "server_error",
            Self::Transport(_) => "transport",
            Self::Cancelled => "cancelled",
            Self::TimedOut(_) => "timed_out",
            Self::LimitExceeded(_) => "limit_exceeded",
            Self::Lost => "lost",
        }
    }

    /// Whether the choice's streams end with an error. An end without one may still have cut the answer: see
    /// [`is_complete`](Self::is_complete).
    #[must_use]
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Finished(_) | Self::DoneWithoutFinish)
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Finished(reason) => format!("finished ({reason})"),
            Self::DoneWithoutFinish => "the stream was done, without a finish reason".into(),
            Self::Interrupted => "the stream ended before the choice did".into(),
            Self::ServerError(error) => error.to_string(),
            Self::Transport(error) => error.to_string(),
            Self::Cancelled => "cancelled".into(),
            Self::TimedOut(error) => error.to_string(),
            Self::LimitExceeded(error) => error.to_string(),
            Self::Lost => "the actor that carried it was lost".into(),
        }
    }
}

impl fmt::Display for ChoiceEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl From<&StreamError> for ChoiceEnd {
    fn from(error: &StreamError) -> Self {
        match error {
            StreamError::Transport(error) => Self::Transport(Arc::clone(error)),
            StreamError::Server(error) => Self::ServerError(Arc::clone(error)),
            StreamError::Cancelled => Self::Cancelled,
            StreamError::TimedOut(error) => Self::TimedOut(*error),
            StreamError::Limit(error) => Self::LimitExceeded(*error),
            StreamError::NoRuntime | StreamError::NoTimeDriver | StreamError::Lost => Self::Lost,
            StreamError::Empty { .. }
            | StreamError::NotAStream { .. }
            | StreamError::UnsupportedFormat { .. }
            | StreamError::Interrupted { .. }
            | StreamError::Malformed { .. } => Self::Interrupted,
        }
    }
}
