//! Section 11: upstreams that fail. Every reader ends, with a clear end, and never with a clean `[DONE]` for an answer that was
//! cut.

use std::time::Duration;

use serde_json::json;
use unbraid_gateway::GatewayBuilder;

use crate::support::{
    Event, Reader, Step, TestGateway, Upstream, chunk, finish, request, send, sse, start_with,
};

fn event(data: &str) -> Step {
    Step::Send(format!("data: {data}\n\n"))
}

/// Creates a stream with these steps, and checks how it ends. Returns the events of the combined view.
async fn ends_as(
    steps: Vec<Step>,
    end: &str,
    configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
) -> (TestGateway, String, Vec<Event>) {
    let upstream = Upstream::steps(steps).await;
    let gateway = start_with(&upstream, configure).await;
    let (id, mut post) = gateway.create(2).await;
    let events = post.rest().await;
    assert!(!post.has_failed);
    let status = gateway.ended(&id).await;
    assert_eq!(status["end"], end);
    let again = gateway
        .view(&format!("/v1/streams/{id}/events"))
        .await
        .rest()
        .await;
    assert_eq!(again, events);
    let last = events.last().unwrap();
    if last.data.contains("stream_error") {
        assert_eq!(
            status["error"],
            last.json()["error"],
            "one end has one text"
        );
    }
    let path = format!("/v1/streams/{id}/events");
    let cursor = last.id.unwrap().to_string();
    let response = send(gateway.get(&path).header("last-event-id", cursor)).await;
    assert_eq!(response.status(), 204, "a reconnect stops");
    check_last_numbers(&gateway, &id).await;
    (gateway, id, events)
}

/// The numbers in the status are those with which a client has everything.
async fn check_last_numbers(gateway: &TestGateway, id: &str) {
    let status = gateway.status(id).await;
    let choices = status["choices"].as_array().unwrap().iter();
    let appeared = choices.filter(|choice| choice["seq"] != 0);
    let views = appeared.map(|choice| (&choice["url"], &choice["seq"]));
    for (url, seq) in views.chain([(&status["events_url"], &status["seq"])]) {
        let path = format!("{}?after={seq}", url.as_str().unwrap());
        let response = send(gateway.get(&path)).await;
        assert_eq!(response.status(), 204, "{path}");
    }
}

/// The combined view ends with one error event that has this code.
fn assert_error(events: &[Event], code: &str) {
    let last = events.last().unwrap().json();
    assert_eq!(last["error"]["code"], code);
    assert_eq!(last["error"]["type"], "stream_error");
    assert_eq!(last["error"]["param"], json!(null));
    assert!(events.iter().all(|event| event.data != "[DONE]"));
}

#[tokio::test]
async fn an_upstream_that_is_cut_never_ends_with_a_clean_done() {
    let steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "x")),
        event(&finish(1)),
        Step::Cut,
    ];
    let (gateway, id, events) = ends_as(steps, "transport", |builder| builder).await;
    assert_error(&events, "transport");
    assert_eq!(events.len(), 4);
    let cut = gateway
        .view(&format!("/v1/streams/{id}/choices/0"))
        .await
        .rest()
        .await;
    assert_error(&cut, "transport");
    // The other choice had its finish reason.
    let complete = gateway
        .view(&format!("/v1/streams/{id}/choices/1"))
        .await
        .rest()
        .await;
    assert_eq!(complete.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn an_upstream_that_ends_without_done_is_interrupted() {
    let steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "x")),
        Step::End,
    ];
    let (_gateway, _, events) = ends_as(steps, "interrupted", |builder| builder).await;
    assert_error(&events, "interrupted");
}

#[tokio::test]
async fn half_an_event_is_not_passed_on() {
    let steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "a")),
        Step::Send("data: {\"choices\":[{\"index\":0,\"delta\":{\"con".into()),
        Step::Cut,
    ];
    let (_gateway, _, events) = ends_as(steps, "transport", |builder| builder).await;
    assert_eq!(events.len(), 3);
    assert_error(&events, "transport");
}

