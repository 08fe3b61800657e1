//! TLS: both protocols by ALPN, on one port, and everything that reads a stream over them.

use std::{net::SocketAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use unbraid_gateway::{BuildError, Gateway, Server};

use crate::support::{Upstream, chunk, finish, request, soon, stream_of};

struct TlsServer {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    task: AbortHandle,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn start(upstream: &Upstream) -> TlsServer {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let gateway = Gateway::builder(upstream.url()).build().unwrap();
    let server = Server::new(gateway).tls(&certificate, &key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    TlsServer {
        address,
        certificate: certified.cert.der().clone(),
        task: task.abort_handle(),
    }
}

impl TlsServer {
    async fn connect(&self, protocols: &[&str]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connected = TlsConnector::from(Arc::new(config)).connect(name, socket);
        soon(connected).await.unwrap().unwrap()
    }
}

async fn upstream() -> Upstream {
    let answer = stream_of(&[chunk(0, "a"), finish(0), "[DONE]".to_owned()]);
    Upstream::script(move |_, _| answer.clone()).await
}

#[tokio::test]
async fn a_client_that_offers_h2_gets_it() {
    let upstream = upstream().await;
    let server = start(&upstream).await;
    for protocols in [&["h2", "http/1.1"][..], &["http/1.1", "h2"], &["h2"]] {
        let stream = server.connect(protocols).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        let post = http::Request::post("https://localhost/v1/chat/completions")
            .header("content-type", "application/json")
            .body(())
            .unwrap();
        let (response, mut body) = client.send_request(post, false).unwrap();
        body.send_data(request(1).into(), true).unwrap();
        let mut response = soon(response).await.unwrap().unwrap();
        assert_eq!(response.status(), 200);
        let mut text = Vec::new();
        while let Some(bytes) = soon(response.body_mut().data()).await.unwrap() {
            text.extend_from_slice(&bytes.unwrap());
        }
        assert!(text.ends_with(b"data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_client_that_offers_only_http_1_1_or_nothing_gets_that() {
    let upstream = upstream().await;
    let server = start(&upstream).await;
    for (protocols, expected) in [(&["http/1.1"][..], Some(&b"http/1.1"[..])), (&[], None)] {
        let mut stream = server.connect(protocols).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), expected);
        let body = request(1);
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        let mut text = String::new();
        soon(stream.read_to_string(&mut text))
            .await
            .unwrap()
            .unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("x-stream-id: ") && text.contains("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_client_without_a_common_protocol_is_refused_and_costs_nothing() {
    let upstream = upstream().await;
    let server = start(&upstream).await;
    let config = {
        let mut roots = RootCertStore::empty();
        roots.add(server.certificate.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"spdy/3".to_vec()];
        config
    };
    let socket = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let refused = soon(TlsConnector::from(Arc::new(config)).connect(name, socket)).await;
    assert!(refused.unwrap().is_err());
    // HTTP without TLS on the same port is refused, too.
    let mut unencrypted = TcpStream::connect(server.address).await.unwrap();
    unencrypted
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut bytes = Vec::new();
    let _closed = soon(unencrypted.read_to_end(&mut bytes)).await.unwrap();
    assert!(!bytes.starts_with(b"HTTP/"));
    let stream = server.connect(&["h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn files_that_are_no_certificate_or_key_are_an_error() {
    let upstream = upstream().await;
    let gateway = Gateway::builder(upstream.url()).build().unwrap();
    let files = tempfile::tempdir().unwrap();
    let empty = files.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let refused = Server::new(gateway.clone()).tls(&empty, &empty);
    assert!(matches!(refused, Err(BuildError::Tls { .. })));
    let missing = files.path().join("missing.pem");
    let refused = Server::new(gateway).tls(&missing, &missing);
    assert!(matches!(refused, Err(BuildError::File { .. })));
}
