//! TLS by the operating system's library.

use std::{error::Error, sync::Arc};

use reqwest::Certificate;
use unbraid::BoxError;

use super::is_pem;
use crate::error::BuildError;

/// Reads roots in PEM or DER.
pub(super) fn certificates(roots: &[Vec<u8>]) -> Result<Vec<Certificate>, BuildError> {
    let mut certificates = Vec::new();
    for bytes in roots {
        if !is_pem(bytes) {
            // reqwest only copies the bytes, and would report an invalid certificate without a cause later.
            native_tls::Certificate::from_der(bytes).map_err(tls_error)?;
            certificates.push(Certificate::from_der(bytes).map_err(tls_error)?);
            continue;
        }
        let bundle = Certificate::from_pem_bundle(bytes).map_err(tls_error)?;
        if bundle.is_empty() {
            let error = BoxError::from("no certificate in the PEM text"); // it may be a private key
            return Err(BuildError::Tls(Arc::from(error)));
        }
        certificates.extend(bundle);
    }
    Ok(certificates)
}

fn tls_error(error: impl Error + Send + Sync + 'static) -> BuildError {
    BuildError::Tls(Arc::new(error))
}
