//! Answers to single requests that are not one streamed choice.

use serde_json::json;

use crate::support::{Reader, Upstream, json_body, request, send, start};

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
