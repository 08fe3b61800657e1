//! Section 3: `Idempotency-Key`.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    create::error_code,
    support::{
        Json, Reader, Step, Upstream, chunk, eventually, finish, json_body, request, send, start,
        stream_of,
    },
};

fn answer() -> Vec<Step> {
    stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])
}

#[tokio::test]
async fn twenty_requests_with_one_key_are_one_upstream_request() {
    let upstream = Upstream::script(|_, _| {
        let mut steps = vec![Step::Sleep(Duration::from_millis(200))];
        steps.extend(answer());
        steps
    })
    .await;
    let gateway = Arc::new(start(&upstream).await);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move {
                let post = gateway
                    .post(request(1))
                    .header("idempotency-key", "order-1");
                let mut reader = Reader::new(send(post).await);
                reader.rest().await;
                (
                    reader.header("x-stream-id").unwrap().to_owned(),
                    reader.header("idempotent-replayed").is_some(),
                    reader.text,
                )
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    assert_eq!(upstream.seen().len(), 1);
    assert_eq!(
        results.iter().filter(|(_, replayed, _)| !replayed).count(),
        1
    );
    assert!(
        results
            .iter()
            .all(|(id, _, text)| *id == results[0].0 && *text == results[0].2)
    );
}

#[tokio::test]
async fn two_different_keys_in_one_request_are_refused() {
    let upstream = Upstream::script(|_, _| answer()).await;
    let gateway = start(&upstream).await;
    let keyed = |first: &str, second: &str| {
        let post = gateway.post(request(1)).header("idempotency-key", first);
        send(post.header("idempotency-key", second))
    };
    let response = keyed("one", "two").await;
    assert_eq!(response.status(), 400);
    assert_eq!(error_code(response).await, "bad_idempotency_key");
    assert_eq!(upstream.seen().len(), 0);
    assert_eq!(keyed("one", "one").await.status(), 200);
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn a_key_attaches_in_every_form_and_after_a_cursor() {
    let upstream = Upstream::script(|_, _| answer()).await;
    let gateway = start(&upstream).await;
    let keyed = || gateway.post(request(1)).header("idempotency-key", "k");
    let all = Reader::new(send(keyed()).await).rest().await;
    let resumed = send(keyed().header("last-event-id", "1")).await;
    assert_eq!(resumed.headers()["idempotent-replayed"], "true");
    assert_eq!(Reader::new(resumed).rest().await, all[1..]);
    let last = all.last().unwrap().id.unwrap().to_string();
    let complete = send(keyed().header("last-event-id", last)).await;
    assert_eq!(complete.status(), 204);
    assert_eq!(complete.headers()["idempotent-replayed"], "true");
    assert!(complete.headers().contains_key("x-stream-id"));
    assert!(complete.headers().contains_key("link"));
    let accepted = send(keyed().header("prefer", "respond-async")).await;
    assert_eq!(accepted.status(), 202);
    let response = send(gateway.post(request(2)).header("idempotency-key", "k")).await;
    assert_eq!(response.status(), 422);
    assert_eq!(error_code(response).await, "idempotency_key_reused");
    assert_eq!(upstream.seen().len(), 1);
    // Another path is another scope.
    send(
        gateway
            .post_to("/v1/completions", request(1))
            .header("idempotency-key", "k"),
    )
    .await;
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn a_json_request_with_a_key_is_answered_with_the_aggregate_each_time() {
    let upstream = Upstream::script(|_, _| answer()).await;
    let gateway = start(&upstream).await;
    for replayed in [false, true] {
        let post = gateway
            .post(r#"{"model":"m"}"#)
            .header("idempotency-key", "k");
        let response = send(post).await;
        assert_eq!(
            response.headers().contains_key("idempotent-replayed"),
            replayed
        );
        let body: Value = response.value().await;
        assert_eq!(body["choices"][0]["message"]["content"], "a");
    }
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn a_key_keeps_a_whole_answer_to_a_request_for_a_stream() {
    let message = json!({"role": "assistant", "content": "a"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let body = json!({"id": "c1", "object": "chat.completion", "choices": [choice]});
    let upstream = Upstream::steps(json_body(200, &body.to_string())).await;
    let gateway = start(&upstream).await;
    let keyed = |body: String| send(gateway.post(body).header("idempotency-key", "k"));
    let mut first = Reader::new(keyed(request(1)).await);
    let events = first.rest().await;
    assert_eq!(events[0].text(), "a");
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let mut second = Reader::new(keyed(request(1)).await);
    assert_eq!(second.rest().await, events);
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(second.header("x-stream-id"), first.header("x-stream-id"));
    let other = keyed(request(2)).await;
    assert_eq!(other.status(), 422);
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_without_a_completion_frees_its_key() {
    let error = r#"{"error":{"message":"later"}}"#;
    let upstream = Upstream::steps(json_body(200, error)).await;
    let gateway = start(&upstream).await;
    for requests in [1, 2] {
        let response = send(gateway.post(request(1)).header("idempotency-key", "k")).await;
        assert_eq!(response.text().await.unwrap(), error);
        assert_eq!(upstream.seen().len(), requests);
    }
}

#[tokio::test]
async fn a_refused_request_frees_its_key() {
    let upstream = Upstream::script(|_, ordinal| match ordinal {
        0 => json_body(429, r#"{"error":{"message":"later"}}"#),
        _ => answer(),
    })
    .await;
    let gateway = start(&upstream).await;
    for status in [429, 200] {
        let response = send(gateway.post(request(1)).header("idempotency-key", "k")).await;
        assert_eq!(response.status(), status);
    }
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn the_request_continues_when_its_client_leaves_before_the_head() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let upstream = Upstream::script(move |_, _| {
        let mut steps = vec![Step::Gate(Arc::clone(&held))];
        steps.extend(answer());
        steps
    })
    .await;
    let gateway = start(&upstream).await;
    let keyed = || gateway.post(request(1)).header("idempotency-key", "k");
    let left = tokio::time::timeout(Duration::from_millis(200), keyed().send()).await;
    assert!(left.is_err());
    gate.add_permits(1);
    let mut reader = Reader::new(send(keyed()).await);
    assert_eq!(reader.rest().await.last().unwrap().data, "[DONE]");
    assert_eq!((upstream.seen().len(), upstream.closed()), (1, 0));
}

#[tokio::test]
async fn a_request_without_a_key_is_closed_when_its_client_leaves_before_the_head() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start(&upstream).await;
    for body in [request(1), r#"{"model":"m"}"#.to_owned()] {
        let before = upstream.closed();
        let left =
            tokio::time::timeout(Duration::from_millis(200), gateway.post(body).send()).await;
        assert!(left.is_err());
        eventually("the upstream is closed", async || {
            upstream.closed() == before + 1
        })
        .await;
    }
}

#[tokio::test]
async fn a_key_is_visible_ascii_of_at_most_255_characters() {
    let upstream = Upstream::script(|_, _| answer()).await;
    let gateway = start(&upstream).await;
    let key = "k".repeat(255);
    let response = send(gateway.post(request(1)).header("idempotency-key", &key)).await;
    assert_eq!(response.status(), 200);
    for key in ["k".repeat(256), "two words".into(), String::new()] {
        let response = send(gateway.post(request(1)).header("idempotency-key", &key)).await;
        assert_eq!(response.status(), 400, "{key}");
        assert_eq!(error_code(response).await, "bad_idempotency_key");
    }
}
