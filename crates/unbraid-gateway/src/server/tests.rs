//! Connections that were accepted just before a drain.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

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

#[tokio::test]
async fn a_request_that_was_sent_before_the_drain_is_answered() {
    let post = concat!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n",
        "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    );
    for after in [Duration::ZERO, Duration::from_millis(100)] {
        for _ in 0..10 {
            let answer = answered(post.as_bytes(), after).await;
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