#[tokio::test]
async fn an_upstream_that_stalls_times_out() {
    let steps = vec![sse(), event(&chunk(0, "a")), Step::Hang];
    let timeout = Duration::from_millis(200);
    let (_gateway, _, events) = ends_as(steps, "timed_out", |b| b.idle_timeout(timeout)).await;
    assert_error(&events, "timed_out");
}

#[tokio::test]
async fn an_upstream_that_is_silent_after_its_head_times_out() {
    let timeout = Duration::from_millis(200);
    let steps = vec![sse(), Step::Hang];
    let (_gateway, _, events) = ends_as(steps, "timed_out", |b| b.idle_timeout(timeout)).await;
    assert_eq!(events.len(), 1);
    assert_error(&events, "timed_out");
}

#[tokio::test]
async fn an_error_event_of_the_upstream_is_passed_on_unchanged_and_is_the_last_event() {
    let error = r#"{"error":{"message":"overloaded","code":503}}"#;
    let steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(error),
        event(&chunk(0, "b")),
        event("[DONE]"),
        Step::End,
    ];
    let (gateway, id, events) = ends_as(steps, "server_error", |builder| builder).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].data, error);
    let choice = gateway
        .view(&format!("/v1/streams/{id}/choices/0"))
        .await
        .rest()
        .await;
    assert!(choice.last().unwrap().json()["error"].is_object());
    // For a client that only polls.
    let reported = &gateway.status(&id).await["error"];
    assert_eq!(
        (&reported["message"], &reported["code"]),
        (&json!("overloaded"), &json!("server_error"))
    );
}

#[tokio::test]
async fn done_without_a_finish_reason_is_done() {
    let steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "a")),
        event("[DONE]"),
        Step::End,
    ];
    let (_gateway, _, events) = ends_as(steps, "done_without_finish", |builder| builder).await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn an_empty_stream_is_interrupted_and_one_with_only_done_is_done() {
    let (_gateway, _, events) = ends_as(vec![sse(), Step::End], "interrupted", |b| b).await;
    assert_error(&events, "interrupted");
    let steps = vec![sse(), event("[DONE]"), Step::End];
    let (_gateway, _, events) = ends_as(steps, "done_without_finish", |b| b).await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn a_stream_of_a_gibibyte_ends_at_its_limit() {
    let part = event(&chunk(0, &"x".repeat(64 * 1024)));
    let mut steps = vec![sse()];
    steps.extend(std::iter::repeat_n(part, 200));
    steps.push(Step::Hang);
    let (gateway, _, events) =
        ends_as(steps, "limit_exceeded", |b| b.max_stream_bytes(1 << 20)).await;
    assert_error(&events, "limit_exceeded");
    assert!(events.len() < 40, "{}", events.len());
    assert!(gateway.metric("unbraid_log_bytes") < 4e6);
}

/// Usage at the end of a body is held back, because it may have to be summed.
#[tokio::test]
async fn usage_without_end_ends_the_stream_at_its_limit() {
    let usage = r#"{"choices":[],"usage":{"total_tokens":1}}"#;
    let many = format!("data: {usage}\n\n").repeat(1000);
    let mut steps = vec![sse(), event(&chunk(0, "a"))];
    steps.extend(std::iter::repeat_n(Step::Send(many), 100));
    steps.push(Step::Hang);
    let (_gateway, _, events) =
        ends_as(steps, "limit_exceeded", |b| b.max_stream_bytes(1 << 20)).await;
    assert_error(&events, "limit_exceeded");
}

#[tokio::test]
async fn one_event_of_40_mib_ends_the_stream_at_its_limit() {
    let mut steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "b")),
        Step::Send("data: {\"a\":\"".into()),
    ];
    steps.extend(std::iter::repeat_n(Step::Bytes(vec![b'x'; 1 << 20]), 40));
    steps.push(Step::Send("\"}\n\n".into()));
    steps.push(Step::End);
    let (_gateway, _, events) = ends_as(steps, "limit_exceeded", |builder| builder).await;
    assert_eq!(events.len(), 3);
    assert_error(&events, "limit_exceeded");
}

