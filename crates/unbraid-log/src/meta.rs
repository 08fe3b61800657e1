//! What is known about a stream beside its events, and claims on idempotency keys.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{LogError, StreamId};

/// What is known about a stream from its start. It is kept for 24 hours longer than the stream's events.
///
/// # Examples
///
/// ```
/// use unbraid_log::Meta;
///
/// let meta = Meta::new("/v1/chat/completions", 1_790_000_000)
///     .with_owner("alice".to_owned())
///     .with_model("m".to_owned())
///     .with_n(2)
///     .with_fan_out(true);
/// assert_eq!(Meta::decode(&meta.encode())?, meta);
/// # Ok::<(), unbraid_log::LogError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Meta {
    /// The principal that created it; `None` without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The path of the request.
    pub endpoint: String,
    /// The model of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of choices that were requested; `None` if the request contains none, which means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// The time of creation, in seconds since 1970.
    pub created: u64,
    /// Whether there is one upstream request for each choice.
    #[serde(default)]
    pub fan_out: bool,
    /// The claim that the request holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimKey>,
    /// After how long without a reader the producer cancels the stream; `None`: never. Processes with readers report
    /// them ([`Command::Read`](crate::Command::Read)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan_after: Option<Duration>,
}

/// The version of the meta data's encoding.
const VERSION: u8 = 1;

impl Meta {
    /// The meta data of a request to this path at this time, in seconds since 1970.
    #[must_use]
    pub fn new(endpoint: impl Into<String>, created: u64) -> Self {
        Self {
            owner: None,
            endpoint: endpoint.into(),
            model: None,
            n: None,
            created,
            fan_out: false,
            claim: None,
            orphan_after: None,
        }
    }

    /// Sets the owner.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<Option<String>>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Option<String>>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the number of choices.
    #[must_use]
    pub fn with_n(mut self, n: impl Into<Option<u32>>) -> Self {
        self.n = n.into();
        self
    }

    /// Sets whether there is one upstream request for each choice.
    #[must_use]
    pub fn with_fan_out(mut self, fan_out: bool) -> Self {
        self.fan_out = fan_out;
        self
    }

    /// Sets the claim that the request holds.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log::{ClaimKey, Meta};
    ///
    /// let claim = ClaimKey::new("alice", "/v1/completions", "k", [7; 32]);
    /// assert!(Meta::new("/v1/completions", 1).with_claim(claim).claim.is_some());
    /// ```
    #[must_use]
    pub fn with_claim(mut self, claim: impl Into<Option<ClaimKey>>) -> Self {
        self.claim = claim.into();
        self
    }

    /// Sets after how long without a reader the producer cancels the stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use unbraid_log::Meta;
    ///
    /// let meta = Meta::new("/v1/completions", 1).with_orphan_after(Duration::from_secs(30));
    /// assert_eq!(Meta::decode(&meta.encode())?, meta);
    /// # Ok::<(), unbraid_log::LogError>(())
    /// ```
    #[must_use]
    pub fn with_orphan_after(mut self, orphan_after: impl Into<Option<Duration>>) -> Self {
        self.orphan_after = orphan_after.into();
        self
    }

    /// Encodes it for an engine: a version byte, and JSON.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        // Strings, numbers and an array of bytes always have a JSON text, and a vector takes all of it.
        bytes.extend(serde_json::to_vec(self).unwrap_or_default());
        bytes
    }

    /// Decodes what [`encode`](Self::encode) has written. Fields of a later version are ignored.
    ///
    /// # Errors
    ///
    /// [`LogError::UnsupportedVersion`] and [`LogError::InvalidRecord`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LogError> {
        match bytes.split_first() {
            Some((&VERSION, json)) => {
                serde_json::from_slice(json).map_err(|error| LogError::InvalidRecord {
                    what: "the meta data is not the expected JSON",
                    offset: error.column(),
                })
            }
            Some((&version, _)) => Err(LogError::UnsupportedVersion { version }),
            None => Err(LogError::InvalidRecord {
                what: "the meta data is empty",
                offset: 0,
            }),
        }
    }
}

/// An idempotency key in its scope, and the fingerprint of the request that uses it.
///
/// Two keys are the same claim if [`name`](Self::name) is equal; the fingerprint says whether the request is the same, too.
///
/// # Examples
///
/// ```
/// use unbraid_log::ClaimKey;
///
/// let key = ClaimKey::new("alice", "/v1/chat/completions", "order-1", [0; 32]);
/// let other = ClaimKey::new("alice", "/v1/chat/completions", "order-1", [1; 32]);
/// assert_eq!(key.name(), other.name());
/// assert_ne!(key.fingerprint, other.fingerprint);
/// // No choice of the parts gives the name of other parts.
/// assert_ne!(ClaimKey::new("a", "b/c", "d", [0; 32]).name(), ClaimKey::new("a", "b", "c/d", [0; 32]).name());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimKey {
    name: String,
    /// A digest of the request's body, by which a reused key is recognized.
    pub fingerprint: [u8; 32],
}

impl ClaimKey {
    /// The claim of a principal (empty without authentication) on a key for requests to a path.
    #[must_use]
    pub fn new(principal: &str, path: &str, key: &str, fingerprint: [u8; 32]) -> Self {
        // The lengths make the name unambiguous, whatever the parts contain.
        let name = format!("{}:{principal}{}:{path}{key}", principal.len(), path.len());
        Self { name, fingerprint }
    }

    /// The text that identifies the claim. It contains the client's own characters: an engine encodes it before it
    /// becomes part of a key or a subject.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Shows no part of the key, which a client chose and may be confidential.
impl fmt::Debug for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimKey")
            .field("bytes", &self.name.len())
            .finish_non_exhaustive()
    }
}

/// The answer to a claim.
///
/// # Examples
///
/// ```
/// use unbraid_log::{Claim, StreamId};
///
/// let claim = Claim::Held { id: StreamId::random()?, fingerprint: [0; 32] };
/// assert_ne!(claim, Claim::Acquired);
/// # Ok::<(), unbraid_log::LogError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The key was free, and now belongs to the id. A repeated claim of the same id gives this again.
    Acquired,
    /// Another request holds the key.
    Held {
        /// The stream of that request, which may not have been opened yet.
        id: StreamId,
        /// The digest of its body.
        fingerprint: [u8; 32],
    },
}
