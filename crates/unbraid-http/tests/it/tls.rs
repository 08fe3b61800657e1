//! TLS with a custom root, with an unknown root, and with servers that do not support it.

use std::{env, net::Ipv4Addr, process::Command, sync::Arc};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::{CryptoProvider, ring},
        pki_types::PrivateKeyDer,
    },
};
use unbraid_http::{Client, HttpError};

use crate::{
    responses::{request, texts},
    server::{Server, two_choices_reply},
};

/// A server with a self-signed certificate, and that certificate in PEM and DER.
pub(crate) async fn server(protocols: &[&str]) -> (Server, [Vec<u8>; 2]) {
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
    let server = Server::tls(acceptor, |_| two_choices_reply()).await;
    (server, [cert.pem().into_bytes(), cert.der().to_vec()])
}

#[tokio::test]
async fn a_custom_root_is_trusted_and_tls_negotiates_the_version() {
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
            let completions = client.send(&request()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"]);
        }
        for request in server.requests() {
            assert_eq!(request.version(), expected, "{protocols:?}");
        }
    }
}

#[tokio::test]
async fn an_unknown_root_is_a_tls_error() {
    let (server, _) = server(&["h2"]).await;
    let error = server.client().send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
    let address = server.address();
    assert_eq!(error.to_string(), format!("no TLS with {address}"));
    assert_eq!(server.connections(), 1, "the request is not sent again");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn tls_to_a_port_without_tls_is_a_tls_error() {
    let server = Server::start(|_| two_choices_reply()).await;
    let base = format!("https://{}/v1", server.address());
    let client = Client::builder().base_url(base).proxy_from_env(false);
    let error = client.build().unwrap().send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn http_to_a_tls_port_is_a_transport_error() {
    let (server, _) = server(&[]).await;
    let base = format!("http://{}/v1", server.address());
    let client = Client::builder().base_url(base).proxy_from_env(false);
    let error = client.build().unwrap().send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Transport { .. }), "{error:?}");
}

/// Run by the test below in a process of its own, because other tests of this process install a provider.
#[tokio::test]
#[ignore = "the test below runs it in a process of its own"]
async fn sends_without_an_installed_provider() {
    assert!(CryptoProvider::get_default().is_none());
    let client = Client::from_env().unwrap();
    let error = client.send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
    // The provider is that of the client, and none is installed for the process.
    assert!(CryptoProvider::get_default().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_installs_no_provider_can_use_tls() {
    let (server, _) = server(&["h2"]).await;
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args([
            "--exact",
            "tls::sends_without_an_installed_provider",
            "--ignored",
        ])
        .env("OPENAI_BASE_URL", server.base_url())
        .env("NO_PROXY", "*");
    let output = tokio::task::spawn_blocking(move || process.output());
    let output = output.await.unwrap().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );
    assert_eq!(server.connections(), 1);
}
