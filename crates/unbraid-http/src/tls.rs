//! TLS by rustls and ring: neither OpenSSL nor cmake is needed to build it.

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

use crate::error::BuildError;

/// Trusts what the system trusts, and the given roots.
///
/// Where a system has no certificates, as in a bare container, Mozilla's take their place.
pub(crate) fn config(roots: &[Vec<u8>]) -> Result<ClientConfig, BuildError> {
    let provider = Arc::new(ring::default_provider());
    let roots = certificates(roots)?;
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let mut config = match Verifier::new_with_extra_roots(roots.clone(), provider) {
        Ok(verifier) => config
            .dangerous() // the name of the method: any verifier of one's own is set through it
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth(),
        Err(error) => {
            tracing::debug!(%error, "no certificates of the system");
            let mut store = RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            };
            for root in roots {
                store.add(root).map_err(failed)?;
            }
            config.with_root_certificates(store).with_no_client_auth()
        }
    };
    // reqwest does not set it where the configuration is given.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(given: &[Vec<u8>]) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let mut certificates = Vec::new();
    for bytes in given {
        if !String::from_utf8_lossy(bytes).contains("-----BEGIN") {
            certificates.push(CertificateDer::from(bytes.clone()));
            continue;
        }
        let before = certificates.len();
        for certificate in CertificateDer::pem_slice_iter(bytes) {
            certificates.push(certificate.map_err(failed)?);
        }
        if certificates.len() == before {
            return Err(failed(pem::Error::NoItemsFound)); // a private key, say
        }
    }
    Ok(certificates)
}

fn failed(error: impl Error + Send + Sync + 'static) -> BuildError {
    BuildError::Tls(Arc::new(error))
}
