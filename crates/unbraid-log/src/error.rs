//! `LogError`: why a log cannot do what was requested.

use crate::Seq;

/// Why a log refused a call, or could not carry it out. The messages contain positions, never payload.
///
/// # Examples
///
/// ```
/// use unbraid_log::{LogError, Record, Seq};
///
/// let gap = LogError::Gap { tail: Seq(4), first: Seq(9) };
/// assert_eq!(gap.to_string(), "the record begins at 9, but the log ends at 4");
/// assert_eq!(Record::decode(vec![9].into()), Err(LogError::UnsupportedVersion { version: 9 }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The text is not a stream id.
    #[error("a stream id has 22 to 64 of the characters A-Z, a-z, 0-9, _ and -")]
    InvalidId,
    /// The operating system has no random numbers.
    #[error("the operating system provides no random numbers")]
    NoRandom,
    /// The bytes are not a record, a seal or the meta data of a stream.
    #[error("invalid record: {what} at byte {offset}")]
    InvalidRecord {
        /// What is wrong.
        what: &'static str,
        /// The offset at which the reader stopped.
        offset: usize,
    },
    /// The bytes are of a format that this version does not know, probably a later one.
    #[error("the record has version {version}, which this version of unbraid cannot read")]
    UnsupportedVersion {
        /// The version byte.
        version: u8,
    },
    /// The stream already exists, or existed: ids are never used again.
    #[error("the stream id is in use")]
    Exists,
    /// There is no stream with this id.
    #[error("there is no stream with this id")]
    Unknown,
    /// The stream existed, and is no longer kept.
    #[error("the stream is no longer kept")]
    Expired,
    /// The log is sealed, so nothing can be appended: its producer was declared lost, or has sealed it.
    #[error("the log is sealed")]
    Sealed,
    /// The log contains another record at this position, so another producer has written it.
    #[error("the log contains another record at {first}")]
    Fenced {
        /// The first number of the refused record.
        first: Seq,
    },
    /// The record does not follow the log's last event. If the log ends earlier than before, the engine has lost events.
    #[error("the record begins at {first}, but the log ends at {tail}")]
    Gap {
        /// The last number that the log contains.
        tail: Seq,
        /// The first number of the refused record.
        first: Seq,
    },
    /// The log has no room for another stream, or for another record of one, which it has not taken.
    #[error("the log is full")]
    Full,
    /// The engine cannot be reached, or does not answer. The call may be repeated.
    #[error("the log is not available: {reason}")]
    Unavailable {
        /// What failed, without payload or passwords.
        reason: String,
    },
}

impl LogError {
    /// The error of an engine that cannot be reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::LogError;
    ///
    /// let error = LogError::unavailable("connection refused");
    /// assert_eq!(error.to_string(), "the log is not available: connection refused");
    /// ```
    #[must_use]
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable {
            reason: reason.into(),
        }
    }

    /// Whether the same call may succeed later.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::LogError;
    ///
    /// assert!(LogError::unavailable("connection refused").is_temporary());
    /// assert!(!LogError::Sealed.is_temporary());
    /// ```
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
