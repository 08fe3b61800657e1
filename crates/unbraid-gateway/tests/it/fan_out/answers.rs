//! Answers to single requests that are not one streamed choice.

use serde_json::{Value, json};

use crate::support::{
    Json, Reader, Step, Upstream, chunk, eventually, finish, json_body, request, send, sse, start,
    start_with, stream_of,
};

/// A provider that does not stream, and knows no `n`.
fn whole(text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    json!({"id": "w", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
        .to_string()
}

/// A client that asked for a stream reads deltas, whatever the provider sends.
#[tokio::test]
async fn whole_answers_become_chunks() {
    let upstream = Upstream::script(|seen, _| match seen.json().get("n") {
        Some(_) => json_body(
            400,
            r#"{"error":{"message":"n is not supported","param":"n"}}"#,
        ),
        None => json_body(200, &whole("Hi")),
    })
    .await;
    let gateway = start(&upstream).await;
    // The second time the model is known.
    for fan_out in ["always", "auto", "auto"] {
        let post = gateway.post(request(2)).header("x-stream-fan-out", fan_out);
        let mut reader = Reader::new(send(post).await);
        let mut events = reader.rest().await;
        assert_eq!(events.pop().unwrap().data, "[DONE]");
        let mut entries = Vec::new();
        for event in &events {
            let chunk = event.json();
            assert_eq!(chunk["object"], "chat.completion.chunk");
            entries.push(chunk["choices"][0].clone());
        }
        entries.sort_by_key(|entry| entry["index"].as_u64());
        let delta = json!({"role": "assistant", "content": "Hi"});
        let entry =
            |index: u32| json!({"index": index, "finish_reason": "stop", "delta": delta.clone()});
        assert_eq!(entries, [entry(0), entry(1)], "{fan_out}");
        let id = reader.header("x-stream-id").unwrap().to_owned();
        let path = format!("/v1/streams/{id}/choices/1");
        let choice = gateway.view(&path).await.rest().await;
        assert_eq!(choice[0].text(), "Hi");
    }
}

#[tokio::test]
async fn a_whole_answer_that_is_an_error_is_the_error_of_its_choice() {
    let upstream = Upstream::script(|_, ordinal| match ordinal {
        0 => json_body(200, r#"{"error":{"message":"overloaded"}}"#),
        _ => json_body(200, &whole("Hi")),
    })
    .await;
    let gateway = start(&upstream).await;
    let post = gateway
        .post(request(2))
        .header("x-stream-fan-out", "always");
    let mut reader = Reader::new(send(post).await);
    assert_eq!(reader.rest().await.last().unwrap().data, "[DONE]");
    let id = reader.header("x-stream-id").unwrap().to_owned();
    let status: Value = gateway.ended(&id).await;
    let choices = status["choices"].as_array().unwrap();
    let mut ends: Vec<_> = choices
        .iter()
        .map(|choice| choice["end"].as_str())
        .collect();
    ends.sort_unstable();
    assert_eq!(ends, [Some("finished"), Some("server_error")]);
}

/// It may have to be completed, which needs a place among the streams.
#[tokio::test]
async fn a_whole_answer_is_not_paid_for_without_a_place_for_its_completion() {
    let upstream = Upstream::script(|_, ordinal| match ordinal {
        0 => vec![sse(), Step::Hang],
        _ => json_body(200, &whole("Hi")),
    })
    .await;
    let gateway = start_with(&upstream, |builder| builder.max_streams(1)).await;
    let (id, _post) = gateway.create(1).await;
    let body = r#"{"model":"m","n":3}"#;
    let refused = send(gateway.post(body)).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(upstream.seen().len(), 1, "it is not sent");
    // Where nothing would be completed, no place is needed.
    let native = gateway.post(body).header("x-stream-fan-out", "native");
    for post in [native, gateway.post(r#"{"model":"m"}"#)] {
        assert_eq!(send(post).await.status(), 200);
    }
    let cancel = format!("/v1/streams/{id}/cancel");
    send(gateway.method("POST".parse().unwrap(), &cancel)).await;
    eventually("the place is free", async || {
        send(gateway.post(body)).await.status() != 429
    })
    .await;
}

/// The first of them is the answer, and it is not mixed with the others.
#[tokio::test]
async fn several_choices_for_one_request_are_not_mixed() {
    let message = |index: u32, text: &str| json!({"index": index, "message": {"content": text}, "finish_reason": "stop"});
    let choices = [message(0, "Red is warm."), message(1, "Blue is cold.")];
    let whole = json!({"id": "w", "object": "chat.completion", "created": 1, "model": "m", "choices": choices});
    let events = [
        chunk(0, "Red "),
        chunk(1, "Blue "),
        chunk(0, "is warm."),
        chunk(1, "is cold."),
        finish(0),
        finish(1),
        "[DONE]".to_owned(),
    ];
    for answer in [stream_of(&events), json_body(200, &whole.to_string())] {
        let upstream = Upstream::steps(answer).await;
        let gateway = start(&upstream).await;
        let post = gateway
            .post(request(2))
            .header("x-stream-fan-out", "always");
        let mut reader = Reader::new(send(post).await);
        assert_eq!(reader.rest().await.last().unwrap().data, "[DONE]");
        assert!(!reader.text.contains("Blue"), "{}", reader.text);
        let id = reader.header("x-stream-id").unwrap().to_owned();
        let path = format!("/v1/streams/{id}/events?stream=false");
        let whole: Value = send(gateway.get(&path)).await.value().await;
        for choice in whole["choices"].as_array().unwrap() {
            assert_eq!(choice["message"]["content"], "Red is warm.");
        }
        let status = gateway.ended(&id).await;
        assert_eq!(status["end"], "finished");
        assert_eq!(status["choices"].as_array().unwrap().len(), 2);
    }
}

/// A reader that begins with a snapshot, or asks for JSON, learns it, too.
#[tokio::test]
async fn the_error_of_a_choice_is_in_snapshots_and_answers() {
    let refused = r#"{"error":{"message":"slow down","code":"rate_limited"}}"#;
    let upstream = Upstream::script(|seen, _| match seen.json()["seed"].as_u64() {
        Some(6) => json_body(429, refused),
        _ => stream_of(&[chunk(0, "Hi"), finish(0), "[DONE]".to_owned()]),
    })
    .await;
    let gateway = start(&upstream).await;
    let body = r#"{"model":"m","n":2,"seed":5,"stream":true,"messages":[]}"#;
    let post = gateway.post(body).header("x-stream-fan-out", "always");
    let mut reader = Reader::new(send(post).await);
    let events = reader.rest().await;
    let entries = events.iter().filter(|event| event.data != "[DONE]");
    let mut entries = entries.map(|event| event.json()["choices"][0].clone());
    let error = entries.find(|entry| entry["index"] == 1).unwrap()["error"].clone();
    assert_eq!(error["message"], "slow down");
    let id = reader.header("x-stream-id").unwrap().to_owned();
    gateway.ended(&id).await;
    let choice = |answer: &Value, index: usize| answer["choices"][index].clone();
    let snapshot = format!("/v1/streams/{id}/events?from=snapshot");
    let snapshot = gateway.view(&snapshot).await.rest().await[0].json();
    let path = format!("/v1/streams/{id}/events?stream=false");
    let whole: Value = send(gateway.get(&path)).await.value().await;
    for answer in [snapshot, whole] {
        assert_eq!(choice(&answer, 1)["error"], error);
        assert_eq!(choice(&answer, 1)["finish_reason"], "error");
        assert!(choice(&answer, 0).get("error").is_none());
    }
    let path = format!("/v1/streams/{id}/choices/1?stream=false");
    let one: Value = send(gateway.get(&path)).await.value().await;
    assert_eq!(choice(&one, 0)["error"], error);
}

/// A provider that ignores both `stream` and `n`.
#[tokio::test]
async fn choices_that_a_whole_answer_to_a_stream_lacks_are_requested() {
    let upstream = Upstream::script(|_, _| json_body(200, &whole("Hi"))).await;
    let gateway = start(&upstream).await;
    let mut reader = Reader::new(send(gateway.post(request(3))).await);
    let events = reader.rest().await;
    assert!(reader.header("x-stream-id").is_some());
    let mut indices: Vec<_> = events
        .iter()
        .filter(|event| event.text() == "Hi")
        .map(|event| event.json()["choices"][0]["index"].as_u64())
        .collect();
    indices.sort_unstable();
    assert_eq!(indices, [Some(0), Some(1), Some(2)]);
    assert_eq!(upstream.seen().len(), 3);
    // Without fan-out the answer is the provider's own.
    let post = gateway
        .post(request(3))
        .header("x-stream-fan-out", "native");
    assert_eq!(send(post).await.text().await.unwrap(), whole("Hi"));
}

/// A provider that does not know the field by which the gateway asks for usage.
#[tokio::test]
async fn a_request_is_sent_again_without_the_field_that_asks_for_usage() {
    const UNKNOWN: &str = r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#;
    let upstream = Upstream::script(|seen, ordinal| match seen.json().get("stream_options") {
        Some(_) => json_body(422, UNKNOWN),
        None => super::one_choice(seen, ordinal),
    })
    .await;
    let gateway = start(&upstream).await;
    for (n, fan_out, requests) in [(1, "native", 2), (2, "always", 4), (2, "auto", 3)] {
        let before = upstream.seen().len();
        let body = json!({"model": "m", "n": n}).to_string();
        let post = gateway.post(body).header("x-stream-fan-out", fan_out);
        let response = send(post.header("x-stream-durability", "replay")).await;
        assert_eq!(response.status(), 200, "{fan_out}");
        let answer: Value = response.value().await;
        assert_eq!(
            answer["choices"].as_array().map(Vec::len),
            Some(n),
            "{answer}"
        );
        assert_eq!(upstream.seen().len() - before, requests, "{fan_out}");
    }
    // A client that wrote the field itself gets the refusal.
    let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}});
    let response = send(gateway.post(body.to_string())).await;
    assert_eq!(response.status(), 422);
    assert_eq!(response.text().await.unwrap(), UNKNOWN);
}
