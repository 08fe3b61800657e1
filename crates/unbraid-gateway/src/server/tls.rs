//! TLS by rustls and ring, with HTTP/2 and HTTP/1.1 by ALPN.

use std::{fmt, fs, path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};
use tokio_rustls::TlsAcceptor;

use crate::error::BuildError;

/// A certificate and its key.
pub(super) struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, BuildError> {
        let read = |path| fs::read(path).map_err(|error| BuildError::file(path, error));
        let (chain, key_pem) = (read(certificate)?, read(key)?);
        let chain = CertificateDer::pem_slice_iter(&chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| tls_error(&error))?;
        if chain.is_empty() {
            let why = format!("{} contains no certificate", certificate.display());
            return Err(tls_error(&why));
        }
        let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                tls_error(&format!("{} contains no private key", key.display()))
            }
            error => tls_error(&error),
        })?;
        // The provider is passed on explicitly: a process-wide default may be missing.
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| tls_error(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

fn tls_error(error: &dyn fmt::Display) -> BuildError {
    BuildError::Tls {
        why: error.to_string(),
    }
}
