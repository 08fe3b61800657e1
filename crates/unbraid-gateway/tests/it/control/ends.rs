//! How a stream ends of which some choices were cancelled: by one rule, whatever their order and their upstreams are.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;

use super::cancel;
use crate::support::{
    Json, Reader, Seen, Step, TestGateway, Upstream, chunk, eventually, finish, send, sse, start,
};

const BODY: &str =
    r#"{"model":"m","n":2,"seed":0,"stream":true,"stream_options":{"include_usage":true}}"#;

/// A provider whose choice 0 finishes once the gate is open, and whose choice 1 goes on.
fn script(seen: &Seen, gate: &Arc<Semaphore>) -> Vec<Step> {
    let event = |data: &str| Step::Send(format!("data: {data}\n\n"));
    let usage = r#"{"id":"c1","choices":[],"usage":{"total_tokens":7}}"#;
    let finished = [
        Step::Gate(Arc::clone(gate)),
        event(&finish(0)),
        event(usage),
    ];
    let mut steps = vec![sse(), event(&chunk(0, "a"))];
    let is_native = seen.json().get("n").is_some();
    if is_native {
        steps.push(event(&chunk(1, "b")));
    }
    if is_native || seen.json()["seed"] == 0 {
        steps.extend(finished);
    }
    steps.push(Step::Hang);
    steps
}

/// A stream both of whose choices have begun.
async fn begin(gateway: &TestGateway, fan_out: &'static str) -> (String, Reader) {
    let post = gateway.post(BODY).header("x-stream-fan-out", fan_out);
    let mut post = Reader::new(send(post).await);
    let id = post.header("x-stream-id").unwrap().to_owned();
    post.until("\"index\":0").await.until("\"index\":1").await;
    (id, post)
}

async fn choice_end(gateway: &TestGateway, id: &str, choice: usize) -> Value {
    gateway.status(id).await["choices"][choice]["end"].clone()
}

#[tokio::test]
async fn a_stream_with_a_finished_choice_has_finished_whichever_was_the_last() {
    for fan_out in ["native", "always"] {
        for cancels_first in [true, false] {
            let gate = Arc::new(Semaphore::new(0));
            let held = Arc::clone(&gate);
            let upstream = Upstream::script(move |seen, _| script(seen, &held)).await;
            let gateway = start(&upstream).await;
            let (id, mut post) = begin(&gateway, fan_out).await;
            if cancels_first {
                assert_eq!(cancel(&gateway, &id, 1).await["end"], "cancelled");
            }
            gate.add_permits(1);
            eventually("choice 0 ends", async || {
                choice_end(&gateway, &id, 0).await == "finished"
            })
            .await;
            if !cancels_first {
                assert_eq!(cancel(&gateway, &id, 1).await["end"], "cancelled");
            }
            let case = format!("{fan_out}, cancels first: {cancels_first}");
            let status = gateway.ended(&id).await;
            assert_eq!(status["end"], "finished", "{case}");
            assert_eq!(status["choices"][1]["end"], "cancelled", "{case}");
            assert_eq!(status["usage"]["total_tokens"], 7, "{case}");
            assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
            assert!(post.text.contains("total_tokens"), "{case}");
            let all = if fan_out == "native" { 1 } else { 2 };
            eventually("the upstream is closed", async || upstream.closed() == all).await;
        }
    }
}

#[tokio::test]
async fn a_cancel_of_the_stream_is_its_end_if_it_ends_a_choice() {
    for fan_out in ["native", "always"] {
        for (cancelled, end) in [(None, "cancelled"), (Some(1), "finished")] {
            let gate = Arc::new(Semaphore::new(0));
            let held = Arc::clone(&gate);
            let upstream = Upstream::script(move |seen, _| script(seen, &held)).await;
            let gateway = start(&upstream).await;
            let (id, mut post) = begin(&gateway, fan_out).await;
            if let Some(choice) = cancelled {
                cancel(&gateway, &id, choice).await;
            }
            gate.add_permits(1);
            // It has its reason, and may not have ended.
            post.until("\"stop\"").await;
            let path = format!("/v1/streams/{id}/cancel");
            let response = send(gateway.method("POST".parse().unwrap(), &path)).await;
            assert_eq!(response.status(), 200);
            assert_eq!(response.value().await["end"], end, "{fan_out}");
            assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
        }
    }
}
