//! `tls`, with certificates of our own.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use unbraid_log::LogStore;
use unbraid_log_nats::{NatsError, NatsLog};
use unbraid_testkit::servers::nats::{NatsConfig, NatsServer};

use crate::support::{meta, new_id, options, record};

/// Writes the server's certificate and key, and returns the authority's certificate.
fn certificates(folder: &Path) -> String {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap();
    fs::write(folder.join("cert.pem"), server.pem()).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    authority.pem()
}

#[tokio::test]
async fn a_trusted_server_is_used_with_tls_and_no_other() {
    let folder = TempDir::new().unwrap();
    let root = certificates(folder.path());
    let config = NatsConfig {
        tls: Some((
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        )),
        ..NatsConfig::default()
    };
    let Some(server) = NatsServer::start(config).await else {
        return;
    };
    let connect = |host: &str, root: Option<String>| {
        let url = format!("tls://{host}:{}", server.port());
        let mut options = options();
        options.root_certificates = root.map(String::into_bytes);
        async move { NatsLog::connect(&url, options).await }
    };
    let log = connect("localhost", Some(root.clone())).await.unwrap();
    let mut writer = log.open(&new_id(), &meta()).await.unwrap();
    writer.append(&record(1, 3)).await.unwrap();

    let other = TempDir::new().unwrap();
    let other = certificates(other.path());
    for (host, root) in [
        ("127.0.0.1", Some(root)),
        ("localhost", Some(other)),
        ("localhost", None),
    ] {
        let error = connect(host, root).await.unwrap_err();
        assert!(matches!(error, NatsError::Unreachable { .. }), "{error}");
    }
}

#[tokio::test]
async fn root_certificates_that_are_not_pem_are_refused() {
    for pem in ["", "nothing", "-----BEGIN CERTIFICATE-----"] {
        let refused = NatsLog::connect("tls://127.0.0.1:1", options().with_root_certificates(pem));
        let error = refused.await.unwrap_err();
        let NatsError::InvalidOption { option, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(option, "root_certificates");
    }
}
