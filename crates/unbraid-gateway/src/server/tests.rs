//! Connections that were accepted just before a drain.

use std::{fs, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::Server;
use crate::gateway::Gateway;

/// What a client reads that sends this over a connection whose task first runs when the gateway drains already.
async fn answered(request: &[u8], sends_after: Duration) -> Vec<u8> {
    let gateway = Gateway::builder("http://127.0.0.1:1/v1").build().unwrap();
    let server = Server::new(gateway.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    if sends_after.is_zero() {
        client.write_all(request).await.unwrap();
    }
    let (socket, _) = listener.accept().await.unwrap();
    gateway.drain();
    let (_drain, drained) = watch::channel(true);
    let connection = server.connection(&gateway.service(), drained);
    let serving = tokio::spawn(connection.serve(socket));
    if !sends_after.is_zero() {
        tokio::time::sleep(sends_after).await;
        client.write_all(request).await.unwrap();
    }
    let mut text = Vec::new();
    let _reset = timeout(Duration::from_secs(20), client.read_to_end(&mut text)).await;
    timeout(Duration::from_secs(20), serving)
        .await
        .unwrap()
        .unwrap();
    text
}

const POST: &str = concat!(
    "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n",
    "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
);

#[tokio::test]
async fn a_request_that_was_sent_before_the_drain_is_answered() {
    for after in [Duration::ZERO, Duration::from_millis(100)] {
        for _ in 0..10 {
            let answer = answered(POST.as_bytes(), after).await;
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 "), "{after:?} {answer:?}");
            assert!(answer.contains("draining"), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_soon_after_the_drain() {
    assert!(answered(b"", Duration::ZERO).await.is_empty());
}

#[tokio::test]
async fn a_client_in_its_handshake_is_answered_as_well() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    fs::write(&certificate, certified.cert.pem()).unwrap();
    fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let gateway = Gateway::builder("http://127.0.0.1:1/v1").build().unwrap();
    let server = Server::new(gateway.clone())
        .tls(&certificate, &key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = tokio::spawn(async move {
        let socket = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let connected = TlsConnector::from(Arc::new(config)).connect(name, socket);
        let mut stream = connected.await?;
        stream.write_all(POST.as_bytes()).await?;
        let mut text = vec![0; 12];
        stream.read_exact(&mut text).await?;
        std::io::Result::Ok(text)
    });
    let (socket, _) = listener.accept().await.unwrap();
    gateway.drain();
    let (_drain, drained) = watch::channel(true);
    let connection = server.connection(&gateway.service(), drained);
    let served = timeout(Duration::from_secs(20), connection.serve(socket));
    served.await.unwrap();
    let answer = client.await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 503");
}
