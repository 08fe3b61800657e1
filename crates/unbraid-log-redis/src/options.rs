//! The options of a log in Redis.

use std::{fmt, time::Duration};

/// The options of a [`RedisLog`](crate::RedisLog).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_log_redis::RedisOptions;
///
/// let options = RedisOptions::default()
///     .with_prefix("answers")
///     .with_ttl(Duration::from_secs(600))
///     .with_lease(Duration::from_secs(5))
///     .with_replicas(1)
///     .with_gateway("gateway-1");
/// assert_eq!(options.prefix, "answers");
/// assert_eq!(RedisOptions::default().lease, Duration::from_secs(15));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// What the names of all keys begin with; without braces and without control characters. `unbraid` by default.
    pub prefix: String,
    /// How long a stream is kept after its end. One hour by default.
    pub ttl: Duration,
    /// How long a producer may be silent before its stream can be declared lost. 15 seconds by default.
    pub lease: Duration,
    /// How many replicas have to acknowledge a record, a seal and a claim before the call returns. 0 by default.
    pub replicas: u32,
    /// The name under which this gateway receives commands. Random by default.
    pub gateway: Option<String>,
    /// How long a claim is kept that is not repeated, and whose stream is not opened; it is void after a lease, unless there was
    /// an outage. 15 minutes by default.
    pub claim_pending: Duration,
    /// Certificates in PEM that a `rediss` server's has to be signed by. The system's by default.
    pub root_certificates: Option<Vec<u8>>,
}

impl RedisOptions {
    /// Sets what the names of all keys begin with.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how long a stream is kept after its end.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how long a producer may be silent.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how many replicas have to acknowledge each record within 50 ms. If fewer do, the append is
    /// [`Unavailable`](unbraid_log::LogError::Unavailable), and has to be repeated.
    #[must_use]
    pub fn with_replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the name under which this gateway receives commands. No two gateways may have the same name at a time.
    #[must_use]
    pub fn with_gateway(mut self, gateway: impl Into<String>) -> Self {
        self.gateway = Some(gateway.into());
        self
    }

    /// Sets how long a claim is kept that is not repeated, and whose stream is not opened.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use unbraid_log_redis::RedisOptions;
    ///
    /// let options = RedisOptions::default().with_claim_pending(Duration::from_secs(3660));
    /// assert_eq!(options.claim_pending.as_secs(), 3660);
    /// ```
    #[must_use]
    pub fn with_claim_pending(mut self, pending: Duration) -> Self {
        self.claim_pending = pending;
        self
    }

    /// Sets the certificates, in PEM, that a `rediss` server's has to be signed by, in place of the system's.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_redis::RedisOptions;
    ///
    /// let options = RedisOptions::default().with_root_certificates(b"-----BEGIN CERTIFICATE-----..");
    /// assert!(options.root_certificates.is_some());
    /// ```
    #[must_use]
    pub fn with_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "unbraid".to_owned(),
            ttl: Duration::from_secs(3600),
            lease: Duration::from_secs(15),
            replicas: 0,
            gateway: None,
            claim_pending: Duration::from_secs(15 * 60),
            root_certificates: None,
        }
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("ttl", &self.ttl)
            .field("lease", &self.lease)
            .field("replicas", &self.replicas)
            .field("gateway", &self.gateway)
            .field("claim_pending", &self.claim_pending)
            .field("root_certificates", &self.root_certificates.is_some())
            .finish()
    }
}
