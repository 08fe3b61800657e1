//! TLS: with a root of one's own, with none, and where nobody speaks it.

use std::{net::Ipv4Addr, sync::Arc};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};
use unbraid_http::{Client, HttpError};

use crate::{
    answers::{texts, two},
    server::{Server, two_choices_answer},
};

/// A server with a certificate that it signed itself, and that certificate in PEM and DER.
async fn server(protocols: &[&str]) -> (Server, [Vec<u8>; 2]) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([Ipv4Addr::LOCALHOST.to_string()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::tls(acceptor, |_| two_choices_answer()).await;
    (server, [cert.pem().into_bytes(), cert.der().to_vec()])
}

#[tokio::test]
async fn a_root_of_ones_own_is_trusted_and_tls_decides_the_version() {
    use hyper::Version;

    let cases: [(&[&str], Version); 3] = [
        (&["h2", "http/1.1"], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ];
    for (protocols, expected) in cases {
        let (server, roots) = server(protocols).await;
        for root in roots {
            let client = server.builder().root_certificate(root).build().unwrap();
            let completions = client.send(&two()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"]);
        }
        for request in server.requests() {
            assert_eq!(request.version(), expected, "{protocols:?}");
        }
    }
}

#[tokio::test]
async fn an_unknown_root_is_an_error_of_its_own() {
    let (server, _) = server(&["h2"]).await;
    let refused = server.client().send(&two()).await.unwrap_err();
    assert!(matches!(refused, HttpError::Tls { .. }), "{refused:?}");
    let address = server.address();
    assert_eq!(refused.to_string(), format!("no TLS with {address}"));
    assert_eq!(server.connections(), 1, "it would be the same again");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn tls_to_a_plain_port_is_an_error_of_its_own() {
    let plain = Server::start(|_| two_choices_answer()).await;
    let base = format!("https://{}/v1", plain.address());
    let client = Client::builder().base_url(base).proxy_from_env(false);
    let refused = client.build().unwrap().send(&two()).await.unwrap_err();
    assert!(matches!(refused, HttpError::Tls { .. }), "{refused:?}");
    assert!(plain.requests().is_empty());
}

#[tokio::test]
async fn plain_http_to_a_tls_port_is_an_error() {
    let (server, _) = server(&[]).await;
    let base = format!("http://{}/v1", server.address());
    let client = Client::builder().base_url(base).proxy_from_env(false);
    let refused = client.build().unwrap().send(&two()).await.unwrap_err();
    assert!(
        matches!(refused, HttpError::Transport { .. }),
        "{refused:?}"
    );
}
