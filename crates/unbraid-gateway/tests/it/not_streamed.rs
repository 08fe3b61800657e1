//! Providers that answer a request for a stream with one JSON object.

use serde_json::{Value, json};

use crate::support::{
    Json, Reader, Step, Upstream, chunk, finish, json_body, request, send, start, stream_of,
};

#[tokio::test]
async fn respond_async_keeps_a_whole_answer_as_a_stream() {
    let choice = |index: u32| {
        let message = json!({"role": "assistant", "content": format!("answer {index}")});
        json!({"index": index, "message": message, "finish_reason": "stop"})
    };
    let body = json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice(0), choice(1)],
    });
    let upstream = Upstream::steps(json_body(200, &body.to_string())).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(2)).header("prefer", "respond-async")).await;
    let status: Value = response.value().await;
    let id = status["id"].as_str().unwrap();
    let mut view = gateway.view(&format!("/v1/streams/{id}/choices/1")).await;
    let events = view.rest().await;
    assert_eq!(events[0].text(), "answer 1");
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(gateway.ended(id).await["end"], "finished");
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn respond_async_reports_json_without_choices_as_a_refusal() {
    let upstream = Upstream::steps(json_body(200, r#"{"error":{"code":"quota"}}"#)).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(2)).header("prefer", "respond-async")).await;
    let status: Value = response.value().await;
    let ended = gateway.ended(status["id"].as_str().unwrap()).await;
    assert_eq!(ended["end"], "refused");
    assert_eq!(ended["error"]["code"], "quota");
}

#[tokio::test]
async fn an_error_of_the_upstream_inside_its_answer_is_that_of_the_aggregate() {
    let check = async |error: Value, status: u16, expected: Value| {
        let events = [chunk(0, "a"), error.to_string()];
        let upstream = Upstream::steps(stream_of(&events)).await;
        let gateway = start(&upstream).await;
        let body = json!({"model": "m", "messages": []});
        let post = gateway
            .post(body.to_string())
            .header("idempotency-key", "k");
        let replayed = post.try_clone().unwrap();
        for post in [post, replayed] {
            let response = send(post).await;
            assert_eq!(response.status(), status);
            assert_eq!(response.value().await["error"], expected);
        }
    };
    let limited = json!({"message": "slow down", "type": "requests", "param": null, "code": "rate_limit_exceeded"});
    check(json!({"error": limited}), 429, limited).await;
    check(
        json!({"error": {"message": "overloaded", "code": 503}}),
        503,
        json!({"message": "overloaded", "type": "api_error", "param": null, "code": 503}),
    )
    .await;
}

#[tokio::test]
async fn a_completion_that_is_kept_as_events_has_an_event_for_usage_only_if_that_is_asked_for() {
    let completion = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"total_tokens":3}}"#;
    let upstream = Upstream::steps(json_body(200, completion)).await;
    let gateway = start(&upstream).await;
    let check = async |key: &str, options: &str, chunks: usize| {
        let body = format!(r#"{{"model":"m","stream":true{options}}}"#);
        let post = gateway.post(body).header("idempotency-key", key);
        let events = Reader::new(send(post).await).rest().await;
        let (last, events) = events.split_last().unwrap();
        assert_eq!(last.data, "[DONE]");
        assert_eq!(events.len(), chunks, "{events:?}");
        let usage = events.last().unwrap().json()["usage"].clone();
        assert_eq!(usage, json!({"total_tokens": 3}));
        assert_eq!(events[0].json()["choices"][0]["delta"]["content"], "Hi");
    };
    check("a", "", 1).await;
    check("b", r#","stream_options":{"include_usage":true}"#, 2).await;
}

#[tokio::test]
async fn the_usage_of_a_completion_with_all_choices_stays_beside_them() {
    let choice = |index: u32| {
        let message = json!({"role": "assistant", "content": "Hi"});
        json!({"index": index, "message": message, "finish_reason": "stop"})
    };
    let body = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [choice(0), choice(1)], "usage": {"total_tokens": 3},
    });
    let upstream = Upstream::steps(json_body(200, &body.to_string())).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(2)).header("prefer", "respond-async")).await;
    let status: Value = response.value().await;
    let id = status["id"].as_str().unwrap();
    let mut view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    let events = view.rest().await;
    let chunks: Vec<Value> = events
        .iter()
        .filter(|event| event.data.starts_with('{'))
        .map(|event| event.json())
        .collect();
    assert!(
        chunks.iter().all(|chunk| chunk["choices"] != json!([])),
        "{chunks:?}"
    );
    assert_eq!(chunks[0]["usage"]["total_tokens"], 3);
}

#[tokio::test]
async fn an_aggregate_keeps_each_value_of_a_header_that_the_upstream_repeats() {
    let mut steps = stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()]);
    let head = Step::Head(
        200,
        vec![
            ("content-type", "text/event-stream".into()),
            ("x-upstream", "one".into()),
            ("x-upstream", "two".into()),
        ],
    );
    let old = std::mem::replace(&mut steps[0], head);
    assert!(matches!(old, Step::Head(..)));
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let post = gateway.post(r#"{"model":"m"}"#);
    let response = send(post.header("idempotency-key", "k")).await;
    let values: Vec<_> = response.headers().get_all("x-upstream").iter().collect();
    assert_eq!(values, ["one", "two"]);
    assert_eq!(response.headers()["content-type"], "application/json");
}

/// What an answer is shows in its first character. An upstream that sends none must not be waited for without a bound.
#[tokio::test]
async fn an_answer_that_begins_with_too_much_white_space_is_taken_as_it_is_declared() {
    let blank = || (0..40).map(|_| Step::Send(" ".repeat(4095) + "\n"));
    let head = |kind: &str| Step::Head(200, vec![("content-type", kind.to_owned())]);
    let mut steps = vec![head("text/plain")];
    steps.extend(blank());
    steps.push(Step::Hang);
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let (_, _reader) = gateway.create(1).await;
    let mut steps = vec![head("application/json")];
    steps.extend(blank());
    steps.push(Step::Hang);
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(request(1))).await;
    assert_eq!(response.headers()["content-type"], "application/json");
}
