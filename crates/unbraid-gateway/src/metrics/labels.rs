//! The values of labels that are few and known.

use std::fmt::{self, Write};

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use unbraid_log::{Appended, LogError};

/// Declares a label's values, each with its text: the text is what dashboards and alerts select.
macro_rules! label_values {
    ($($(#[$doc:meta])* $name:ident { $($value:ident = $text:literal),* })*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum $name { $($value),* }

        impl $name {
            pub(super) const ALL: [Self; [$($text),*].len()] = [$(Self::$value),*];

            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text),*
                }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
                encoder.write_str(self.as_str())
            }
        }
    )* };
}

label_values! {
    /// How a reader reads.
    ViewKind { Post = "post", Combined = "combined", Choice = "choice" }
    /// Why a reader left before the end of its view.
    DisconnectReason { Client = "client", Slow = "slow", Age = "age", Drain = "drain" }
    /// What a cancel means for the upstream.
    UpstreamState { Closed = "closed", Continues = "continues" }
    /// The result of an append to the log.
    AppendResult { New = "new", Duplicate = "duplicate", Error = "error" }
}

impl AppendResult {
    pub(crate) fn of(result: Result<Appended, &LogError>) -> Self {
        match result {
            Ok(Appended::New) => Self::New,
            Ok(Appended::Duplicate) => Self::Duplicate,
            Err(_) => Self::Error,
        }
    }
}
