//! Section 5: control.

mod ends;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    create::error_code,
    support::{
        Json, Step, TestGateway, Upstream, chunk, eventually, finish, send, sse, start, stream_of,
    },
};

/// An upstream that sends these events and then nothing.
async fn silent_after(events: &[String]) -> Upstream {
    let mut steps = vec![sse()];
    steps.extend(
        events
            .iter()
            .map(|event| Step::Send(format!("data: {event}\n\n"))),
    );
    steps.push(Step::Hang);
    Upstream::steps(steps).await
}

async fn cancel(gateway: &TestGateway, id: &str, index: u32) -> Value {
    let path = format!("/v1/streams/{id}/choices/{index}");
    let response = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    assert_eq!(response.status(), 200);
    response.value().await
}

#[tokio::test]
async fn the_status_object_says_everything() {
    let upstream = Upstream::steps(stream_of(&[
        chunk(0, "a"),
        chunk(1, "x"),
        finish(0),
        r#"{"choices":[],"usage":{"total_tokens":7}}"#.to_owned(),
        "[DONE]".to_owned(),
    ]))
    .await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    let last = post.rest().await.pop().unwrap().id.unwrap();
    let status = gateway.ended(&id).await;
    let url = format!("/v1/streams/{id}");
    let expected = json!({
        "id": id, "object": "stream", "endpoint": "/v1/chat/completions", "model": "m",
        "created": status["created"], "state": "ended", "end": status["end"], "seq": last,
        "expires": status["expires"], "durability": "replay", "fan_out": false, "error": null,
        "usage": {"total_tokens": 7}, "url": url, "events_url": format!("{url}/events"),
        "choices": status["choices"],
    });
    assert_eq!(status, expected);
    let keys: Vec<_> = status.as_object().unwrap().keys().collect();
    let expected: Vec<_> = expected.as_object().unwrap().keys().collect();
    assert_eq!(keys, expected);
    assert_eq!(
        status["choices"][0],
        json!({"index": 0, "state": "ended", "end": "finished", "finish_reason": "stop",
            "seq": status["choices"][0]["seq"], "url": format!("{url}/choices/0")})
    );
    let second = &status["choices"][1];
    assert_eq!(
        (&second["end"], &second["finish_reason"]),
        (&json!("done_without_finish"), &Value::Null)
    );
}

#[tokio::test]
async fn one_choice_is_cancelled_and_the_others_continue() {
    let upstream = silent_after(&[chunk(0, "a"), chunk(1, "x")]).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    post.until("\"x\"").await;
    let expected =
        json!({"index": 1, "state": "ended", "end": "cancelled", "upstream": "continues"});
    assert_eq!(cancel(&gateway, &id, 1).await, expected);
    assert_eq!(cancel(&gateway, &id, 1).await, expected, "nothing changes");
    let events = gateway
        .view(&format!("/v1/streams/{id}/choices/1"))
        .await
        .rest()
        .await;
    let chunk = events[1].json();
    assert_eq!(
        chunk["choices"],
        json!([{"index": 0, "delta": {}, "finish_reason": "cancelled"}])
    );
    assert_eq!(chunk["id"], "c1");
    assert_eq!(events[2].data, "[DONE]");
    assert_eq!(upstream.closed(), 0);
    // The last open choice: the upstream is closed.
    let expected = json!({"index": 0, "state": "ended", "end": "cancelled", "upstream": "closed"});
    assert_eq!(cancel(&gateway, &id, 0).await, expected);
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(gateway.ended(&id).await["end"], "cancelled");
    assert_eq!(
        gateway.metric("unbraid_choices_cancelled_total{upstream=\"closed\"}"),
        1.0
    );
}

