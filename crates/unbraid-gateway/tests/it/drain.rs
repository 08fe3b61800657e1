//! Section 9: what a drain does with connections that are neither idle nor read.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use crate::{
    create::error_code,
    operations::gated,
    support::{Step, TestGateway, Upstream, eventually, request, soon, start, start_with},
};

/// Waits for the end of the server, for a time that is shorter than every timeout of a head.
async fn stops_soon(gateway: &TestGateway) {
    let started = Instant::now();
    eventually("the server stops", async || gateway.has_stopped()).await;
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

/// The task that drives a connection over HTTP/2.
type Driver = tokio::task::JoinHandle<Result<(), h2::Error>>;

/// A connection over HTTP/2, and the task that drives it.
async fn connect(gateway: &TestGateway) -> (SendRequest<Bytes>, Driver) {
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    let connection = tokio::spawn(connection);
    (client.ready().await.unwrap(), connection)
}

/// Starts to drain, and waits until the gateway accepts no more connections.
async fn drain(gateway: &mut TestGateway) {
    gateway.drain();
    eventually("new connections are refused", async || {
        TcpStream::connect(gateway.address).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn half_a_head_does_not_delay_the_exit() {
    let (upstream, _gate) = gated().await;
    for head in [
        &b"POST /v1/chat/comp"[..],
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut gateway = start(&upstream).await;
        let mut socket = TcpStream::connect(gateway.address).await.unwrap();
        socket.write_all(head).await.unwrap();
        // Until it was read.
        tokio::time::sleep(Duration::from_millis(100)).await;
        gateway.drain();
        stops_soon(&gateway).await;
    }
}

/// A client that is slow, or has left without its connection being closed.
#[tokio::test]
async fn a_request_whose_body_is_not_complete_gets_an_answer() {
    let (upstream, _gate) = gated().await;
    let mut gateway = start(&upstream).await;
    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    let head = concat!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n",
        "expect: 100-continue\r\ncontent-length: 1000\r\n\r\n",
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    // The body is read now.
    let mut text = read_until(&mut socket, "100 Continue\r\n\r\n").await;
    socket.write_all(b"{\"model\"").await.unwrap();
    gateway.drain();
    text.push_str(&read_until(&mut socket, "draining").await);
    assert!(text.contains("HTTP/1.1 503 "), "{text}");
    assert!(text.contains("retry-after: 1\r\n"), "{text}");
    assert!(text.contains("connection: close\r\n"), "{text}");
    drop(socket);
    stops_soon(&gateway).await;
    assert_eq!(upstream.seen().len(), 0);
}

/// Reads until a text has arrived.
async fn read_until(socket: &mut TcpStream, part: &str) -> String {
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains(part) {
        let read = soon(socket.read_buf(&mut text)).await.unwrap().unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_whole_answer_that_does_not_end_is_503_at_the_end_of_the_drain() {
    let head = || Step::Head(200, vec![("content-type", "application/json".into())]);
    let begun = vec![head(), Step::Send("{".into()), Step::Hang];
    for steps in [begun, vec![head(), Step::Hang]] {
        let upstream = Upstream::steps(steps).await;
        let drain = Duration::from_millis(300);
        let mut gateway = start_with(&upstream, |builder| builder.drain_timeout(drain)).await;
        let keyed = gateway.post(request(1)).header("idempotency-key", "k");
        let whole = gateway.post(r#"{"model":"m","n":2}"#);
        let waiting = [keyed, whole].map(|post| tokio::spawn(post.send()));
        eventually("both wait", async || upstream.open() == 2).await;
        gateway.drain();
        for response in waiting {
            let response = soon(response).await.unwrap().unwrap().unwrap();
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()["retry-after"], "1");
            assert_eq!(response.headers()["connection"], "close");
            assert_eq!(error_code(response).await, "draining");
        }
    }
}

/// Sends a request for an answer, and returns the head of the response.
async fn post(client: &mut SendRequest<Bytes>) -> http::Response<h2::RecvStream> {
    let post = http::Request::post("http://localhost/v1/chat/completions")
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    let (response, mut body) = client.send_request(post, false).unwrap();
    body.send_data(request(1).into(), true).unwrap();
    soon(response).await.unwrap().unwrap()
}

/// The rest of the body of a response.
async fn rest(response: &mut http::Response<h2::RecvStream>) -> String {
    let mut text = Vec::new();
    while let Some(bytes) = soon(response.body_mut().data()).await.unwrap() {
        let bytes = bytes.unwrap();
        let mut flow = response.body_mut().flow_control().clone();
        flow.release_capacity(bytes.len()).unwrap();
        text.extend_from_slice(&bytes);
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn over_http2_new_posts_are_refused_while_the_connection_has_an_answer() {
    let (upstream, gate) = gated().await;
    let mut gateway = start(&upstream).await;
    let (mut client, connection) = connect(&gateway).await;
    let mut running = post(&mut client).await;
    assert_eq!(running.status(), 200);
    drain(&mut gateway).await;
    // There was no GOAWAY: a client of h2 for Python would fail the running answer.
    let mut client = client.ready().await.unwrap();
    let refused = post(&mut client).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    gate.add_permits(1);
    let text = rest(&mut running).await;
    assert!(text.ends_with("data: [DONE]\n\n"));
    // The client has a handle that could send more, so the gateway closes the connection.
    soon(connection).await.unwrap().unwrap().unwrap();
    stops_soon(&gateway).await;
}

/// A browser resumes at the connection that it has. The gateway may be the only one with the stream.
#[tokio::test]
async fn over_http2_a_view_that_is_opened_during_a_drain_has_what_is_ready() {
    let (upstream, gate) = gated().await;
    let mut gateway = start(&upstream).await;
    let (mut client, _connection) = connect(&gateway).await;
    let mut running = post(&mut client).await;
    soon(running.body_mut().data()).await.unwrap();
    let id = running.headers()["x-stream-id"].to_str().unwrap();
    let uri = format!("http://localhost/v1/streams/{id}/events");
    drain(&mut gateway).await;
    for (after, events) in [(0, 1), (1, 0)] {
        let mut client = client.clone().ready().await.unwrap();
        let get = http::Request::get(&uri).header("last-event-id", after);
        let (view, _) = client.send_request(get.body(()).unwrap(), true).unwrap();
        let mut view = soon(view).await.unwrap().unwrap();
        assert_eq!(view.status(), 200);
        let text = rest(&mut view).await;
        assert_eq!(text.matches("data: ").count(), events, "{after}: {text}");
    }
    gate.add_permits(1);
    rest(&mut running).await;
}

/// A proxy sends the requests of many clients through one connection.
#[tokio::test]
async fn a_busy_http2_connection_does_not_delay_the_exit() {
    let (upstream, gate) = gated().await;
    let mut gateway = start(&upstream).await;
    let (mut client, connection) = connect(&gateway).await;
    let _running = post(&mut client).await;
    let busy = tokio::spawn(async move {
        // Until the GOAWAY.
        while let Ok(ready) = client.ready().await {
            client = ready;
            let get = http::Request::get("http://localhost/healthz");
            let sent = client.send_request(get.body(()).unwrap(), true);
            let Ok((response, _)) = sent else { return };
            tokio::spawn(response);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    drain(&mut gateway).await;
    assert!(!connection.is_finished(), "the answer continues");
    gate.add_permits(1);
    soon(busy).await.unwrap().unwrap();
    stops_soon(&gateway).await;
}

/// A pool keeps idle connections and reads nothing from them, so it does not see a GOAWAY.
#[tokio::test]
async fn an_idle_http2_connection_does_not_delay_the_exit() {
    let (upstream, _gate) = gated().await;
    let mut gateway = start(&upstream).await;
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let (client, mut connection) = h2::client::handshake(socket).await.unwrap();
    let is_frozen = Arc::new(AtomicBool::new(false));
    let freezes = Arc::clone(&is_frozen);
    tokio::spawn(poll_fn(move |cx| {
        if freezes.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        Pin::new(&mut connection).poll(cx)
    }));
    let mut client = client.ready().await.unwrap();
    let get = http::Request::get("http://localhost/healthz");
    let (response, _) = client.send_request(get.body(()).unwrap(), true).unwrap();
    let mut response = soon(response).await.unwrap().unwrap();
    while soon(response.body_mut().data()).await.unwrap().is_some() {}
    is_frozen.store(true, Ordering::Release);
    tokio::time::sleep(Duration::from_secs(1)).await;
    gateway.drain();
    stops_soon(&gateway).await;
}
