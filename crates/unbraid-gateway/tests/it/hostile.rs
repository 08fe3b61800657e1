//! Section 7: hostile clients. Each costs one connection, and nothing else.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::support::{
    Step, TestGateway, Upstream, answer, chunk, eventually, json_body, raw, send, soon, sse, start,
    start_with, stream_of,
};

/// A connection that has had one answer, and then sends a part of a head.
async fn second_head(gateway: &TestGateway) -> TcpStream {
    let mut socket = raw(gateway, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut bytes = vec![0; 4096];
    let read = soon(socket.read(&mut bytes)).await.unwrap().unwrap();
    assert!(bytes[..read].starts_with(b"HTTP/1.1 200"));
    socket.write_all(b"GET /hea").await.unwrap();
    socket
}

/// A connection that sends a part of a head while it gets an answer, which takes half a second.
async fn early_head(gateway: &TestGateway) -> TcpStream {
    let mut socket = raw(
        gateway,
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n",
    )
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    socket.write_all(b"GET /hea").await.unwrap();
    socket
}

#[tokio::test]
async fn a_head_that_never_ends_closes_the_connection_after_10_seconds() {
    let mut steps = vec![Step::Sleep(Duration::from_millis(500))];
    steps.extend(json_body(200, "{}"));
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let sockets = [
        raw(&gateway, b"").await,
        raw(&gateway, b"P").await,
        raw(&gateway, b"PRI * HTTP/2.0\r\n\r\nSM").await,
        raw(&gateway, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ").await,
        second_head(&gateway).await,
        early_head(&gateway).await,
    ];
    let started = tokio::time::Instant::now();
    futures::future::join_all(sockets.map(answer)).await;
    assert!(
        started.elapsed() < Duration::from_secs(13),
        "{:?}",
        started.elapsed()
    );
    assert!(started.elapsed() > Duration::from_secs(8));
}

#[tokio::test]
async fn a_head_of_more_than_64_kib_is_refused() {
    let upstream = Upstream::steps(Vec::new()).await;
    let gateway = start(&upstream).await;
    let start = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ";
    let lengths = [(65_536, 200), (65_537, 431), (66_000, 431), (100_000, 431)];
    for (length, status) in lengths {
        let value = "x".repeat(length - start.len() - "\r\n\r\n".len());
        let head = format!("{start}{value}\r\n\r\n");
        let mut socket = TcpStream::connect(gateway.address).await.unwrap();
        let _refused = socket.write_all(head.as_bytes()).await;
        let answer = answer(socket).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{length}: {answer}");
    }
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_answered_with_the_body_of_an_error() {
    let upstream = Upstream::steps(Vec::new()).await;
    let gateway = start(&upstream).await;
    let fields = |number: usize| "x: 1\r\n".repeat(number - 1);
    let heads = [
        (
            format!(
                "GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
                fields(101)
            ),
            431,
            "head_too_large",
        ),
        ("NONSENSE\r\n\r\n".to_owned(), 400, "invalid_http"),
        (
            "GET /healthz HTTP/1.1\r\nb ad: 1\r\n\r\n".to_owned(),
            400,
            "invalid_http",
        ),
    ];
    for (head, status, code) in heads {
        let answer = answer(raw(&gateway, head.as_bytes()).await).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-type: application/json"), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], code);
    }
}

#[tokio::test]
async fn a_body_that_is_declared_too_long_is_not_read() {
    let upstream = Upstream::steps(Vec::new()).await;
    let gateway = start(&upstream).await;
    let head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{";
    let mut socket = raw(&gateway, head).await;
    let mut bytes = [0; 64];
    let read = soon(socket.read(&mut bytes)).await.unwrap().unwrap();
    assert!(bytes[..read].starts_with(b"HTTP/1.1 413"));
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_disconnected_and_delays_nobody() {
    let mut steps = vec![sse()];
    let part = Step::Send(format!("data: {}\n\n", chunk(0, &"x".repeat(60_000))));
    steps.extend(std::iter::repeat_n(part, 400));
    steps.push(Step::Send("data: [DONE]\n\n".into()));
    steps.push(Step::End);
    let upstream = Upstream::steps(steps).await;
    let stall = Duration::from_millis(500);
    let gateway = start_with(&upstream, |builder| builder.reader_stall(stall)).await;
    let (id, mut post) = gateway.create(1).await;
    let request = format!("GET /v1/streams/{id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let stalled = raw(&gateway, request.as_bytes()).await;
    assert_eq!(post.rest().await.len(), 401);
    eventually("it is disconnected", async || {
        gateway.metric("unbraid_reader_disconnects_total{reason=\"slow\"}") == 1.0
    })
    .await;
    let got = answer(stalled).await;
    assert!(got.len() > 1000 && got.len() < 20_000_000, "{}", got.len());
    let rest = gateway
        .view(&format!("/v1/streams/{id}/events?after=399"))
        .await
        .rest()
        .await;
    assert_eq!(rest.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn a_reader_that_reads_slowly_and_without_a_pause_is_kept() {
    let mut steps = vec![sse()];
    let part = Step::Send(format!("data: {}\n\n", chunk(0, &"x".repeat(60_000))));
    steps.extend(std::iter::repeat_n(part, 300));
    steps.push(Step::Send("data: [DONE]\n\n".into()));
    steps.push(Step::End);
    let upstream = Upstream::steps(steps).await;
    let stall = Duration::from_secs(1);
    let gateway = start_with(&upstream, |builder| builder.reader_stall(stall)).await;
    let (id, mut post) = gateway.create(1).await;
    post.rest().await;
    // What is queued in the sockets is a hundred times what one of these reads within the stall, or ten times.
    let readers = [5_000, 20_000].map(async |size: usize| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(32 * 1024).unwrap();
        let mut socket = socket.connect(gateway.address).await.unwrap();
        let request = format!(
            "GET /v1/streams/{id}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let started = tokio::time::Instant::now();
        let mut bytes = vec![0; size];
        while started.elapsed() < stall * 4 {
            soon(socket.read_exact(&mut bytes)).await.unwrap().unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(answer(socket).await.ends_with("\r\n0\r\n\r\n"), "{size}");
    });
    futures::future::join_all(readers).await;
    assert_eq!(
        gateway.metric("unbraid_reader_disconnects_total{reason=\"slow\"}"),
        0.0
    );
}

#[tokio::test]
async fn an_http2_stream_that_does_not_read_is_reset_and_its_connection_is_not() {
    let mut steps = vec![sse()];
    let part = Step::Send(format!("data: {}\n\n", chunk(0, &"x".repeat(60_000))));
    steps.extend(std::iter::repeat_n(part, 10));
    steps.push(Step::Hang);
    let upstream = Upstream::steps(steps).await;
    let stall = Duration::from_millis(500);
    let gateway = start_with(&upstream, |builder| builder.reader_stall(stall)).await;
    let (id, mut post) = gateway.create(1).await;
    post.until(r#"id: 10"#).await;
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let get = |path: &str| {
        http::Request::get(format!("http://localhost{path}"))
            .body(())
            .unwrap()
    };
    let (response, _) = client
        .send_request(get(&format!("/v1/streams/{id}/events")), true)
        .unwrap();
    let response = soon(response).await.unwrap().unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    let mut body = response.into_body();
    // Nothing is released, so the window of this stream is used up.
    let mut got = 0;
    let reset = loop {
        match soon(body.data()).await.expect("the stream is reset") {
            Some(Ok(bytes)) => got += bytes.len(),
            end => break end,
        }
    };
    assert!(got <= 65_535, "{got}");
    assert!(matches!(reset, Some(Err(error)) if error.is_reset()));
    eventually("it counts as slow", async || {
        gateway.metric("unbraid_reader_disconnects_total{reason=\"slow\"}") == 1.0
    })
    .await;
    let mut client = client.ready().await.unwrap();
    let (response, _) = client.send_request(get("/healthz"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().unwrap().status(), 200);
}

/// It takes a sixth of what one write to it has, within the time in which one that takes nothing is disconnected.
#[tokio::test]
async fn an_http2_stream_that_reads_slowly_and_without_a_pause_is_kept() {
    let mut steps = vec![sse()];
    let part = Step::Send(format!("data: {}\n\n", chunk(0, &"x".repeat(60_000))));
    steps.extend(std::iter::repeat_n(part, 10));
    steps.push(Step::Send("data: [DONE]\n\n".into()));
    steps.push(Step::End);
    let upstream = Upstream::steps(steps).await;
    let stall = Duration::from_millis(800);
    let gateway = start_with(&upstream, |builder| builder.reader_stall(stall)).await;
    let (id, mut post) = gateway.create(1).await;
    let length = post.rest().await.len();
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let get = http::Request::get(format!("http://localhost/v1/streams/{id}/events"));
    let (response, _) = client.send_request(get.body(()).unwrap(), true).unwrap();
    let mut body = soon(response).await.unwrap().unwrap().into_body();
    let (started, mut owed, mut text) = (tokio::time::Instant::now(), 0, Vec::new());
    while let Some(bytes) = soon(body.data()).await.unwrap() {
        let bytes = bytes.expect("the stream goes on");
        text.extend_from_slice(&bytes);
        owed += bytes.len();
        while owed > 0 {
            let is_slow = started.elapsed() < stall * 4;
            let released = if is_slow { owed.min(2_000) } else { owed };
            body.flow_control().release_capacity(released).unwrap();
            owed -= released;
            if is_slow {
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
        }
    }
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches("data: ").count(), length);
}

#[tokio::test]
async fn client_input_never_reaches_a_header_or_another_path() {
    let upstream = Upstream::steps(stream_of(&["[DONE]"])).await;
    let gateway = start_with(&upstream, |builder| builder.pass_through(true)).await;
    for target in [
        "/v1/models/../../admin",
        "/v1/models/%2e%2e/%2e%2e/admin",
        "/v1/..%2fadmin",
    ] {
        let request =
            format!("GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = answer(raw(&gateway, request.as_bytes()).await).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{target}: {answer}");
    }
    let path = "/v1/streams/AAAAAAAAAAAAAAAAAAAAAA%0d%0ax-evil:1/events";
    let response = send(gateway.get(path)).await;
    assert_eq!(response.status(), 404);
    assert!(!response.headers().contains_key("x-evil"));
    assert_eq!(upstream.seen().len(), 0);
}

/// RFC 9112, section 3.2.
#[tokio::test]
async fn a_request_of_http_1_1_has_one_host() {
    let upstream = Upstream::steps(Vec::new()).await;
    let gateway = start(&upstream).await;
    for (version, hosts, status) in [
        ("1.1", "", "400"),
        ("1.1", "host: localhost\r\nhost: localhost\r\n", "400"),
        ("1.1", "host: localhost\r\n", "200"),
        // The rule about hosts refuses it, and not this one.
        ("1.0", "", "403"),
    ] {
        let head = format!("GET /healthz HTTP/{version}\r\n{hosts}connection: close\r\n\r\n");
        let answer = answer(raw(&gateway, head.as_bytes()).await).await;
        let start = format!("HTTP/{version} {status}");
        assert!(answer.starts_with(&start), "{version} {hosts:?}: {answer}");
        assert_eq!(answer.contains("invalid_http"), status == "400");
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_close_the_connection() {
    let upstream = Upstream::steps(Vec::new()).await;
    let gateway = start(&upstream).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"\0\0\0\0\0\0\0\0",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let answer = answer(raw(&gateway, bytes).await).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
            "{answer}"
        );
    }
    assert_eq!(send(gateway.get("/healthz")).await.status(), 200);
}
