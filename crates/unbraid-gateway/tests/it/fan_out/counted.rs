//! Where a fan-out is reported: in the status, and in the metrics once it is known.

use std::sync::Arc;

use tokio::sync::Semaphore;
use unbraid_log::internal::scripted::Engine;

use super::{BODY, REFUSED, one_choice, refuses_n};
use crate::support::{
    Seen, Step, TestGateway, Upstream, chunk, eventually, finish, json_body, request, send, soon,
    sse, start, start_with, stream_of,
};

/// How many generations were counted with and without fan-out.
fn counted(gateway: &TestGateway) -> [f64; 2] {
    ["true", "false"].map(|fan_out| {
        gateway.metric(&format!(
            "unbraid_streams_started_total{{endpoint=\"/v1/chat/completions\",fan_out=\"{fan_out}\"}}"
        ))
    })
}

/// Answers one request, and returns the id of its stream.
async fn answer(gateway: &TestGateway, body: &'static str, lines: &[(&str, &str)]) -> String {
    let mut post = gateway.post(body);
    for (name, value) in lines {
        post = post.header(*name, *value);
    }
    let response = send(post).await;
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    soon(response.bytes()).await.unwrap().unwrap();
    id
}

const BEST_OF: &str = r#"{"model":"m","n":2,"best_of":2,"stream":true}"#;
const WHOLE: &str = r#"{"model":"m","n":2}"#;

#[tokio::test]
async fn a_fan_out_is_counted_however_late_it_is_found() {
    type Provider = fn(&Seen, usize) -> Vec<Step>;
    let cases: [(Provider, _, &[_]); 6] = [
        (one_choice, BODY, &[]),
        (one_choice, BODY, &[("prefer", "respond-async")]),
        (refuses_n, BODY, &[("prefer", "respond-async")]),
        (refuses_n, BODY, &[("idempotency-key", "k")]),
        (refuses_n, BEST_OF, &[]),
        (refuses_n, WHOLE, &[]),
    ];
    for (provider, body, lines) in cases {
        let upstream = Upstream::script(provider).await;
        let gateway = start(&upstream).await;
        let id = answer(&gateway, body, lines).await;
        assert_eq!(
            gateway.ended(&id).await["fan_out"],
            true,
            "{body} {lines:?}"
        );
        gateway.gateway.all_ended().await;
        assert_eq!(counted(&gateway), [1.0, 0.0], "{body} {lines:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_not_fanned_out_is_counted_once_that_is_known() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let event = |data: String| Step::Send(format!("data: {data}\n\n"));
    let upstream = Upstream::script(move |_, _| {
        let first = [sse(), event(chunk(0, "a")), Step::Gate(Arc::clone(&held))];
        let second = [
            event(chunk(1, "b")),
            Step::Gate(Arc::clone(&held)),
            Step::Cut,
        ];
        first.into_iter().chain(second).collect()
    })
    .await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    post.until("\"a\"").await;
    assert_eq!(counted(&gateway), [0.0, 0.0], "the provider may ignore n");
    assert_eq!(gateway.metric("unbraid_streams_running"), 1.0);
    gate.add_permits(1);
    post.until("\"b\"").await;
    eventually("it is counted", async || counted(&gateway) == [0.0, 1.0]).await;
    gate.add_permits(1);
    post.rest().await;
    assert_eq!(gateway.ended(&id).await["fan_out"], false);
    // A request that is refused, one without n, and one that ends before anything is known.
    let steps = [
        json_body(401, "{}"),
        stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()]),
        vec![sse(), event(chunk(0, "a")), Step::Cut],
    ];
    let upstream = Upstream::script(move |_, ordinal| steps[ordinal].clone()).await;
    let gateway = start(&upstream).await;
    for (n, count) in [(2, 1.0), (1, 2.0), (2, 3.0)] {
        let post = gateway.post(request(n)).header("prefer", "respond-async");
        send(post).await;
        gateway.gateway.all_ended().await;
        assert_eq!(counted(&gateway), [0.0, count]);
    }
}

#[tokio::test]
async fn another_gateway_shows_a_fan_out_that_was_known_when_the_stream_was_opened() {
    const LATE: &str = r#"{"model":"new","n":2,"stream":true}"#;
    const ONE: &str = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}"#;
    let upstream = Upstream::script(|seen, ordinal| {
        let body = seen.json();
        match body.get("n") {
            Some(_) if body.get("best_of").is_some() => json_body(400, REFUSED),
            Some(_) if body.get("stream").is_none() => json_body(200, ONE),
            _ => one_choice(seen, ordinal),
        }
    })
    .await;
    let engine = Engine::new(std::time::Duration::from_secs(30));
    let logs = [engine.gateway(), engine.gateway()];
    let [a, b] = logs.map(|log| start_with(&upstream, |builder| builder.log(log)));
    let (a, b) = (a.await, b.await);
    // That of the last model, which nothing is known of, is found when the first body ends.
    for (body, expected) in [(BEST_OF, true), (WHOLE, true), (LATE, false)] {
        let id = answer(&a, body, &[]).await;
        assert_eq!(a.ended(&id).await["fan_out"], true, "{body}");
        assert_eq!(b.ended(&id).await["fan_out"], expected, "{body}");
    }
}
