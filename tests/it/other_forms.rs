//! What gateways, and other servers of a dialect, write in other forms than its provider: a text in place of a list of parts
//! (C11), a reason in another place or none in words, and more entries than an event may have.

use serde_json::{Value, json};
use unbraid_core::{Config, Demux};

fn read(values: &[Value]) -> Demux {
    let mut demux = Demux::new(Config::default());
    match values {
        [body] => demux.feed(body.to_string().as_bytes()),
        _ => {
            for value in values {
                demux.feed(format!("data: {value}\n\n").as_bytes());
            }
        }
    }
    demux.finish();
    demux
}

/// The content, the reasoning and the end of the only choice.
fn facts(values: &[Value]) -> (String, String, &'static str) {
    let demux = read(values);
    let outcome = demux.choices().next().and_then(|choice| choice.outcome());
    let outcome = outcome.unwrap_or_else(|| panic!("{values:?}"));
    let message = outcome.message;
    (message.content, message.reasoning, outcome.end.as_str())
}

#[test]
fn c11_a_text_in_place_of_its_only_part_is_read_in_every_dialect() {
    let response = |output: Value| json!({ "object": "response", "id": "r", "status": "completed", "output": [output] });
    let rows = [
        response(json!({ "type": "message", "role": "assistant", "content": "Hello" })),
        response(json!({ "type": "message", "content": [{ "type": "text", "text": "Hello" }] })),
        json!({ "id": "m", "type": "message", "role": "assistant", "content": "Hello", "stop_reason": "end_turn" }),
        json!({ "id": "m", "type": "message", "role": "assistant", "content": ["Hel", "lo"], "stop_reason": "end_turn" }),
        response(json!({ "type": "message", "content": ["Hel", "lo"] })),
        json!({ "candidates": [{ "content": { "parts": ["Hel", "lo"] }, "finishReason": "STOP" }] }),
        json!({ "output": { "message": { "role": "assistant", "content": ["Hel", "lo"] } }, "stopReason": "end_turn" }),
        json!({ "model": "m", "created_at": "2026-01-01T00:00:00Z", "message": { "role": "assistant", "content": ["Hel", "lo"] }, "done": true, "done_reason": "stop" }),
        json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": ["Hel", "lo"] }, "finish_reason": "stop" }] }),
        json!({ "output": { "message": { "role": "assistant", "content": "Hello" } }, "stopReason": "end_turn" }),
        json!({ "candidates": [{ "content": { "parts": "Hello" }, "finishReason": "STOP" }] }),
        json!({ "candidates": [{ "content": "Hello", "finishReason": "STOP" }] }),
        json!({ "model": "m", "created_at": "2026-01-01T00:00:00Z", "message": { "role": "assistant", "content": [{ "type": "text", "text": "Hello" }] }, "done": true, "done_reason": "stop" }),
    ];
    for body in rows {
        let expected = ("Hello".to_owned(), String::new(), "finished");
        assert_eq!(facts(std::slice::from_ref(&body)), expected, "{body}");
    }
    let reasoning = response(json!({ "type": "reasoning", "summary": "Hm" }));
    assert_eq!(facts(&[reasoning]).1, "Hm");
}

#[test]
fn c11_a_text_in_place_of_the_parts_of_a_finished_item_counts_once() {
    let key = json!({ "type": "message", "id": "m", "role": "assistant" });
    let whole = |mut item: Value| {
        item["content"] = "Hello".into();
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item })
    };
    let created = json!({ "type": "response.created", "response": { "id": "r" } });
    let delta = json!({ "type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "Hel" });
    let completed =
        json!({ "type": "response.completed", "response": { "id": "r", "status": "completed" } });
    let expected = ("Hello".to_owned(), String::new(), "finished");
    let done = whole(key);
    let streams = [
        vec![created.clone(), done.clone(), completed.clone()],
        vec![created, delta, done, completed],
    ];
    for stream in streams {
        assert_eq!(facts(&stream), expected, "{stream:?}");
    }
}

#[test]
fn a03_the_reason_may_stand_beside_the_delta_of_the_end() {
    let stream = [
        json!({ "type": "message_start", "message": { "id": "m", "role": "assistant", "content": [] } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hi" } }),
        json!({ "type": "message_delta", "stop_reason": "end_turn", "usage": { "output_tokens": 4 } }),
        json!({ "type": "message_stop" }),
    ];
    assert_eq!(facts(&stream), ("Hi".to_owned(), String::new(), "finished"));
    let demux = read(&stream);
    assert_eq!(demux.usage().completion_tokens, Some(4));
    let choice = demux.choices().next().expect("a choice");
    assert!(choice.extra().is_empty(), "{:?}", choice.extra());
}

#[test]
fn f01_the_words_of_languages_for_nothing_are_no_reason() {
    for nothing in [
        json!("None"),
        json!("null"),
        json!(""),
        json!(false),
        json!(null),
    ] {
        let chunk = |text: &str, reason: &Value| json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": reason }] });
        let stream = [
            chunk("A", &nothing),
            chunk("B", &nothing),
            chunk("C", &json!("stop")),
        ];
        let demux = read(&stream);
        let choice = demux.choices().next().expect("a choice");
        assert_eq!(choice.message().content, "ABC");
        let reasons: Vec<&str> = choice
            .finish_reasons()
            .iter()
            .map(|reason| &**reason)
            .collect();
        assert_eq!(reasons, ["stop"], "{nothing}");
        assert!(demux.warnings().is_empty(), "{:?}", demux.warnings());
    }
}

#[test]
fn e11_an_answer_with_too_many_entries_has_its_end() {
    for count in [1100, 5000] {
        let citations: Vec<Value> = (0..count)
            .map(|n| json!({ "type": "url_citation", "url": format!("u{n}") }))
            .collect();
        let part = json!({ "type": "output_text", "text": "Hello", "annotations": citations });
        let item = json!({ "type": "message", "role": "assistant", "content": [part] });
        let response = json!({ "object": "response", "id": "r", "status": "completed", "output": [item], "usage": { "output_tokens": 4 } });
        let blocks: Vec<Value> = (0..count)
            .map(|n| json!({ "type": "text", "text": if n == 0 { "Hello" } else { " " } }))
            .collect();
        let message = json!({ "id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn", "usage": { "output_tokens": 4 } });
        for body in [response, message] {
            let (content, _, end) = facts(std::slice::from_ref(&body));
            assert_eq!((content.trim(), end), ("Hello", "finished"), "{count}");
            let demux = read(&[body]);
            assert!(demux.warnings().iter().any(|warning| warning.code == "E11"));
            assert_eq!(demux.usage().completion_tokens, Some(4), "{count}");
        }
    }
}

#[test]
fn g08_a_text_beside_a_call_in_one_part_is_read_too() {
    let part = json!({ "text": "I look", "functionCall": { "name": "f", "args": { "a": 1 } } });
    let body =
        json!({ "candidates": [{ "content": { "parts": [part] }, "finishReason": "STOP" }] });
    assert_eq!(facts(std::slice::from_ref(&body)).0, "I look");
    let demux = read(&[body]);
    let choice = demux.choices().next().expect("a choice");
    let calls = choice.message().tool_calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].arguments, r#"{"a":1}"#);
}
