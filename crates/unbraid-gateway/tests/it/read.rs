//! Section 4: reading.

mod connections;
mod lists;
mod silence;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    create::error_code,
    support::{
        Json, Reader, Step, TestGateway, Upstream, chunk, finish, send, sse, start, start_with,
        stream_of,
    },
};

/// Two choices; each further event waits for a permit.
async fn gated(events: Vec<String>) -> (Upstream, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let mut steps = vec![sse()];
    for event in events {
        steps.push(Step::Gate(Arc::clone(&gate)));
        steps.push(Step::Send(format!("data: {event}\n\n")));
    }
    steps.push(Step::End);
    (Upstream::steps(steps).await, gate)
}

fn events() -> Vec<String> {
    vec![
        chunk(0, "a"),
        chunk(1, "x"),
        chunk(0, "b"),
        finish(1),
        chunk(0, "c"),
        finish(0),
        "[DONE]".to_owned(),
    ]
}

async fn finished() -> (Upstream, TestGateway, String) {
    let upstream = Upstream::steps(stream_of(&events())).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    post.rest().await;
    (upstream, gateway, id)
}

#[tokio::test]
async fn the_combined_view_is_what_the_post_sent() {
    let upstream = Upstream::steps(stream_of(&events())).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    post.rest().await;
    let mut view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    view.rest().await;
    assert_eq!(view.text, post.text);
    assert_eq!(view.header("x-stream-id"), Some(id.as_str()));
}

#[tokio::test]
async fn a_choice_is_an_ordinary_stream_of_one_choice() {
    let (_upstream, gateway, id) = finished().await;
    let mut view = gateway.view(&format!("/v1/streams/{id}/choices/1")).await;
    let events = view.rest().await;
    let data: Vec<_> = events.iter().map(|event| event.data.clone()).collect();
    let first = chunk(1, "x").replace("\"index\":1", "\"index\":0");
    let last = finish(1).replace("\"index\":1", "\"index\":0");
    assert_eq!(data, [first, last, "[DONE]".to_owned()]);
    let keep = gateway
        .view(&format!("/v1/streams/{id}/choices/1?index=keep"))
        .await
        .rest()
        .await;
    assert_eq!(keep[0].data, chunk(1, "x"));
}

#[tokio::test]
async fn a_choice_ends_when_it_ends_and_not_with_the_stream() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    let mut view = gateway.view(&format!("/v1/streams/{id}/choices/1")).await;
    gate.add_permits(5);
    let events = view.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let status = gateway.status(&id).await;
    assert_eq!(status["state"], "running");
    assert_eq!(status["choices"][1]["end"], "finished");
    assert_eq!(status["choices"][1]["finish_reason"], "stop");
    gate.add_permits(9);
    post.rest().await;
}

#[tokio::test]
async fn silence_after_a_finish_reason_ends_a_choice() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, _post) = gateway.create(2).await;
    let mut view = gateway.view(&format!("/v1/streams/{id}/choices/1")).await;
    gate.add_permits(4);
    let events = view.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(gateway.status(&id).await["state"], "running");
}

#[tokio::test]
async fn a_cursor_continues_in_every_view_without_a_gap_or_a_repetition() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(3);
    post.until("\"b\"").await;
    let cursor = post.events().last().unwrap().id.unwrap();
    let path = format!("/v1/streams/{id}/events?after=0");
    let resumed = gateway
        .get(&path)
        .header("last-event-id", cursor.to_string());
    let mut resumed = Reader::new(send(resumed).await);
    let mut choice = gateway
        .view(&format!("/v1/streams/{id}/choices/0?after={cursor}"))
        .await;
    gate.add_permits(9);
    let all = post.rest().await;
    let rest: Vec<_> = all
        .iter()
        .filter(|event| event.id.unwrap() > cursor)
        .cloned()
        .collect();
    assert_eq!(resumed.rest().await, rest);
    let texts: Vec<_> = choice
        .rest()
        .await
        .iter()
        .map(|event| event.text())
        .collect();
    assert_eq!(texts, ["c", "", ""]);
    assert!(gateway.metric("unbraid_resumes_total{view=\"combined\"}") >= 1.0);
}

