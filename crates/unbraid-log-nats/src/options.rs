//! The options of a log in NATS.

use std::{fmt, path::PathBuf, time::Duration};

/// The options of a [`NatsLog`](crate::NatsLog).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_log_nats::NatsOptions;
///
/// let options = NatsOptions::default()
///     .with_prefix("staging")
///     .with_ttl(Duration::from_secs(600))
///     .with_lease(Duration::from_secs(5))
///     .with_replicas(3)
///     .with_gateway("gateway-7");
/// assert_eq!(options.prefix, "staging");
/// assert_eq!(NatsOptions::default().lease, Duration::from_secs(15));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NatsOptions {
    /// The first token of all subjects, and in capitals the name of the stream. `unbraid` by default. It separates
    /// deployments that share an account.
    pub prefix: String,
    /// How long a stream is kept after its end. One hour by default.
    pub ttl: Duration,
    /// How long a writer may be silent before its stream can be declared lost. 15 seconds by default.
    pub lease: Duration,
    /// On how many servers of a cluster the streams are stored, if this gateway creates them. 0 and 1 mean one server,
    /// which is the default; 3 survives the loss of one.
    pub replicas: u32,
    /// The name of this gateway, to which commands are addressed: up to 64 characters of `A-Z a-z 0-9 _ -`. Two gateways
    /// must not have the same name. Random by default.
    pub gateway: Option<String>,
    /// How long a claim is kept that is not repeated, and whose stream is not opened; it is void after a lease, unless there was
    /// an outage. 15 minutes by default.
    pub claim_pending: Duration,
    /// A file with the credentials of a user (`.creds`), for servers that use JWT. A user and a password, or a token, are
    /// part of the URL.
    pub credentials: Option<PathBuf>,
    /// Certificates in PEM that a `tls` server's has to be signed by. The system's by default.
    pub root_certificates: Option<Vec<u8>>,
    /// The JetStream domain, for a log behind a leaf node.
    pub domain: Option<String>,
}

impl Default for NatsOptions {
    fn default() -> Self {
        Self {
            prefix: "unbraid".to_owned(),
            ttl: Duration::from_secs(3600),
            lease: Duration::from_secs(15),
            replicas: 0,
            gateway: None,
            claim_pending: Duration::from_secs(15 * 60),
            credentials: None,
            root_certificates: None,
            domain: None,
        }
    }
}

impl NatsOptions {
    /// Sets the prefix of all subjects.
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

    /// Sets how long a writer may be silent.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets on how many servers the streams are stored.
    #[must_use]
    pub fn with_replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the name of this gateway.
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
    /// use unbraid_log_nats::NatsOptions;
    ///
    /// let options = NatsOptions::default().with_claim_pending(Duration::from_secs(3660));
    /// assert_eq!(options.claim_pending.as_secs(), 3660);
    /// ```
    #[must_use]
    pub fn with_claim_pending(mut self, pending: Duration) -> Self {
        self.claim_pending = pending;
        self
    }

    /// Sets the file of the credentials.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_nats::NatsOptions;
    ///
    /// let options = NatsOptions::default().with_credentials("/etc/unbraid/nats.creds");
    /// assert!(options.credentials.is_some());
    /// ```
    #[must_use]
    pub fn with_credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.credentials = Some(file.into());
        self
    }

    /// Sets the certificates, in PEM, that a `tls` server's has to be signed by, in place of the system's.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_nats::NatsOptions;
    ///
    /// let options = NatsOptions::default().with_root_certificates(b"-----BEGIN CERTIFICATE-----..");
    /// assert!(options.root_certificates.is_some());
    /// ```
    #[must_use]
    pub fn with_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }

    /// Sets the JetStream domain.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_log_nats::NatsOptions;
    ///
    /// assert!(NatsOptions::default().with_domain("hub").domain.is_some());
    /// ```
    #[must_use]
    pub fn with_domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }
}

impl fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsOptions")
            .field("prefix", &self.prefix)
            .field("ttl", &self.ttl)
            .field("lease", &self.lease)
            .field("replicas", &self.replicas)
            .field("gateway", &self.gateway)
            .field("claim_pending", &self.claim_pending)
            .field("credentials", &self.credentials)
            .field("root_certificates", &self.root_certificates.is_some())
            .field("domain", &self.domain)
            .finish()
    }
}
