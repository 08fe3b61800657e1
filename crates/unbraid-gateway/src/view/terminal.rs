//! How a view ends: with `[DONE]` or with one error, each with an id of its own.

use serde_json::{Value, json};
use unbraid_core::ServerError;
use unbraid_log::{End, Seq};

use crate::limits::MAX_REFUSAL_BYTES;

/// The last event of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminal {
    /// `[DONE]`.
    Done(Seq),
    /// The last chunk of a choice that was cancelled before it appeared, and `[DONE]`.
    CancelledAndDone(Seq),
    /// The gateway's error.
    Error(Seq, End),
    /// The upstream's own error event, which has this number in the log.
    UpstreamError(Seq),
}

impl Terminal {
    /// The id of the event.
    pub(super) fn id(self) -> Seq {
        match self {
            Self::Done(id)
            | Self::CancelledAndDone(id)
            | Self::Error(id, _)
            | Self::UpstreamError(id) => id,
        }
    }

    /// The last event of a choice that has ended at this number. `error` is the number of the upstream's error event.
    pub(super) fn of_choice(seq: Seq, end: End, error: Option<Seq>) -> Self {
        match (end, error) {
            (End::ServerError, Some(error)) => Self::UpstreamError(error),
            (end, _) if end.is_error() => Self::Error(seq, end),
            _ => Self::Done(seq),
        }
    }

    /// The last event of a choice that was open when the stream ended.
    pub(super) fn of_open_choice(seq: Seq, end: End, error: Option<Seq>) -> Self {
        match end {
            End::Cancelled => Self::CancelledAndDone(seq),
            end => Self::of_choice(seq, end, error),
        }
    }

    /// The last event of the combined view.
    pub(super) fn of_stream(seq: Seq, end: End, error: Option<Seq>) -> Self {
        match error {
            Some(error) => Self::UpstreamError(error),
            None => Self::of_choice(seq, end, None),
        }
    }
}

/// The data of `[DONE]`.
pub(super) const DONE: &[u8] = b"[DONE]";

/// The event of an end that is an error.
pub(super) fn error_event(end: End) -> String {
    json!({ "error": error_object(end, None) }).to_string()
}

/// The error of an end, in OpenAI's shape: with the message of the upstream, if it reported one, or with a text that is the
/// same on every gateway.
pub(crate) fn error_object(end: End, reported: Option<&ServerError>) -> Value {
    error_with_message(end, reported.and_then(ServerError::message))
}

/// The same, with the message that the upstream has reported.
pub(super) fn error_with_message(end: End, reported: Option<&str>) -> Value {
    let reported = reported.filter(|message| message.len() <= MAX_REFUSAL_BYTES);
    let message = match end {
        End::Interrupted => "the upstream's answer was cut off",
        End::ServerError => reported.unwrap_or("the upstream or the log reported an error"),
        End::Transport => "the connection to the upstream failed",
        End::TimedOut => "the upstream did not answer in time",
        End::LimitExceeded => "the answer exceeded a limit of the gateway",
        End::ProducerLost => "the gateway that received the answer was lost",
        End::Refused => "the upstream refused the request",
        End::Cancelled => "the answer was cancelled",
        _ => "the answer was lost",
    };
    json!({ "message": message, "type": "stream_error", "param": null, "code": end.as_str() })
}
