//! The memory of request bodies.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use unbraid_gateway::GatewayBuilder;
use unbraid_log::internal::scripted::Engine;

use super::silent;
use crate::{
    create::error_code,
    support::{
        Reader, Step, Upstream, chunk, eventually, finish, json_body, send, soon, sse, start_with,
        stream_of,
    },
};

const MIB: usize = 1024 * 1024;

/// A request for a stream with about so many bytes.
fn long(bytes: usize) -> String {
    json!({"model": "m", "stream": true, "user": "x".repeat(bytes)}).to_string()
}

fn limited(builder: GatewayBuilder, has_log: bool) -> GatewayBuilder {
    let builder = builder.max_memory(5 * MIB as u64);
    match has_log {
        true => builder.log(Engine::new(Duration::from_secs(15)).gateway()),
        false => builder,
    }
}

#[tokio::test]
async fn the_bodies_of_requests_that_wait_take_memory_until_their_clients_leave() {
    for (has_log, line) in [
        (false, ("x-stream-durability", "replay")),
        (true, ("x-stream-durability", "replay")),
        (false, ("x-stream-durability", "live")),
    ] {
        let upstream = Upstream::steps(vec![Step::Hang]).await;
        let gateway = start_with(&upstream, |builder| limited(builder, has_log)).await;
        let post = |bytes| gateway.post(long(bytes)).header(line.0, line.1);
        let waiting = [(); 2].map(|()| tokio::spawn(post(MIB).send()));
        eventually("they wait", async || upstream.seen().len() == 2).await;
        let refused = send(post(MIB)).await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(error_code(refused).await, "out_of_memory");
        assert_eq!(upstream.seen().len(), 2);
        for client in waiting {
            client.abort();
        }
        eventually("they have left", async || {
            let again = post(MIB).timeout(Duration::from_millis(300)).send().await;
            // It waits for the upstream, as the first two did.
            again.is_err()
        })
        .await;
        assert_eq!(upstream.seen().len(), 3);
    }
}

/// The generation runs on, and needs the request no more.
#[tokio::test]
async fn a_request_whose_answer_has_begun_takes_no_memory() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| limited(builder, false)).await;
    let mut running = Vec::new();
    for _ in 0..5 {
        let response = send(gateway.post(long(2 * MIB))).await;
        assert_eq!(response.status(), 200);
        running.push(response);
    }
    // Those that want the whole answer, which does not come, need no more.
    for sent in 6..=10 {
        let whole = json!({"model": "m", "user": "x".repeat(2 * MIB)}).to_string();
        let post = gateway.post(whole).header("x-stream-durability", "replay");
        tokio::spawn(post.send());
        eventually("it was sent", async || upstream.seen().len() == sent).await;
    }
}

/// Two choices say that the provider knows `n`: the request is not needed for others.
#[tokio::test]
async fn a_request_for_several_choices_takes_no_memory_once_two_have_begun() {
    let events = [chunk(0, "a"), chunk(1, "b")].map(|event| format!("data: {event}\n\n"));
    let upstream = Upstream::steps(vec![sse(), Step::Send(events.concat()), Step::Hang]).await;
    let gateway = start_with(&upstream, |builder| limited(builder, false)).await;
    let mut running = Vec::new();
    for _ in 0..5 {
        let several = json!({"model": "m", "stream": true, "n": 2, "user": "x".repeat(2 * MIB)});
        let response = send(gateway.post(several.to_string())).await;
        assert_eq!(response.status(), 200);
        let mut reader = Reader::new(response);
        reader.until(r#""b""#).await;
        running.push(reader);
    }
}

/// Nothing of it has to arrive.
#[tokio::test]
async fn a_body_that_is_declared_longer_than_the_memory_is_refused_at_once() {
    let upstream = silent().await;
    let gateway = start_with(&upstream, |builder| limited(builder, false)).await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let declared = format!("{head}content-length: {}\r\n\r\n{{", 3 * MIB);
    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    socket.write_all(declared.as_bytes()).await.unwrap();
    assert!(status_line(&mut socket).await.starts_with("HTTP/1.1 503"));
    // One that declares nothing is refused as soon as it is too long.
    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    socket.write_all(chunked.as_bytes()).await.unwrap();
    let part = format!("{:x}\r\n{}\r\n", MIB, "x".repeat(MIB));
    for _ in 0..3 {
        socket.write_all(part.as_bytes()).await.unwrap();
    }
    assert!(status_line(&mut socket).await.starts_with("HTTP/1.1 503"));
    assert_eq!(send(gateway.post(long(10))).await.status(), 200);
    assert_eq!(upstream.seen().len(), 1);
}

async fn status_line(socket: &mut TcpStream) -> String {
    let mut bytes = [0; 64];
    let read = soon(socket.read(&mut bytes)).await.unwrap().unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// A short body is checked only against other bodies until it is to be kept.
#[tokio::test]
async fn many_short_bodies_have_the_same_limit() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start_with(&upstream, |builder| builder.max_memory(100_000)).await;
    let post = || {
        let post = gateway.post(long(20_000));
        post.header("x-stream-durability", "live")
    };
    let _waiting = [(); 2].map(|()| tokio::spawn(post().send()));
    eventually("they wait", async || upstream.seen().len() == 2).await;
    assert_eq!(send(post()).await.status(), 503);
    assert_eq!(upstream.seen().len(), 2);
}

/// The first refusal is the answer if all requests are refused, so it is kept until they have an answer.
#[tokio::test]
async fn a_refusal_that_is_kept_takes_memory_until_its_client_leaves() {
    let upstream = Upstream::script(|seen, _| match seen.json()["seed"].as_u64() {
        Some(1) => json_body(429, &json!({"error": "x".repeat(6 * MIB)}).to_string()),
        Some(_) => vec![Step::Hang],
        None => stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()]),
    })
    .await;
    let gateway = start_with(&upstream, |builder| limited(builder, false)).await;
    let several = json!({"model": "m", "n": 2, "stream": true, "seed": 1}).to_string();
    let post = gateway.post(several).header("x-stream-fan-out", "always");
    let waiting = tokio::spawn(post.send());
    eventually("memory is short", async || {
        let response = send(gateway.post(long(10))).await;
        response.status() == 503 && error_code(response).await == "out_of_memory"
    })
    .await;
    waiting.abort();
    eventually("it has left", async || {
        send(gateway.post(long(10))).await.status() == 200
    })
    .await;
}
