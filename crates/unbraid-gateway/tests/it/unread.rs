//! Requests that are answered before their whole body has arrived: clients that send everything first see the answer, too.

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use crate::support::{TestGateway, Upstream, soon, start_with};

/// More than what the buffers of two sockets hold.
const LENGTH: usize = 16 << 20;

async fn start() -> TestGateway {
    let upstream = Upstream::steps(Vec::new()).await;
    start_with(&upstream, |builder| builder.max_body(1 << 20)).await
}

/// A refused request: its method, its path, a header and the status.
const REFUSED: [(&str, &str, &str, u16); 5] = [
    ("POST", "/v1/chat/completions", "x-a: b", 413),
    ("PUT", "/v1/chat/completions", "x-a: b", 405),
    ("POST", "/v1/other", "x-a: b", 404),
    ("POST", "/v1/chat/completions", "origin: http://evil", 403),
    (
        "POST",
        "/v1/chat/completions",
        "content-type: text/plain",
        415,
    ),
];

fn head(method: &str, path: &str, header: &str, framing: &str) -> String {
    let json = match header.starts_with("content-type") {
        true => "",
        false => "content-type: application/json\r\n",
    };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{json}{header}\r\n{framing}\r\n\r\n")
}

/// Reads one answer whose body is short, and returns its status.
async fn status(socket: &mut TcpStream) -> u16 {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"}}") && !bytes.ends_with(b"\"ok\"}") {
        let read = soon(socket.read_buf(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&bytes));
    }
    let text = String::from_utf8(bytes).unwrap();
    text["HTTP/1.1 ".len()..][..3].parse().unwrap()
}

#[tokio::test]
async fn a_client_that_sends_its_whole_body_first_sees_the_answer_and_keeps_its_connection() {
    let gateway = start().await;
    let body = vec![b'x'; LENGTH];
    for (method, path, header, expected) in REFUSED {
        let mut socket = TcpStream::connect(gateway.address).await.unwrap();
        for framing in [
            format!("content-length: {LENGTH}"),
            "transfer-encoding: chunked".into(),
        ] {
            let head = head(method, path, header, &framing);
            socket.write_all(head.as_bytes()).await.unwrap();
            if framing.starts_with('t') {
                let size = format!("{LENGTH:x}\r\n");
                socket.write_all(size.as_bytes()).await.unwrap();
            }
            soon(socket.write_all(&body)).await.unwrap().unwrap();
            if framing.starts_with('t') {
                socket.write_all(b"\r\n0\r\n\r\n").await.unwrap();
            }
            assert_eq!(status(&mut socket).await, expected, "{head}");
        }
        let next = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
        socket.write_all(next).await.unwrap();
        assert_eq!(status(&mut socket).await, 200);
    }
}

#[tokio::test]
async fn an_http2_stream_that_is_answered_early_is_read_to_its_end() {
    let gateway = start().await;
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    for (method, path, header, expected) in REFUSED {
        let (name, value) = header.split_once(": ").unwrap();
        let mut post = http::Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header(name, value);
        if name != "content-type" {
            post = post.header("content-type", "application/json");
        }
        let mut client = client.clone().ready().await.unwrap();
        let (response, mut body) = client.send_request(post.body(()).unwrap(), false).unwrap();
        let mut left = LENGTH;
        while left > 0 {
            body.reserve_capacity(left);
            let capacity = poll_fn(|cx| body.poll_capacity(cx));
            let capacity = soon(capacity).await.unwrap().unwrap().unwrap();
            body.send_data(Bytes::from(vec![b'x'; capacity]), false)
                .unwrap();
            left -= capacity;
        }
        body.send_data(Bytes::new(), true).unwrap();
        let response = soon(response).await.unwrap().unwrap();
        assert_eq!(response.status(), expected, "{method} {path} {header}");
        let mut body = response.into_body();
        while let Some(data) = soon(body.data()).await.unwrap() {
            data.expect("the stream is not reset");
        }
    }
}

#[tokio::test]
async fn the_rest_of_a_body_is_awaited_for_a_few_seconds_only() {
    let gateway = start().await;
    let closes = async |framing: &str| {
        let mut socket = TcpStream::connect(gateway.address).await.unwrap();
        let head = head("POST", "/v1/chat/completions", "x-a: b", framing);
        socket.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(status(&mut socket).await, 413);
        let answered = Instant::now();
        let read = soon(socket.read(&mut [0; 16])).await.expect("it is closed");
        assert!(matches!(read, Ok(0) | Err(_)));
        answered.elapsed()
    };
    let length = format!("content-length: {LENGTH}");
    // A client that waits for a `100 Continue` sends nothing that has to be read.
    let expects = format!("expect: 100-continue\r\n{length}");
    let (stalled, expecting) = tokio::join!(closes(&length), closes(&expects));
    assert!(stalled < Duration::from_secs(8), "{stalled:?}");
    assert!(expecting < Duration::from_secs(3), "{expecting:?}");
}

#[tokio::test]
async fn a_body_that_never_ends_is_read_up_to_a_limit() {
    let gateway = start().await;
    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    let head = head("POST", "/v1/other", "x-a: b", "transfer-encoding: chunked");
    socket.write_all(head.as_bytes()).await.unwrap();
    let chunk = [
        format!("{:x}\r\n", 1 << 20).into_bytes(),
        vec![b'x'; 1 << 20],
        b"\r\n".to_vec(),
    ];
    let chunk = chunk.concat();
    let mut sent = 0;
    while soon(socket.write_all(&chunk)).await.unwrap().is_ok() {
        sent += 1;
        assert!(sent < 100, "{sent} MiB were read");
    }
    assert!(sent >= 32, "{sent}");
}
