//! TLS by the operating system's library.

use unbraid_http::{BuildError, Client, HttpError};

use crate::{
    responses::{request, texts},
    tls::server,
};

#[tokio::test]
async fn a_custom_root_is_trusted_by_the_system_library() {
    let (server, roots) = server(&["h2", "http/1.1"]).await;
    for root in roots {
        let builder = server.builder().native_tls().root_certificate(root);
        let completions = builder.build().unwrap().send(&request()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"]);
    }
}

#[tokio::test]
async fn an_unknown_root_is_a_tls_error_of_the_system_library() {
    let (server, _) = server(&["h2"]).await;
    let client = server.builder().native_tls().build().unwrap();
    let error = client.send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

#[test]
fn an_invalid_root_is_an_error_of_build() {
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for root in ["-----BEGIN CERTIFICATE-----\n?", key, "no certificate"] {
        let builder = Client::builder().native_tls().root_certificate(root);
        let error = builder.build().map(drop).unwrap_err();
        assert!(matches!(error, BuildError::Tls(_)), "{error}");
    }
}
