//! TLS by rustls and ring.

use std::{error::Error, io, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

use crate::{ConnectError, error::Failure};

/// Trusts the given roots, or the system's.
pub(super) fn config(roots: Option<&[u8]>) -> Result<Arc<ClientConfig>, ConnectError> {
    let invalid = |reason| ConnectError::InvalidOption { reason };
    // The provider is passed on explicitly. A process-wide default may be missing, and rustls panics if several are compiled in.
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|_| invalid("TLS has no common version with its provider"))?;
    let config = match roots {
        Some(pem) => config
            .with_root_certificates(store(pem)?)
            .with_no_client_auth(),
        None => {
            let verifier = Verifier::new(provider)
                .map_err(|_| invalid("the system has no certificates: set some"))?;
            config
                .dangerous() // the method through which any custom verifier is set
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth()
        }
    };
    Ok(Arc::new(config))
}

fn store(pem: &[u8]) -> Result<RootCertStore, ConnectError> {
    let invalid = ConnectError::InvalidOption {
        reason: "the root certificates are not PEM",
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| invalid.clone())?;
        store.add(certificate).map_err(|_| invalid.clone())?;
    }
    if store.is_empty() {
        return Err(invalid);
    }
    Ok(store)
}

/// The reason of a handshake that failed. rustls describes certificates by constants and names, not by what a peer sent.
pub(super) fn failure(error: &io::Error) -> Failure {
    let tls = error.get_ref().and_then(|inner| {
        let inner: &(dyn Error + 'static) = inner;
        inner.downcast_ref::<rustls::Error>()
    });
    match tls {
        Some(rustls::Error::InvalidCertificate(_)) => {
            Failure::Connection("the server's certificate is not trusted".to_owned())
        }
        Some(_) => Failure::Connection("the TLS handshake failed".to_owned()),
        None => Failure::from_io(error),
    }
}
