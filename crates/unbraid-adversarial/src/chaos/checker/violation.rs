//! What must not happen.

use std::fmt;

/// A rule that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::chaos) enum Kind {
    /// Bytes of the answer are missing in the middle.
    Lost,
    /// An event was delivered again.
    Twice,
    /// An event that neither the upstream nor the gateway's rules contain.
    Foreign,
    NoId,
    IdNotGreater,
    AfterEnd,
    AfterCancel,
    /// A choice ended as cancelled, and nobody requested it.
    Cancelled,
    /// A clean end of an answer that is not complete.
    TruncatedDone,
    /// `producer_lost`, although the producer neither died nor slept past its lease.
    ProducerLost,
    /// An error other than `producer_lost`.
    Error,
    /// An error in the view of a choice that had finished.
    ErrorAfterFinish,
    /// The stream is not kept, and nothing explains it.
    Gone,
    /// The view closed for good without a last event.
    NoEnd,
    Hung,
    /// A reconnect at the end of a view is not answered with 204.
    NotComplete,
    /// Two readers have different events with one id.
    Disagree,
    /// The upstream was asked for the same generation twice.
    RequestedTwice,
    /// A gateway exited, and nobody killed it.
    GatewayExited,
}

impl Kind {
    pub(in crate::chaos) fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Twice => "twice",
            Self::Foreign => "foreign",
            Self::NoId => "no_id",
            Self::IdNotGreater => "id_not_greater",
            Self::AfterEnd => "after_end",
            Self::AfterCancel => "after_cancel",
            Self::Cancelled => "cancelled",
            Self::TruncatedDone => "truncated_done",
            Self::ProducerLost => "producer_lost",
            Self::Error => "error",
            Self::ErrorAfterFinish => "error_after_finish",
            Self::Gone => "gone",
            Self::NoEnd => "no_end",
            Self::Hung => "hung",
            Self::NotComplete => "not_complete",
            Self::Disagree => "disagree",
            Self::RequestedTwice => "requested_twice",
            Self::GatewayExited => "gateway_exited",
        }
    }
}

/// One violation, with what is needed to find its cause.
#[derive(Debug, Clone)]
pub(in crate::chaos) struct Violation {
    pub(in crate::chaos) kind: Kind,
    /// How many bytes were lost, or delivered twice.
    pub(in crate::chaos) bytes: usize,
    pub(in crate::chaos) detail: String,
}

impl Violation {
    pub(in crate::chaos) fn new(kind: Kind, detail: String) -> Self {
        Self::of_bytes(kind, 0, detail)
    }

    pub(in crate::chaos) fn of_bytes(kind: Kind, bytes: usize, detail: String) -> Self {
        Self {
            kind,
            bytes,
            detail,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.detail)
    }
}
