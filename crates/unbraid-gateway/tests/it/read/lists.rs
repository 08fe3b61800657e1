//! Lists that arrive as objects.

use serde_json::{Value, json};

use crate::support::{Json, Upstream, request, send, start, stream_of};

/// PHP and Lua write lists as objects with positions (E22).
#[tokio::test]
async fn choices_and_calls_in_an_object_are_read_like_those_in_a_list() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let delta = json!({"content": "a", "tool_calls": {"0": call("x"), "1": call("y")}});
    let events = [
        json!({"choices": {"1": {"index": 1, "delta": {"content": "b"}}, "0": {"index": 0, "delta": delta}}}),
        json!({"choices": {"0": {"index": 0, "delta": {}, "finish_reason": "stop"}}}),
        json!({"choices": {"0": {"index": 1, "delta": {}, "finish_reason": "stop"}}}),
    ];
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    let upstream = Upstream::steps(stream_of(&events)).await;
    let gateway = start(&upstream).await;
    let post = gateway.post(request(2)).header("prefer", "respond-async");
    let status: Value = send(post).await.value().await;
    let id = status["id"].as_str().unwrap();
    assert_eq!(gateway.ended(id).await["end"], "finished");
    let events = gateway
        .view(&format!("/v1/streams/{id}/choices/1"))
        .await
        .rest()
        .await;
    assert_eq!(events[0].text(), "b");
    assert_eq!(events[0].json()["choices"].as_array().unwrap().len(), 1);
    let path = format!("/v1/streams/{id}/events?stream=false");
    let whole: Value = send(gateway.get(&path)).await.value().await;
    assert_eq!(whole["choices"][0]["message"]["content"], "a");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert_eq!(whole["choices"][0]["message"]["tool_calls"][1]["id"], "y");
    assert_eq!(whole["choices"][1]["message"]["content"], "b");
    let part = format!("/v1/streams/{id}/choices/0?part=tool_calls.1");
    let events = gateway.view(&part).await.rest().await;
    let calls = &events[0].json()["choices"][0]["delta"]["tool_calls"];
    assert_eq!(
        (calls[0]["id"].as_str(), calls.as_array().unwrap().len()),
        (Some("y"), 1)
    );
}
