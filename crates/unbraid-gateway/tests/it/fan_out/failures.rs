//! Requests of a fan-out that fail.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{BODY, one_choice};
use crate::support::{
    Event, Json, Reader, Step, Upstream, chunk, eventually, finish, json_body, request, send, sse,
    start, start_with, stream_of,
};

#[tokio::test]
async fn a_failing_choice_does_not_disturb_the_others() {
    let upstream = Upstream::script(|seen, ordinal| match seen.json()["seed"].as_u64() {
        Some(6) => json_body(500, r#"{"error":{"message":"no"}}"#),
        Some(7) => vec![
            sse(),
            Step::Send(format!("data: {}\n\n", chunk(0, "cut"))),
            Step::Cut,
        ],
        _ => {
            let mut steps = vec![Step::Sleep(Duration::from_millis(100))];
            steps.extend(one_choice(seen, ordinal));
            steps
        }
    })
    .await;
    let gateway = start_with(&upstream, |builder| {
        builder.fan_out(unbraid_gateway::FanOut::Always)
    })
    .await;
    let mut reader = Reader::new(send(gateway.post(BODY)).await);
    let events = reader.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let failed: Vec<_> = events
        .iter()
        .filter_map(|event| {
            let json: Value = serde_json::from_str(&event.data).ok()?;
            let choice = json["choices"].get(0)?.clone();
            (choice["finish_reason"] == "error").then_some(choice)
        })
        .map(|choice| {
            (
                choice["index"].as_u64().unwrap(),
                choice["error"]["code"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(
        failed,
        [(1, "server_error".to_owned()), (2, "transport".to_owned())]
    );
    let id = reader.header("x-stream-id").unwrap().to_owned();
    assert_eq!(gateway.ended(&id).await["end"], "finished");
    let view = async |query: String| {
        let path = format!("/v1/streams/{id}/choices/1{query}");
        gateway.view(&path).await.rest().await
    };
    let choice = view(String::new()).await;
    // It failed before any answer had begun, and waited for the first, whose identity it has.
    let identities = events.iter().filter(|event| event.data != "[DONE]");
    let identities = identities.map(|event| {
        let json = event.json();
        [json["id"].clone(), json["created"].clone()]
    });
    let identities: std::collections::HashSet<_> = identities.collect();
    assert_eq!(identities.len(), 1, "{identities:?}");
    let error = json!({
        "message": "no", "type": "stream_error", "param": null, "code": "server_error",
    });
    assert_eq!(choice[1].json(), json!({ "error": error }));
    let resumed = view(format!("?after={}", choice[0].id.as_ref().unwrap())).await;
    assert_eq!(resumed, choice[1..]);
}

#[tokio::test]
async fn a_failed_choice_that_waits_for_the_first_chunk_is_in_the_log_before_a_cancel_is_answered()
{
    let upstream = Upstream::script(|seen, _| match seen.json()["seed"].as_u64() {
        Some(6) => json_body(500, r#"{"error":{"message":"no"}}"#),
        _ => vec![sse(), Step::Sleep(Duration::from_secs(600))],
    })
    .await;
    let gateway = start_with(&upstream, |builder| {
        builder.fan_out(unbraid_gateway::FanOut::Always)
    })
    .await;
    let body = r#"{"model":"m","n":8,"seed":5,"stream":true}"#;
    let mut reader = Reader::new(send(gateway.post(body)).await);
    let id = reader.header("x-stream-id").unwrap().to_owned();
    // The first cancels may come before the gateway has read the failure.
    let mut cancels = 2..8;
    eventually("the failed choice ends at no cancel", async || {
        let choice = cancels.next().unwrap();
        let path = format!("/v1/streams/{id}/choices/{choice}");
        let cancelled = send(gateway.method(Method::DELETE, &path)).await;
        assert_eq!(cancelled.status(), 200);
        gateway.status(&id).await["choices"][1]["end"] == "server_error"
    })
    .await;
    // Without any chunk, the request names the model and the time.
    let events = reader.until("\"error\"").await.events();
    let is_failed = |event: &Value| event["choices"][0]["finish_reason"] == "error";
    let failed = events
        .iter()
        .map(|event| event.json())
        .find(is_failed)
        .unwrap();
    assert_eq!(failed["choices"][0]["index"], 1);
    assert_eq!(failed["model"], "m");
    assert!(failed["created"].as_u64().unwrap() > 1_000_000_000);
    send(gateway.method(Method::DELETE, &format!("/v1/streams/{id}"))).await;
}

#[tokio::test]
async fn if_every_request_is_refused_the_first_refusal_is_the_answer() {
    let upstream = Upstream::steps(json_body(401, r#"{"error":{"message":"key"}}"#)).await;
    let gateway = start(&upstream).await;
    let response = send(gateway.post(BODY).header("x-stream-fan-out", "always")).await;
    assert_eq!(response.status(), 401);
    assert_eq!(
        response.text().await.unwrap(),
        r#"{"error":{"message":"key"}}"#
    );
}

/// The combined view, the status and the aggregate say why, and each choice's last chunk says it of its own request.
#[tokio::test]
async fn if_every_answer_is_an_error_the_first_choices_is_that_of_the_stream() {
    let upstream = Upstream::script(|_, ordinal| {
        let error = json!({"error": {"message": format!("overloaded {ordinal}")}});
        vec![sse(), Step::Send(format!("data: {error}\n\n")), Step::End]
    })
    .await;
    let gateway = start(&upstream).await;
    let post = |body: String| gateway.post(body).header("x-stream-fan-out", "always");
    let mut reader = Reader::new(send(post(request(2))).await);
    let events = reader.rest().await;
    let mut reasons = Vec::new();
    for event in &events[..2] {
        let choice = event.json()["choices"][0].clone();
        assert_eq!(choice["finish_reason"], "error");
        assert_eq!(choice["error"]["code"], "server_error");
        reasons.push((choice["index"].clone(), choice["error"]["message"].clone()));
    }
    assert_ne!(reasons[0].1, reasons[1].1);
    let first = reasons.iter().find(|(index, _)| index == 0);
    let error = json!({
        "message": first.unwrap().1, "type": "stream_error", "param": null, "code": "server_error",
    });
    assert_eq!(events[2].json(), json!({ "error": error }));
    let id = reader.header("x-stream-id").unwrap();
    assert_eq!(gateway.ended(id).await["error"], error);
    let whole = request(2).replace("\"stream\":true", "\"stream\":false");
    let response = send(post(whole)).await;
    assert_eq!(response.status(), 502);
    let message = response.value().await["error"]["message"].clone();
    assert!(message.as_str().unwrap().starts_with("overloaded"));
}

#[tokio::test]
async fn the_aggregate_of_failed_answers_has_the_status_and_the_names_that_the_first_reported() {
    let upstream = Upstream::script(|_, _| {
        let error = json!({"error": {
            "message": "slow down", "type": "requests", "param": "model", "code": "rate_limit_exceeded",
        }});
        vec![sse(), Step::Send(format!("data: {error}\n\n")), Step::End]
    })
    .await;
    let gateway = start(&upstream).await;
    let post = |body: String| gateway.post(body).header("x-stream-fan-out", "always");
    let whole = request(2).replace("\"stream\":true", "\"stream\":false");
    let response = send(post(whole)).await;
    assert_eq!(response.status(), 429);
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let error = json!({
        "message": "slow down", "type": "requests", "param": "model", "code": "rate_limit_exceeded",
    });
    assert_eq!(response.value().await, json!({ "error": error }));
    let status = gateway.ended(&id).await;
    let expected = json!({
        "message": "slow down", "type": "stream_error", "param": null, "code": "server_error",
        "upstream": {"status": 429, "type": "requests", "param": "model", "code": "rate_limit_exceeded"},
    });
    assert_eq!(status["error"], expected);
    // The event of a view is the gateway's own.
    let path = format!(
        "/v1/streams/{id}/events?after={}",
        status["seq"].as_u64().unwrap() - 1
    );
    let events = gateway.view(&path).await.rest().await;
    let mut shown = expected;
    shown.as_object_mut().unwrap().remove("upstream");
    assert_eq!(events[0].json(), json!({ "error": shown }));
}

#[tokio::test]
async fn a_refused_request_gives_the_aggregate_its_status_if_the_other_answers_are_errors() {
    let upstream = Upstream::script(|_, ordinal| {
        let error = r#"{"error":{"message":"slow down"}}"#;
        match ordinal {
            0 => json_body(429, error),
            _ => vec![
                Step::Sleep(Duration::from_millis(100)),
                sse(),
                Step::Send(format!("data: {error}\n\n")),
                Step::End,
            ],
        }
    })
    .await;
    let gateway = start(&upstream).await;
    let whole = request(2).replace("\"stream\":true", "\"stream\":false");
    let response = send(gateway.post(whole).header("x-stream-fan-out", "always")).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.value().await["error"]["message"], "slow down");
}

#[tokio::test]
async fn x4_the_choice_of_an_error_event_comes_before_its_error() {
    let both = r#"{"choices":[{"index":0,"delta":{"content":"b"}}],"error":{"message":"x"}}"#;
    let upstream = Upstream::steps(stream_of(&[&*chunk(0, "a"), both])).await;
    let gateway = start(&upstream).await;
    let post = gateway
        .post(request(2))
        .header("x-stream-fan-out", "always");
    let mut reader = Reader::new(send(post).await);
    let events = reader.rest().await;
    let text = |index: u32| -> String {
        let of = |event: &&Event| event.json()["choices"][0]["index"] == index;
        events.iter().filter(of).map(Event::text).collect()
    };
    assert_eq!((&*text(0), &*text(1)), ("ab", "ab"), "{}", reader.text);
    let last = events.last().unwrap();
    assert_eq!(last.json()["error"]["code"], "server_error");
}

/// OpenRouter sends such an event: the gateway's own last chunk says the same, and why.
#[tokio::test]
async fn x4_an_error_event_with_a_finish_reason_is_one_chunk_of_its_choice() {
    let upstream = Upstream::script(|request, _| {
        let mut events = vec![chunk(0, "a")];
        if request.json()["seed"] == 8 {
            let entry = r#"{"index":0,"delta":{"content":""},"finish_reason":"error"}"#;
            events.push(format!(
                r#"{{"choices":[{entry}],"error":{{"message":"x"}}}}"#
            ));
        } else {
            events.extend([finish(0), "[DONE]".to_owned()]);
        }
        stream_of(&events)
    })
    .await;
    let gateway = start(&upstream).await;
    let body = r#"{"model":"m","n":2,"seed":7,"stream":true,"messages":[]}"#;
    let post = gateway.post(body).header("x-stream-fan-out", "always");
    let mut reader = Reader::new(send(post).await);
    let events = reader.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let entries = events.iter().filter_map(|event| {
        let entry = serde_json::from_str::<Value>(&event.data).ok()?["choices"][0].clone();
        (entry["index"] == 1).then_some(entry)
    });
    let entries: Vec<Value> = entries.collect();
    assert_eq!(entries.len(), 2, "{}", reader.text);
    assert_eq!(entries[1]["finish_reason"], "error");
    assert_eq!(entries[1]["error"]["message"], "x");
}
