//! TLS with roots of the caller, by rustls and ring. Without them the client trusts the system's by itself.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::NatsError;

/// Trusts the given roots only.
pub(crate) fn config(pem: &[u8]) -> Result<ClientConfig, NatsError> {
    // The provider is passed on explicitly. A process-wide default may be missing, and rustls panics if several are compiled in.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| invalid("TLS has no common version with its provider"))?;
    Ok(config
        .with_root_certificates(store(pem)?)
        .with_no_client_auth())
}

fn store(pem: &[u8]) -> Result<RootCertStore, NatsError> {
    let not_pem = || invalid("they are not PEM");
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| not_pem())?;
        store.add(certificate).map_err(|_| not_pem())?;
    }
    if store.is_empty() {
        return Err(not_pem());
    }
    Ok(store)
}

fn invalid(reason: &'static str) -> NatsError {
    NatsError::InvalidOption {
        option: "root_certificates",
        reason,
    }
}