#[tokio::test]
async fn a_reconnect_after_the_last_event_gets_204() {
    let (_upstream, gateway, id) = finished().await;
    for view in ["events", "choices/0", "choices/1"] {
        let path = format!("/v1/streams/{id}/{view}");
        let events = gateway.view(&path).await.rest().await;
        let last = events.last().unwrap().id.unwrap();
        let response = send(gateway.get(&path).header("last-event-id", last.to_string())).await;
        assert_eq!(response.status(), 204, "{view}");
        let before = events[events.len() - 2].id.unwrap();
        let rest = gateway
            .view(&format!("{path}?after={before}"))
            .await
            .rest()
            .await;
        assert_eq!(rest, events[events.len() - 1..]);
        let higher = gateway
            .view(&format!("{path}?after={}", last + 1000))
            .await
            .rest()
            .await;
        assert_eq!(higher.len(), 1, "only the terminal event: {higher:?}");
        assert_eq!(higher[0].data, "[DONE]");
    }
}

#[tokio::test]
async fn a_cursor_is_a_decimal_below_2_to_the_63() {
    let (_upstream, gateway, id) = finished().await;
    let path = format!("/v1/streams/{id}/events");
    for cursor in ["x", "-1", "+1", "1.0", "9223372036854775808", "0x1"] {
        let response = send(gateway.get(&path).header("last-event-id", cursor)).await;
        assert_eq!(response.status(), 400, "{cursor}");
        assert_eq!(error_code(response).await, "bad_cursor");
    }
    let response = send(
        gateway
            .get(&path)
            .header("last-event-id", "9223372036854775807"),
    )
    .await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_snapshot_holds_everything_so_far_and_the_tail_nothing() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(3);
    post.until("\"b\"").await;
    let mut snapshot = gateway
        .view(&format!("/v1/streams/{id}/events?from=snapshot"))
        .await;
    let mut tail = gateway
        .view(&format!("/v1/streams/{id}/events?from=tail"))
        .await;
    snapshot.until("\n\n").await;
    tail.until("\n\n").await;
    let first = snapshot.events().remove(0);
    assert_eq!(
        first.json()["unbraid"],
        json!({"snapshot": true, "seq": first.id.unwrap()})
    );
    let text = |index: usize| first.json()["choices"][index]["delta"]["content"].clone();
    assert_eq!((text(0), text(1)), (json!("ab"), json!("x")));
    let position = tail.events().remove(0);
    assert_eq!(position.json()["choices"], json!([]));
    assert_eq!(
        position.json()["unbraid"]["position"],
        json!(position.id.unwrap())
    );
    gate.add_permits(9);
    assert_eq!(snapshot.rest().await[1].data, finish(1));
    assert_eq!(tail.rest().await[1].data, finish(1));
}