#[tokio::test]
async fn the_later_deltas_of_a_cancelled_choice_are_dropped() {
    let gate = Arc::new(Semaphore::new(0));
    let both =
        r#"{"choices":[{"index":0,"delta":{"content":"b"}},{"index":1,"delta":{"content":"y"}}]}"#;
    let send_event = |event: &str| Step::Send(format!("data: {event}\n\n"));
    let upstream = Upstream::steps(vec![
        sse(),
        send_event(&chunk(0, "a")),
        send_event(&chunk(1, "x")),
        Step::Gate(gate.clone()),
        send_event(&chunk(1, "dropped")),
        send_event(both),
        send_event(&finish(0)),
        send_event("[DONE]"),
        Step::End,
    ])
    .await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    post.until("\"x\"").await;
    cancel(&gateway, &id, 1).await;
    gate.add_permits(1);
    let events = post.rest().await;
    assert!(
        !post.text.contains("dropped") && !post.text.contains("\"y\""),
        "{}",
        post.text
    );
    assert!(
        post.text
            .contains(r#"{"choices":[{"index":0,"delta":{"content":"b"}}]}"#)
    );
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(gateway.ended(&id).await["end"], "finished");
}

#[tokio::test]
async fn a_choice_that_has_ended_keeps_its_end() {
    let upstream = Upstream::steps(stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(1).await;
    post.rest().await;
    let expected = json!({"index": 0, "state": "ended", "end": "finished", "upstream": "closed"});
    assert_eq!(cancel(&gateway, &id, 0).await, expected);
    let path = format!("/v1/streams/{id}/choices/1");
    let response = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    assert_eq!(response.status(), 404);
    assert_eq!(error_code(response).await, "choice_not_found");
}

#[tokio::test]
async fn all_choices_are_cancelled_at_once_also_those_that_have_not_appeared() {
    let upstream = silent_after(&[chunk(0, "a")]).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(3).await;
    post.until("\"a\"").await;
    for _ in 0..2 {
        let path = format!("/v1/streams/{id}/cancel");
        let response = send(gateway.method("POST".parse().unwrap(), &path)).await;
        assert_eq!(response.status(), 200);
        let status: Value = response.value().await;
        assert_eq!(
            (&status["state"], &status["end"]),
            (&json!("ended"), &json!("cancelled"))
        );
    }
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
    let events = post.rest().await;
    let cancelled: Vec<_> = events[1..4]
        .iter()
        .map(|event| event.json()["choices"][0].clone())
        .collect();
    let expected = |index| json!({"index": index, "delta": {}, "finish_reason": "cancelled"});
    assert_eq!(cancelled, [expected(0), expected(1), expected(2)]);
    assert_eq!(events[4].data, "[DONE]");
    let choice = gateway
        .view(&format!("/v1/streams/{id}/choices/2"))
        .await
        .rest()
        .await;
    assert_eq!(choice.len(), 2);
}

#[tokio::test]
async fn a_cancel_reaches_a_request_whose_answer_has_not_begun() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start(&upstream).await;
    let post = gateway
        .post(crate::support::request(2))
        .header("prefer", "respond-async");
    let status: Value = send(post).await.value().await;
    let id = status["id"].as_str().unwrap().to_owned();
    eventually("the request is sent", async || upstream.open() == 1).await;
    let path = format!("/v1/streams/{id}/cancel");
    let response = send(gateway.method("POST".parse().unwrap(), &path)).await;
    assert_eq!(response.value().await["end"], "cancelled");
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
}

#[tokio::test]
async fn cancelling_every_choice_before_the_answer_begins_closes_the_upstream() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start(&upstream).await;
    let post = gateway
        .post(crate::support::request(2))
        .header("prefer", "respond-async");
    let status: Value = send(post).await.value().await;
    let id = status["id"].as_str().unwrap().to_owned();
    eventually("the request is sent", async || upstream.open() == 1).await;
    for _ in 0..2 {
        let expected =
            json!({"index": 0, "state": "ended", "end": "cancelled", "upstream": "continues"});
        assert_eq!(cancel(&gateway, &id, 0).await, expected);
    }
    let view = gateway
        .view(&format!("/v1/streams/{id}/choices/0"))
        .await
        .rest()
        .await;
    assert_eq!(view[0].json()["model"], "m");
    assert_eq!(view[0].json()["choices"][0]["finish_reason"], "cancelled");
    assert_eq!(view[1].data, "[DONE]");
    assert_eq!(cancel(&gateway, &id, 1).await["upstream"], "closed");
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
    assert_eq!(gateway.ended(&id).await["end"], "cancelled");
}

/// The choice is dropped when the answer arrives, whether it is one for all choices or one for each.
#[tokio::test]
async fn a_choice_that_was_cancelled_before_the_answer_began_is_dropped() {
    for fan_out in ["native", "auto", "always"] {
        let gate = Arc::new(Semaphore::new(0));
        let answers = Arc::clone(&gate);
        let upstream = Upstream::script(move |seen, _| {
            let choices = seen.json()["n"].as_u64().unwrap_or(1) as u32;
            let mut steps = vec![Step::Gate(Arc::clone(&answers)), sse()];
            for index in 0..choices {
                for data in [chunk(index, "kept"), finish(index)] {
                    steps.push(Step::Send(format!("data: {data}\n\n")));
                }
            }
            steps.extend([Step::Send("data: [DONE]\n\n".into()), Step::End]);
            steps
        })
        .await;
        let gateway = start(&upstream).await;
        let post = gateway
            .post(crate::support::request(2))
            .header("prefer", "respond-async")
            .header("x-stream-fan-out", fan_out);
        let status: Value = send(post).await.value().await;
        let id = status["id"].as_str().unwrap().to_owned();
        let requests = if fan_out == "always" { 2 } else { 1 };
        eventually("the request is sent", async || upstream.open() == requests).await;
        assert_eq!(cancel(&gateway, &id, 1).await["end"], "cancelled");
        gate.add_permits(2);
        let events = gateway
            .view(&format!("/v1/streams/{id}/events"))
            .await
            .rest()
            .await;
        let entries = events[..events.len() - 1]
            .iter()
            .map(|event| event.json()["choices"][0].clone());
        let entries: Vec<_> = entries
            .map(|entry| (entry["index"].clone(), entry["finish_reason"].clone()))
            .collect();
        assert_eq!(
            entries,
            [
                (json!(1), json!("cancelled")),
                (json!(0), json!(null)),
                (json!(0), json!("stop")),
            ],
            "{fan_out}"
        );
        assert_eq!(events.last().unwrap().data, "[DONE]");
        let status = gateway.ended(&id).await;
        assert_eq!(status["end"], "finished", "{fan_out}: {status}");
        assert_eq!(status["choices"][1]["end"], "cancelled");
    }
}