#[tokio::test]
async fn an_event_of_several_mib_arrives_whole() {
    let long = chunk(0, &"y".repeat(3 << 20));
    let steps = vec![
        sse(),
        event(&long),
        event(&finish(0)),
        event(&chunk(1, "b")),
        event("[DONE]"),
        Step::End,
    ];
    let (gateway, id, events) = ends_as(steps, "done_without_finish", |builder| builder).await;
    assert_eq!(events[0].data, long);
    let choice = gateway
        .view(&format!("/v1/streams/{id}/choices/0"))
        .await
        .rest()
        .await;
    assert_eq!(choice[0].data, long);
}

#[tokio::test]
async fn an_aggregate_of_an_answer_that_was_cut_is_an_error() {
    let upstream = Upstream::steps(vec![sse(), event(&chunk(0, "a")), Step::Cut]).await;
    let gateway = start_with(&upstream, |builder| builder).await;
    let post = gateway
        .post(r#"{"model":"m"}"#)
        .header("x-stream-durability", "replay");
    let response = send(post).await;
    assert_eq!(response.status(), 502);
    assert_eq!(crate::create::error_code(response).await, "transport");
}

/// An upstream whose body stalls before a generation reads it, and whose request must not hang.
async fn check_stalled_body(head: (u16, &str), sends: &[&str]) {
    let mut steps = vec![Step::Head(head.0, vec![("content-type", head.1.into())])];
    steps.extend(sends.iter().map(|text| Step::Send((*text).into())));
    steps.push(Step::Hang);
    let upstream = Upstream::steps(steps).await;
    let timeout = Duration::from_millis(200);
    let gateway = start_with(&upstream, |builder| builder.idle_timeout(timeout)).await;
    let whole = request(2).replace("\"stream\":true", "\"stream\":false");
    let post = gateway.post(whole).header("idempotency-key", "k");
    let response = send(post).await;
    assert_eq!(response.status(), 504, "{head:?}");
    let code = crate::create::error_code(response).await;
    assert_eq!(code, "upstream_timeout");
    let post = gateway.post(request(2)).header("prefer", "respond-async");
    let response = send(post).await;
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let status = gateway.ended(&id).await;
    assert_eq!(status["end"], "refused", "{status}");
    assert_eq!(status["error"]["status"], 504, "{status}");
    crate::support::eventually("the upstream is closed", async || upstream.closed() == 2).await;
}

#[tokio::test]
async fn a_refusal_whose_body_stalls_is_504_and_frees_its_key() {
    check_stalled_body((500, "application/json"), &["{\"error\":"]).await;
}

#[tokio::test]
async fn a_whole_answer_that_stalls_is_504() {
    check_stalled_body((200, "application/json"), &["{\"choices\":"]).await;
}

#[tokio::test]
async fn an_answer_that_stalls_before_its_first_byte_is_504() {
    check_stalled_body((200, "text/plain"), &[]).await;
}

#[tokio::test]
async fn an_unkept_answer_that_was_cut_is_cut() {
    let upstream = Upstream::steps(vec![
        Step::Head(200, vec![("content-type", "application/json".into())]),
        Step::Send("{\"choices\":".into()),
        Step::Cut,
    ])
    .await;
    let gateway = start_with(&upstream, |builder| builder).await;
    let response = send(gateway.post(r#"{"model":"m"}"#)).await;
    assert!(response.bytes().await.is_err());
    let mut live = Reader::new(
        send(
            gateway
                .post(request(1))
                .header("x-stream-durability", "live"),
        )
        .await,
    );
    while !live.is_over {
        live.rest_or_cut().await;
    }
    assert!(live.has_failed);
}
