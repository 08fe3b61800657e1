//! TLS by rustls and ring, which needs neither OpenSSL nor cmake to build.

use std::{error::Error, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};
use rustls_platform_verifier::Verifier;

use super::is_pem;
use crate::error::BuildError;

/// Trusts the system's certificates and the given roots.
///
/// If a system has no certificates, as in a minimal container, Mozilla's are used.
pub(super) fn config(roots: &[Vec<u8>]) -> Result<ClientConfig, BuildError> {
    // The provider is passed on explicitly. A process-wide default may be missing, and rustls panics if several are compiled
    // in and none was installed.
    let provider = Arc::new(ring::default_provider());
    let roots = certificates(roots)?;
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(tls_error)?;
    let mut config = match Verifier::new_with_extra_roots(roots.clone(), provider) {
        Ok(verifier) => config
            .dangerous() // the method through which any custom verifier is set
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth(),
        Err(error) => {
            tracing::debug!(%error, "the system has no certificates");
            let mut store = RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            };
            for root in roots {
                store.add(root).map_err(tls_error)?;
            }
            config.with_root_certificates(store).with_no_client_auth()
        }
    };
    // reqwest does not set the protocols of a given configuration.
    config.alpn_protocols = match cfg!(feature = "http2") {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    Ok(config)
}

fn certificates(roots: &[Vec<u8>]) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let mut certificates = Vec::new();
    for bytes in roots {
        if !is_pem(bytes) {
            certificates.push(CertificateDer::from(bytes.clone()));
            continue;
        }
        let before = certificates.len();
        for certificate in CertificateDer::pem_slice_iter(bytes) {
            certificates.push(certificate.map_err(tls_error)?);
        }
        if certificates.len() == before {
            return Err(tls_error(pem::Error::NoItemsFound)); // it may be a private key
        }
    }
    Ok(certificates)
}

fn tls_error(error: impl Error + Send + Sync + 'static) -> BuildError {
    BuildError::Tls(Arc::new(error))
}
