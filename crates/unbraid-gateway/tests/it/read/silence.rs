//! Section 9: a choice that has a finish reason ends after a silence, whatever follows.

use std::time::Duration;

use serde_json::Value;

use crate::support::{Event, Json, Step, TestGateway, Upstream, chunk, finish, send, sse, start};

/// Longer than the silence that ends a choice.
const SILENCE: Duration = Duration::from_millis(600);

/// A stream of `n` choices whose choice 0 finishes before a silence, and continues after it. Returns the path of its choice 0.
async fn stream(n: u32, after: &[String]) -> (TestGateway, String) {
    let event = |data: &String| Step::Send(format!("data: {data}\n\n"));
    let mut steps = vec![sse()];
    steps.extend((0..n).map(|index| event(&chunk(index, "Hi"))));
    steps.extend([
        event(&finish(0)),
        Step::Sleep(SILENCE),
        event(&chunk(0, " late")),
    ]);
    steps.extend(after.iter().map(event));
    steps.extend([event(&"[DONE]".to_owned()), Step::End]);
    let upstream = Upstream::steps(steps).await;
    let gateway = start(&upstream).await;
    let (id, mut reader) = gateway.create(n).await;
    reader.rest().await;
    gateway.ended(&id).await;
    (gateway, format!("/v1/streams/{id}/choices/0"))
}

async fn whole(gateway: &TestGateway, path: &str) -> Value {
    let get = gateway.get(&format!("{path}?stream=false"));
    send(get).await.value().await
}

/// The end is decided once, for events and for JSON.
#[tokio::test]
async fn the_json_of_a_choice_ends_where_its_events_end() {
    let (gateway, path) = stream(2, &[finish(1)]).await;
    let events = gateway.view(&path).await.rest().await;
    let text: String = events.iter().map(Event::text).collect();
    let whole = whole(&gateway, &path).await;
    assert_eq!(text, "Hi");
    assert_eq!(whole["choices"][0]["message"]["content"], text);
    let last = events.last().unwrap();
    assert_eq!(whole["unbraid"]["seq"].as_u64(), last.id);
}

/// However late it comes.
#[tokio::test]
async fn the_usage_of_an_only_choice_is_in_its_json() {
    let usage = r#"{"id":"c1","choices":[],"usage":{"total_tokens":7}}"#;
    let (gateway, path) = stream(1, &[usage.to_owned()]).await;
    let whole = whole(&gateway, &path).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "Hi");
    assert_eq!(whole["usage"]["total_tokens"], 7);
}
