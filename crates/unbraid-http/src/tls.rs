//! TLS: which library secures connections, and which certificates it trusts.

#[cfg(feature = "native-tls")]
mod native;
#[cfg(feature = "rustls-ring")]
mod rustls;

use std::{fmt, sync::Arc};

use crate::error::BuildError;

/// Whether connections can be secured at all.
pub(crate) const IS_AVAILABLE: bool = cfg!(any(feature = "rustls-ring", feature = "native-tls"));

/// The TLS library of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    #[cfg(feature = "rustls-ring")]
    Rustls,
    #[cfg(feature = "native-tls")]
    Native,
    /// Neither feature is on: connections are not secured.
    #[cfg(not(any(feature = "rustls-ring", feature = "native-tls")))]
    None,
}

impl Default for Backend {
    /// rustls wherever it is compiled in, so that the feature `native-tls` of another crate changes nothing here.
    fn default() -> Self {
        #[cfg(feature = "rustls-ring")]
        return Self::Rustls;
        #[cfg(all(feature = "native-tls", not(feature = "rustls-ring")))]
        return Self::Native;
        #[cfg(not(any(feature = "rustls-ring", feature = "native-tls")))]
        return Self::None;
    }
}

impl Backend {
    /// Sets the client to this library. It trusts the system's certificates, and the given roots.
    pub(crate) fn configure(
        self,
        http: reqwest::ClientBuilder,
        roots: &[Vec<u8>],
    ) -> Result<reqwest::ClientBuilder, BuildError> {
        Ok(self.shared(roots)?.configure(http))
    }

    /// The same for several clients, which share the certificates.
    #[cfg_attr(
        not(any(feature = "rustls-ring", feature = "native-tls")),
        expect(unused_variables, reason = "without TLS nothing is trusted")
    )]
    pub(crate) fn shared(self, roots: &[Vec<u8>]) -> Result<SharedTls, BuildError> {
        Ok(SharedTls(match self {
            #[cfg(feature = "rustls-ring")]
            Self::Rustls => {
                let config = rustls::config(roots)?;
                Arc::new(move |http: reqwest::ClientBuilder| {
                    http.tls_backend_preconfigured(config.clone())
                })
            }
            #[cfg(feature = "native-tls")]
            Self::Native => {
                let roots = native::certificates(roots)?;
                Arc::new(move |http: reqwest::ClientBuilder| {
                    http.tls_backend_native().tls_certs_merge(roots.clone())
                })
            }
            #[cfg(not(any(feature = "rustls-ring", feature = "native-tls")))]
            Self::None => Arc::new(|http| http),
        }))
    }
}

/// The TLS library and the certificates of several clients.
#[derive(Clone)]
pub struct SharedTls(Arc<dyn Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync>);

impl SharedTls {
    /// Sets a client to them.
    pub fn configure(&self, http: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        (self.0)(http)
    }
}

impl fmt::Debug for SharedTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTls").finish_non_exhaustive()
    }
}

/// Whether these bytes are certificates in PEM, and not one in DER.
#[cfg(any(feature = "rustls-ring", feature = "native-tls"))]
fn is_pem(certificate: &[u8]) -> bool {
    String::from_utf8_lossy(certificate).contains("-----BEGIN")
}
