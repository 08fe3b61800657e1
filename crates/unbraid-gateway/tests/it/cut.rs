//! Section 4: an answer that was cut never ends with a clean `[DONE]`, whichever view reads it, and whatever cut it.

use std::time::Duration;

use serde_json::{Value, json};
use unbraid_gateway::GatewayBuilder;

use crate::support::{
    Json, Reader, Step, TestGateway, Upstream, chunk, finish, request, send, sse, start_with,
};

fn event(data: &str) -> Step {
    Step::Send(format!("data: {data}\n\n"))
}

/// Choice 0 is open, choice 1 has its finish reason.
fn cut_by(last: Vec<Step>) -> Vec<Step> {
    let mut steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "x")),
        event(&finish(1)),
    ];
    steps.extend(last);
    steps
}

/// Every view of a stream, and whether it shows a choice that has ended before the cut.
const VIEWS: [(&str, bool); 8] = [
    ("events", false),
    ("events?from=snapshot", false),
    ("events?from=tail", false),
    ("choices/0", false),
    ("choices/0?index=keep", false),
    ("choices/0?part=content", false),
    ("choices/0?from=snapshot", false),
    ("choices/1", true),
];

async fn check(
    last: Vec<Step>,
    code: &str,
    configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
) {
    let upstream = Upstream::steps(cut_by(last)).await;
    let gateway = start_with(&upstream, configure).await;
    let (id, mut post) = gateway.create(2).await;
    post.until("\"stop\"").await;
    let mut live: Vec<Reader> = Vec::new();
    for (path, _) in VIEWS {
        live.push(gateway.view(&format!("/v1/streams/{id}/{path}")).await);
    }
    check_end(&mut post, code, false).await;
    assert_eq!(gateway.ended(&id).await["end"], code);
    for ((path, is_complete), live) in VIEWS.iter().zip(&mut live) {
        check_end(live, code, *is_complete).await;
        let mut again = gateway.view(&format!("/v1/streams/{id}/{path}")).await;
        check_end(&mut again, code, *is_complete).await;
    }
    check_json(&gateway, &id, code).await;
}

async fn check_end(reader: &mut Reader, code: &str, is_complete: bool) {
    let last = reader.rest().await.pop().unwrap();
    if is_complete {
        assert_eq!(last.data, "[DONE]", "its finish reason came before the cut");
    } else {
        assert_eq!(last.json()["error"]["code"], code, "{}", reader.text);
        assert!(!reader.text.contains("[DONE]"), "{}", reader.text);
    }
}

async fn check_json(gateway: &TestGateway, id: &str, code: &str) {
    let path = format!("/v1/streams/{id}/choices/0?stream=false");
    let body = send(gateway.get(&path)).await.value().await;
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], Value::Null, "{body}");
    assert_eq!(choice["message"]["content"], "a");
    assert_eq!(body["unbraid"]["end"], code);
}

/// Bifrost 5546: a dead upstream is reported as a clean `[DONE]`.
#[tokio::test]
async fn a_connection_that_is_cut_ends_every_view_with_an_error() {
    let half = Step::Send("data: {\"choices\":[{\"ind".into());
    for last in [vec![Step::Cut], vec![half, Step::Cut]] {
        check(last, "transport", |builder| builder).await;
    }
}

#[tokio::test]
async fn a_body_without_done_ends_every_view_with_an_error() {
    let half = Step::Send("data: [DONE".into());
    for last in [vec![Step::End], vec![half, Step::End]] {
        check(last, "interrupted", |builder| builder).await;
    }
}

#[tokio::test]
async fn an_upstream_that_falls_silent_ends_every_view_with_an_error() {
    let idle = Duration::from_millis(300);
    check(vec![Step::Hang], "timed_out", |builder| {
        builder.idle_timeout(idle)
    })
    .await;
}

#[tokio::test]
async fn a_limit_ends_every_view_with_an_error() {
    let long = event(&chunk(0, &"x".repeat(200_000)));
    let upstream = Upstream::steps(cut_by(vec![long.clone(), long, Step::Hang])).await;
    let gateway = start_with(&upstream, |builder| builder.max_stream_bytes(100_000)).await;
    let (id, mut post) = gateway.create(2).await;
    check_end(&mut post, "limit_exceeded", false).await;
    for (path, is_complete) in VIEWS {
        let mut view = gateway.view(&format!("/v1/streams/{id}/{path}")).await;
        check_end(&mut view, "limit_exceeded", is_complete).await;
    }
}

#[tokio::test]
async fn a_lost_producer_ends_every_view_with_an_error() {
    let upstream = Upstream::steps(cut_by(vec![Step::Hang])).await;
    let gateway = start_with(&upstream, |builder| builder).await;
    let (id, mut post) = gateway.create(2).await;
    post.until("\"stop\"").await;
    let mut live = gateway.view(&format!("/v1/streams/{id}/choices/0")).await;
    gateway.gateway.end_as_lost().await;
    check_end(&mut post, "producer_lost", false).await;
    check_end(&mut live, "producer_lost", false).await;
    for (path, is_complete) in VIEWS {
        let mut view = gateway.view(&format!("/v1/streams/{id}/{path}")).await;
        check_end(&mut view, "producer_lost", is_complete).await;
    }
    check_json(&gateway, &id, "producer_lost").await;
}

/// The aggregate of a request without `stream` has no place for an error, so the answer is one.
#[tokio::test]
async fn an_aggregate_of_an_answer_that_was_cut_has_no_finish_reason_that_says_stop() {
    for (last, code) in [(Step::Cut, "transport"), (Step::End, "interrupted")] {
        let upstream = Upstream::steps(vec![sse(), event(&chunk(0, "a")), last]).await;
        let gateway = start_with(&upstream, |builder| builder).await;
        let body = request(1).replace("\"stream\":true", "\"stream\":false");
        let post = gateway.post(body).header("idempotency-key", "k");
        let response = send(post).await;
        assert_eq!(response.status(), 502);
        let body = response.value().await;
        assert_eq!(body["error"]["code"], json!(code));
    }
}
