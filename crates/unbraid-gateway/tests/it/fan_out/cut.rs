//! A first answer that says nothing about `n`: it was cut, or its choice was cancelled before it arrived.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;

use super::{by_choice, one_choice};
use crate::support::{
    Reader, Step, Upstream, chunk, eventually, finish, json_body, request, send, sse, start,
    stream_of,
};

/// A proxy whose backend dies may end the body as if it were complete.
#[tokio::test]
async fn an_answer_that_ends_in_the_middle_is_neither_completed_nor_complete() {
    let upstream = Upstream::script(|seen, ordinal| match ordinal {
        0 => {
            let text = format!("data: {}\n\n", chunk(0, "half"));
            vec![sse(), Step::Send(text), Step::End]
        }
        _ => {
            assert_eq!(seen.json()["n"], 3, "the model is not remembered");
            let mut events: Vec<_> = (0..3).map(finish).collect();
            events.push("[DONE]".to_owned());
            stream_of(&events)
        }
    })
    .await;
    let gateway = start(&upstream).await;
    let mut reader = Reader::new(send(gateway.post(request(3))).await);
    let events = reader.rest().await;
    assert_eq!(by_choice(&events), [(0, "half".to_owned())]);
    assert!(!reader.text.contains("[DONE]"), "{}", reader.text);
    let error = &events.last().unwrap().json()["error"];
    assert_eq!(error["code"], "interrupted", "{}", reader.text);
    let id = reader.header("x-stream-id").unwrap().to_owned();
    assert_eq!(gateway.ended(&id).await["end"], "interrupted");
    assert_eq!(upstream.seen().len(), 1);
    Reader::new(send(gateway.post(request(3))).await)
        .rest()
        .await;
    assert_eq!(upstream.seen().len(), 2);
}

/// Its own delta counts, although it is dropped.
#[tokio::test]
async fn a_first_choice_that_was_cancelled_before_it_arrived_does_not_take_the_others_with_it() {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = Upstream::script({
        let gate = Arc::clone(&gate);
        move |seen, ordinal| {
            let mut steps = one_choice(seen, ordinal);
            if ordinal == 0 {
                steps.insert(0, Step::Gate(Arc::clone(&gate)));
            }
            steps
        }
    })
    .await;
    let gateway = start(&upstream).await;
    let post = gateway.post(request(3)).header("prefer", "respond-async");
    let created = send(post).await;
    let id = created.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    eventually("the request is sent", async || upstream.seen().len() == 1).await;
    let path = format!("/v1/streams/{id}/choices/0");
    let cancelled = send(gateway.method("DELETE".parse().unwrap(), &path)).await;
    assert!(cancelled.status().is_success(), "{}", cancelled.status());
    gate.add_permits(1);
    let status = gateway.ended(&id).await;
    let ends: Vec<_> = (0..3)
        .map(|index| &status["choices"][index]["end"])
        .collect();
    assert_eq!(ends, ["cancelled", "finished", "finished"], "{status}");
    assert_eq!(upstream.seen().len(), 3);
}

/// The usage of the first answer is only a part of the sum.
#[tokio::test]
async fn the_usage_of_a_whole_answer_is_summed_once() {
    let upstream = Upstream::script(|_, _| {
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5});
        let whole = json!({"id": "w", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage});
        json_body(200, &whole.to_string())
    })
    .await;
    for (asks, expected) in [(true, vec![15]), (false, vec![])] {
        let gateway = start(&upstream).await;
        let body = json!({"model": "m", "n": 3, "stream": true, "stream_options": {"include_usage": asks}});
        let mut reader = Reader::new(send(gateway.post(body.to_string())).await);
        let events = reader.rest().await;
        assert_eq!(events.last().unwrap().data, "[DONE]");
        let chunks = events[..events.len() - 1].iter().map(|event| event.json());
        let totals: Vec<_> = chunks
            .filter_map(|chunk| chunk["usage"]["total_tokens"].as_u64())
            .collect();
        assert_eq!(totals, expected, "{}", reader.text);
    }
}
