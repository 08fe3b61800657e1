//! `StreamId` names a stream, and `Seq` numbers its events.

use std::{fmt, str::FromStr, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::LogError;

/// The id of a stream: 22 to 64 characters of `A-Z a-z 0-9 _ -`. It is never used twice.
///
/// An id is also a secret of moderate strength: [`random`](Self::random) has 128 random bits. `Clone` is cheap.
///
/// # Examples
///
/// ```
/// use unbraid_log::StreamId;
///
/// let id = StreamId::random()?;
/// assert_eq!(id.as_str().len(), 22);
/// assert_eq!(id.as_str().parse::<StreamId>()?, id);
/// assert!("../etc/passwd".parse::<StreamId>().is_err());
/// # Ok::<(), unbraid_log::LogError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// Creates an id from 128 bits of the operating system's random numbers.
    ///
    /// # Errors
    ///
    /// [`LogError::NoRandom`] if the operating system has none.
    pub fn random() -> Result<Self, LogError> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|_| LogError::NoRandom)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bits).into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StreamId {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (22..=64).contains(&text.len()) && text.bytes().all(is_allowed) {
            Ok(Self(text.into()))
        } else {
            Err(LogError::InvalidId)
        }
    }
}

impl Serialize for StreamId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for StreamId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The number of an event within its stream, counted from 1. As a cursor, 0 is the position before the first event.
///
/// # Examples
///
/// ```
/// use unbraid_log::Seq;
///
/// assert_eq!(Seq::START.next(), Seq(1));
/// assert_eq!(Seq(412).to_string(), "412");
/// ```
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position before the first event.
    pub const START: Self = Self(0);

    /// The greatest number, 2^63 - 1: engines and JSON readers store numbers with a sign.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number before this one; the one before [`START`](Self::START) is itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::Seq;
    ///
    /// assert_eq!(Seq(3).previous(), Seq(2));
    /// assert_eq!(Seq::START.previous(), Seq::START);
    /// ```
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
