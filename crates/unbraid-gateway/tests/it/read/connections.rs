//! Section 4: how long a view stays open, and what it costs the gateway.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::{events, gated};
use crate::support::{
    TestGateway, Upstream, chunk, eventually, finish, send, soon, start, start_with, stream_of,
};

#[tokio::test]
async fn pings_are_one_line_and_come_only_after_silence() {
    let (upstream, gate) = gated(events()).await;
    let ping = Duration::from_millis(100);
    let gateway = start_with(&upstream, |builder| builder.ping(ping)).await;
    let (id, mut post) = gateway.create(2).await;
    post.until(": ping\n").await;
    assert_eq!(
        post.text.replace(": ping\n", ""),
        "",
        "also before the first event"
    );
    gate.add_permits(9);
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert!(!post.text.contains(": ping\n\n"), "{}", post.text);
    let mut view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    view.rest().await;
    assert!(!view.text.contains("ping"));
}

#[tokio::test]
async fn a_ping_of_zero_means_no_pings() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start_with(&upstream, |builder| builder.ping(Duration::ZERO)).await;
    let (_, mut post) = gateway.create(2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.add_permits(9);
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    assert!(!post.text.contains("ping"), "{}", post.text);
}

#[tokio::test]
async fn a_view_closes_after_its_age_and_a_post_does_not() {
    let (upstream, gate) = gated(events()).await;
    let age = Duration::from_millis(200);
    let gateway = start_with(&upstream, |builder| builder.max_connection_age(Some(age))).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(1);
    let mut view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    let events = view.rest().await;
    assert!(
        !view.has_failed,
        "the body ends cleanly, between two events"
    );
    assert_eq!(events.len(), 1);
    assert_eq!(
        gateway.metric("unbraid_reader_disconnects_total{reason=\"age\"}"),
        1.0
    );
    gate.add_permits(9);
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    let rest = gateway
        .view(&format!("/v1/streams/{id}/events?after=1"))
        .await
        .rest()
        .await;
    assert_eq!(rest.last().unwrap().data, "[DONE]");
}

/// Reads a view over a connection of its own, until the gateway closes that.
async fn read_to_the_end(gateway: &TestGateway, path: &str) -> String {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = soon(socket.read_to_end(&mut answer)).await;
    read.expect("the connection stays open").unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn the_connection_of_a_view_closes_with_it() {
    let (upstream, gate) = gated(events()).await;
    let age = Duration::from_millis(200);
    let gateway = start_with(&upstream, |builder| builder.max_connection_age(Some(age))).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(1);
    let path = format!("/v1/streams/{id}/events");
    let aged = read_to_the_end(&gateway, &path).await;
    assert!(aged.contains("connection: close\r\n"), "{aged}");
    gate.add_permits(9);
    post.rest().await;
    // That of a POST can be used again.
    assert_eq!(post.header("connection"), None);
    let ended = read_to_the_end(&gateway, &path).await;
    assert!(ended.contains("data: [DONE]"), "{ended}");
}

#[tokio::test]
async fn the_generation_continues_when_its_client_disconnects() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(1);
    post.until("\"a\"").await;
    drop(post);
    eventually("the reader has left", async || {
        gateway.metric("unbraid_reader_disconnects_total{reason=\"client\"}") == 1.0
    })
    .await;
    gate.add_permits(9);
    let events = gateway
        .view(&format!("/v1/streams/{id}/events?after=1"))
        .await
        .rest()
        .await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!((upstream.seen().len(), upstream.closed()), (1, 0));
}

/// Answers a request without a connection.
async fn call(gateway: &TestGateway, path: &str) -> axum::response::Response {
    use tower_service::Service;

    let request = http::Request::get(path)
        .header("host", "localhost")
        .body(axum::body::Body::empty())
        .unwrap();
    gateway.gateway.service().call(request).await.unwrap()
}

/// Reads a body to its end.
async fn text(mut body: axum::body::Body) -> String {
    use http_body_util::BodyExt;

    let mut bytes = Vec::new();
    while let Some(frame) = soon(body.frame()).await.unwrap() {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= 64 * 1024, "{}", data.len());
        bytes.extend_from_slice(&data);
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn neither_age_nor_drain_ends_a_view_within_a_long_event() {
    use http_body_util::BodyExt;

    let long = chunk(0, &"x".repeat(300 * 1024));
    for drains in [false, true] {
        let (upstream, gate) = gated(vec![long.clone(), chunk(0, "next")]).await;
        let age = Duration::from_millis(300);
        let mut gateway = start_with(&upstream, |builder| {
            builder.max_connection_age((!drains).then_some(age))
        })
        .await;
        let (id, mut post) = gateway.create(1).await;
        gate.add_permits(1);
        post.until("\n\n").await;
        let mut body = call(&gateway, &format!("/v1/streams/{id}/events"))
            .await
            .into_body();
        let first = soon(body.frame()).await.unwrap().unwrap().unwrap();
        let first = String::from_utf8(first.into_data().unwrap().to_vec()).unwrap();
        assert_eq!(first.len(), 64 * 1024);
        if drains {
            gateway.drain();
        }
        tokio::time::sleep(age * 2).await;
        gate.add_permits(1);
        post.until("next").await;
        let events = crate::support::parse_events(&(first + &text(body).await));
        assert_eq!(events.len(), 1, "the view closes after the event");
        assert_eq!(events[0].data, long);
    }
}

#[tokio::test]
async fn streams_are_not_decoded_on_the_threads_of_the_connections() {
    use futures::FutureExt;

    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(1);
    post.until("\"a\"").await;
    let ready = call(&gateway, "/healthz").now_or_never();
    assert!(ready.is_some(), "the service itself waits for nothing");
    let events = format!("/v1/streams/{id}/events");
    assert!(call(&gateway, &events).now_or_never().is_some());
    for path in [
        format!("/v1/streams/{id}"),
        format!("{events}?from=snapshot"),
        format!("{events}?stream=false"),
    ] {
        // A blocking thread may be done before it is asked, but not each time.
        let waits = || call(&gateway, &path).now_or_never().is_none();
        assert!((0..200).any(|_| waits()), "{path}");
        assert_eq!(call(&gateway, &path).await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn a_log_that_the_builder_got_is_read_completely() {
    let mut all = events();
    all.extend([finish(0), finish(1), "[DONE]".to_owned()]);
    let upstream = Upstream::steps(stream_of(&all)).await;
    let log = unbraid_log::MemoryLog::new(unbraid_log::MemoryOptions::default());
    let gateway = start_with(&upstream, |builder| builder.log(Arc::new(log))).await;
    let (id, mut post) = gateway.create(2).await;
    let last = post.rest().await.last().unwrap().id.unwrap();
    let status = gateway.status(&id).await;
    assert_eq!(
        (&status["state"], &status["seq"]),
        (&json!("ended"), &json!(last))
    );
    let path = format!("/v1/streams/{id}/events?after={last}");
    assert_eq!(send(gateway.get(&path)).await.status(), 204);
}
