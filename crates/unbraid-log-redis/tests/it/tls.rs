//! `rediss`, with certificates of our own.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use unbraid_log::LogStore;
use unbraid_log_redis::{ConnectError, RedisLog, RedisOptions};
use unbraid_testkit::servers::{RedisServer, free_port};

use crate::support::{append, open, read_all, record};

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
    let path = |name: &str| folder.path().join(name).display().to_string();
    let port = free_port().to_string();
    let Some(_server) = RedisServer::start_with(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &path("cert.pem"),
        "--tls-key-file",
        &path("key.pem"),
        "--tls-auth-clients",
        "no",
    ]) else {
        return;
    };
    let connect = |host: &str, root: Option<String>| {
        let url = format!("rediss://{host}:{port}");
        let mut options = RedisOptions::default();
        options.root_certificates = root.map(String::into_bytes);
        async move { RedisLog::connect(&url, options).await }
    };
    let log = connect("localhost", Some(root.clone())).await.unwrap();
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 3)).await.unwrap();
    writer
        .seal(&unbraid_log::StreamEnd::new(unbraid_log::End::Finished))
        .await
        .unwrap();
    let log: &dyn LogStore = &log;
    assert_eq!(read_all(log, &id).await, Ok(vec![1, 2, 3]));

    let other = certificates(&{
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        other
    });
    for (host, root) in [("127.0.0.1", root), ("localhost", other)] {
        let error = connect(host, Some(root)).await.unwrap_err();
        let ConnectError::Unreachable { reason, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(reason, "the server's certificate is not trusted");
    }
    assert!(
        connect("localhost", None).await.is_err(),
        "the system knows no such authority"
    );
    let error = connect("localhost", Some("nothing".to_owned())).await;
    assert!(matches!(error, Err(ConnectError::InvalidOption { .. })));
}
