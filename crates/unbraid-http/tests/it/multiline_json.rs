//! Bodies whose JSON values have several lines, at every cut.

use serde_json::{Value, json};
use unbraid_testkit::{cut, script::Script};

use crate::{
    responses::{request, texts},
    server::{self, Server},
};

/// The chunks of two choices that finish.
fn chunks() -> Vec<Value> {
    let entry = |index: u32, text: &str, reason: Value| json!({ "id": "c", "choices": [{ "index": index, "delta": { "content": text }, "finish_reason": reason }] });
    vec![
        entry(0, "o", Value::Null),
        entry(1, "two", Value::Null),
        entry(0, "ne", Value::Null),
        entry(1, "", "stop".into()),
        entry(0, "", "stop".into()),
    ]
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// The body contains both choices, read at once and byte by byte, over HTTP/1.1 and HTTP/2.
async fn check(kind: &'static str, body: &str) {
    for http2 in [false, true] {
        let bytes = body.as_bytes().to_vec();
        let server = Server::start(move |request| {
            let mut reply = match request {
                0 => server::full(200, kind, bytes.clone()),
                _ => server::stream(Script::of(cut::bytewise(&bytes))),
            };
            let headers = reply.headers_mut();
            headers.insert("content-type", kind.parse().unwrap());
            reply
        })
        .await;
        let client = server.builder().http2_prior_knowledge(http2);
        let client = client.build().unwrap();
        for _ in 0..2 {
            let completions = client.send(&request()).await.unwrap();
            assert_eq!(texts(&completions).await, ["one", "two"], "{body}");
            completions.closed().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_sequence_of_multiline_values_is_a_stream() {
    let values: Vec<String> = chunks().iter().map(pretty).collect();
    for between in ["\n", "\n\n", "\r\n"] {
        check("application/json", &values.join(between)).await;
    }
}

#[tokio::test]
async fn an_array_of_multiline_values_is_a_stream() {
    check("application/json", &pretty(&chunks().into())).await;
}

#[tokio::test]
async fn events_with_multiline_data_are_a_stream() {
    let event = |value: &Value| {
        let lines: Vec<String> = pretty(value)
            .lines()
            .map(|line| format!("data: {line}\n"))
            .collect();
        lines.concat() + "\n"
    };
    let events: String = chunks().iter().map(event).collect();
    check("text/event-stream", &(events + "data: [DONE]\n\n")).await;
}

#[tokio::test]
async fn a_multiline_response_that_is_not_streamed_is_read() {
    let choice = |index: u32, text: &str| json!({ "index": index, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    let choices = [choice(0, "one"), choice(1, "two")];
    let response = json!({ "object": "chat.completion", "choices": choices });
    check("application/json", &pretty(&response)).await;
}