#[tokio::test]
async fn a_choice_with_a_request_of_its_own_is_closed_before_any_answer_has_begun() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start(&upstream).await;
    let post = gateway
        .post(crate::support::request(3))
        .header("prefer", "respond-async")
        .header("x-stream-fan-out", "always");
    let status: Value = send(post).await.value().await;
    let id = status["id"].as_str().unwrap().to_owned();
    eventually("the requests are sent", async || upstream.open() == 3).await;
    for closed in 1..=3 {
        let index = 3 - closed;
        let expected =
            json!({"index": index, "state": "ended", "end": "cancelled", "upstream": "closed"});
        assert_eq!(cancel(&gateway, &id, index).await, expected);
        eventually("its request is closed", async || {
            upstream.closed() == closed as usize
        })
        .await;
    }
    assert_eq!(gateway.ended(&id).await["end"], "cancelled");
}

#[tokio::test]
async fn an_erased_stream_is_gone_and_its_upstream_closed() {
    let upstream = silent_after(&[chunk(0, "secret")]).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(1).await;
    post.until("secret").await;
    let path = format!("/v1/streams/{id}");
    let response = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    assert_eq!(response.status(), 204);
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
    for path in [path.clone(), format!("{path}/events")] {
        assert_eq!(send(gateway.get(&path)).await.status(), 410);
    }
    post.rest().await;
}

#[tokio::test]
async fn a_wrong_method_is_405_with_allow() {
    let upstream = Upstream::steps(Vec::new()).await;
    let gateway = start(&upstream).await;
    for (method, path, allow) in [
        ("PUT", "/v1/streams/x", "GET, HEAD, DELETE"),
        ("POST", "/v1/streams/x/events", "GET, HEAD"),
        ("POST", "/v1/streams/x/choices/0", "GET, HEAD, DELETE"),
        ("GET", "/v1/streams/x/cancel", "POST"),
        ("GET", "/v1/streams/x/links", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/v1/models", "GET, HEAD"),
    ] {
        let response = send(gateway.method(method.parse().unwrap(), path)).await;
        assert_eq!(response.status(), 405, "{method} {path}");
        assert_eq!(response.headers()["allow"], allow, "{path}");
        assert_eq!(error_code(response).await, "method_not_allowed");
    }
}

#[tokio::test]
async fn a_choice_is_cancelled_before_its_first_event_although_the_request_has_no_n() {
    let upstream = silent_after(&[]).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(r#"{"model":"m","stream":true}"#)).await;
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/streams/{id}/choices/1");
    let other = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    assert_eq!(other.status(), 404);
    let expected = json!({"index": 0, "state": "ended", "end": "cancelled", "upstream": "closed"});
    assert_eq!(cancel(&gateway, &id, 0).await, expected);
    eventually("the upstream is closed", async || upstream.closed() == 1).await;
}

/// A log in another process is read through a copy, which may lag behind the producer.
#[tokio::test]
async fn a_cancel_that_the_producer_has_confirmed_is_200_whatever_log_keeps_the_stream() {
    let upstream = silent_after(&[chunk(0, "a"), chunk(1, "x")]).await;
    for _ in 0..20 {
        let log = unbraid_log::MemoryLog::new(unbraid_log::MemoryOptions::default());
        let gateway =
            crate::support::start_with(&upstream, |builder| builder.log(Arc::new(log))).await;
        let (id, mut post) = gateway.create(2).await;
        post.until("\"x\"").await;
        let expected =
            json!({"index": 1, "state": "ended", "end": "cancelled", "upstream": "continues"});
        assert_eq!(cancel(&gateway, &id, 1).await, expected);
    }
}