#[tokio::test]
async fn the_message_so_far_is_json() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    gate.add_permits(3);
    post.until("\"b\"").await;
    for (path, key) in [
        ("events", "accept"),
        ("events?stream=false", "x"),
        ("choices/0", "accept"),
    ] {
        let get = gateway
            .get(&format!("/v1/streams/{id}/{path}"))
            .header(key, "application/json");
        let response = send(get).await;
        assert_eq!(response.headers()["content-type"], "application/json");
        let body: Value = response.value().await;
        assert_eq!(body["object"], "chat.completion");
        assert_eq!(body["choices"][0]["message"]["content"], "ab");
        assert_eq!(body["choices"][0]["finish_reason"], Value::Null);
        assert_eq!(body["unbraid"]["state"], "running");
    }
    gate.add_permits(9);
    post.rest().await;
    let get = gateway
        .get(&format!("/v1/streams/{id}/choices/1"))
        .header("accept", "application/json");
    let body: Value = send(get).await.value().await;
    assert_eq!(
        (
            &body["choices"][0]["finish_reason"],
            &body["unbraid"]["end"]
        ),
        (&json!("stop"), &json!("finished"))
    );
    assert_eq!(body["choices"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn accept_selects_the_form_and_stream_overrides_it() {
    let (_upstream, gateway, id) = finished().await;
    let path = format!("/v1/streams/{id}/events");
    for (accept, query, expected) in [
        ("*/*", "", "text/event-stream; charset=utf-8"),
        ("text/event-stream", "", "text/event-stream; charset=utf-8"),
        ("application/json", "", "application/json"),
        (
            "application/json",
            "?stream=true",
            "text/event-stream; charset=utf-8",
        ),
        ("text/event-stream", "?stream=false", "application/json"),
    ] {
        let response = send(
            gateway
                .get(&format!("{path}{query}"))
                .header("accept", accept),
        )
        .await;
        assert_eq!(
            response.headers()["content-type"],
            expected,
            "{accept} {query}"
        );
    }
    for accept in ["text/html", "text/html,application/json;q=0"] {
        let response = send(gateway.get(&path).header("accept", accept)).await;
        assert_eq!(response.status(), 406);
    }
    // Several lines are one list, whichever of them has the form.
    for (lines, expected) in [
        (["text/html", "application/json"], "application/json"),
        (["application/json", "text/html"], "application/json"),
        (
            ["application/json;q=0.1", "text/event-stream"],
            "text/event-stream; charset=utf-8",
        ),
        (["", ""], "text/event-stream; charset=utf-8"),
    ] {
        let get = gateway.get(&path).header("accept", lines[0]);
        let response = send(get.header("accept", lines[1])).await;
        assert_eq!(response.headers()["content-type"], expected, "{lines:?}");
    }
    let response = send(gateway.get(&path).header("accept", "")).await;
    let content_type = &response.headers()["content-type"];
    assert_eq!(content_type, "text/event-stream; charset=utf-8");
}

/// 0 is a cursor like any other: `EventSource` sends it after a view that had nothing but its position.
#[tokio::test]
async fn the_tail_of_a_stream_without_events_is_position_0_and_can_be_resumed() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    let path = format!("/v1/streams/{id}/events?from=tail");
    let mut tail = gateway.view(&path).await;
    tail.until("\n\n").await;
    let first = tail.events().remove(0);
    assert_eq!(first.id, Some(0));
    let json = first.json();
    assert_eq!(
        (&json["choices"], &json["unbraid"]),
        (&json!([]), &json!({ "position": 0 }))
    );
    let mut resumed = Reader::new(send(gateway.get(&path).header("last-event-id", "0")).await);
    let path = format!("/v1/streams/{id}/events?from=tail&after=0");
    let mut queried = gateway.view(&path).await;
    gate.add_permits(9);
    let all = post.rest().await;
    assert_eq!(resumed.rest().await, all);
    assert_eq!(queried.rest().await, all);
    assert_eq!(tail.rest().await[1..], all);
    // No number is not a position.
    let path = format!("/v1/streams/{id}/events?from=tail&after=");
    assert_eq!(send(gateway.get(&path)).await.status(), 400);
}

#[tokio::test]
async fn the_error_of_a_parameter_names_it() {
    let (_upstream, gateway, id) = finished().await;
    for (query, param) in [
        ("from=end", "from"),
        ("stream=1", "stream"),
        ("part=text", "part"),
        ("index=0", "index"),
    ] {
        let path = format!("/v1/streams/{id}/choices/0?{query}");
        let response = send(gateway.get(&path)).await;
        assert_eq!(response.status(), 400, "{query}");
        let body: Value = response.value().await;
        assert_eq!(body["error"]["code"], "invalid_parameter", "{query}");
        assert_eq!(body["error"]["param"], param, "{query}");
    }
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let (_upstream, gateway, id) = finished().await;
    for view in ["", "/events", "/choices/0"] {
        let path = format!("/v1/streams/{id}{view}");
        let head = send(gateway.method("HEAD".parse().unwrap(), &path)).await;
        let get = send(gateway.get(&path)).await;
        assert_eq!(head.status(), 200);
        assert_eq!(
            head.headers()["content-type"],
            get.headers()["content-type"]
        );
        let length =
            |response: &reqwest::Response| response.headers().get("content-length").cloned();
        assert_eq!(length(&head), length(&get), "{view}");
        assert!(head.bytes().await.unwrap().is_empty());
    }
    assert_eq!(gateway.metric("unbraid_readers{view=\"combined\"}"), 0.0);
}

#[tokio::test]
async fn a_204_has_no_content_length_whatever_the_method_and_the_version() {
    use tower_service::Service;

    let (_upstream, gateway, id) = finished().await;
    let last = gateway.status(&id).await["seq"].as_u64().unwrap();
    let complete = format!("/v1/streams/{id}/events?after={last}");
    let erased = format!("/v1/streams/{id}");
    let mut service = gateway.gateway.service();
    for (method, path) in [("GET", &complete), ("HEAD", &complete), ("DELETE", &erased)] {
        let sent = send(gateway.method(method.parse().unwrap(), path)).await;
        assert_eq!(sent.status(), 204, "{method}");
        assert!(!sent.headers().contains_key("content-length"), "{method}");
        // What is sent over HTTP/2, which has no rules of its own for these headers.
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("host", "localhost");
        let answer = service.call(request.body(axum::body::Body::empty()).unwrap());
        let answer = answer.await.unwrap();
        let is_erased = answer.status() == 410;
        assert!(is_erased || answer.status() == 204, "{method}");
        assert!(is_erased || !answer.headers().contains_key("content-length"));
    }
}

#[tokio::test]
async fn unknown_streams_and_choices_are_404() {
    let (_upstream, gateway, id) = finished().await;
    for path in [
        "choices/2",
        "choices/x",
        "choices/-1",
        "choices/+1",
        "choices/0001",
        "choices/00",
        "choices/99999999999",
    ] {
        let response = send(gateway.get(&format!("/v1/streams/{id}/{path}"))).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(error_code(response).await, "choice_not_found");
    }
    for id in ["AAAAAAAAAAAAAAAAAAAAAA", "short", "..", "%2e%2e%2fetc"] {
        let response = send(gateway.get(&format!("/v1/streams/{id}"))).await;
        assert_eq!(response.status(), 404, "{id}");
    }
}

#[tokio::test]
async fn a_choice_that_has_not_appeared_is_waited_for() {
    let (upstream, gate) = gated(events()).await;
    let gateway = start(&upstream).await;
    let (id, _post) = gateway.create(2).await;
    gate.add_permits(1);
    let mut view = gateway.view(&format!("/v1/streams/{id}/choices/1")).await;
    gate.add_permits(9);
    assert_eq!(view.rest().await[0].text(), "x");
}

#[tokio::test]
async fn an_expired_stream_is_410() {
    let upstream = Upstream::steps(stream_of(&events())).await;
    let ttl = Duration::from_millis(100);
    let gateway = start_with(&upstream, |builder| builder.ttl(ttl)).await;
    let (id, mut post) = gateway.create(2).await;
    post.rest().await;
    let status = gateway.ended(&id).await;
    assert!(status["expires"].is_u64());
    tokio::time::sleep(ttl * 2).await;
    for path in ["", "/events", "/choices/0"] {
        let response = send(gateway.get(&format!("/v1/streams/{id}{path}"))).await;
        assert_eq!(response.status(), 410);
        assert_eq!(error_code(response).await, "stream_expired");
    }
}
