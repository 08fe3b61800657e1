//! What a stream of another provider than OpenAI must not lose, duplicate or keep without an end.

use futures::{TryStreamExt, stream};
use serde_json::{Value, json};
use unbraid::Updates;
use unbraid_core::{Config, Demux, Dialect};

use crate::support::demux;

/// The stream of these values as events.
fn events(values: &[Value]) -> String {
    values
        .iter()
        .map(|value| format!("data: {value}\n\n"))
        .collect()
}

fn read(values: &[Value]) -> Demux {
    demux([events(values).as_bytes()], Config::default()).0
}

fn anthropic_start() -> Value {
    json!({ "type": "message_start", "message": { "id": "m", "role": "assistant", "content": [] } })
}

fn has_warning(demux: &Demux, code: &str) -> bool {
    demux.warnings().iter().any(|warning| warning.code == code)
}

#[test]
fn p10_a_call_whose_id_comes_after_its_name_is_one_call() {
    let item =
        json!({ "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}" });
    let demux = read(&[
        json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"a\":1}" }),
        json!({ "type": "response.function_call_arguments.done", "output_index": 0, "name": "f", "arguments": "{\"a\":1}" }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "status": "completed", "output": [item] } }),
    ]);
    let message = demux.choices().next().expect("a choice").message();
    let calls: Vec<_> = message.tool_calls.iter().collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (
            calls[0].id.as_deref(),
            &*calls[0].name,
            &*calls[0].arguments
        ),
        (Some("c1"), "f", "{\"a\":1}")
    );
}

#[test]
fn b15_an_error_inside_a_chunk_ends_the_stream() {
    let chunk = |bytes: &str| json!({ "chunk": { "bytes": bytes } });
    // {"generation":"Hi","stop_reason":null}
    let text = chunk("eyJnZW5lcmF0aW9uIjoiSGkiLCJzdG9wX3JlYXNvbiI6bnVsbH0=");
    // {"type":"error","error":{"type":"overloaded_error","message":"busy"}}
    let error = chunk(
        "eyJ0eXBlIjoiZXJyb3IiLCJlcnJvciI6eyJ0eXBlIjoib3ZlcmxvYWRlZF9lcnJvciIsIm1lc3NhZ2UiOiJidXN5In19",
    );
    let damaged = chunk("bm90IGpzb24=");
    let config = || Config::default().with_dialect(Some(Dialect::Bedrock));
    let stream = events(&[text.clone(), error]);
    let (failed, _) = demux([stream.as_bytes()], config());
    let choice = failed.choices().next().expect("a choice");
    assert_eq!(choice.message().content, "Hi");
    assert_eq!(choice.end().expect("an end").as_str(), "server_error");

    let stream = events(&[text.clone(), damaged, text]);
    let (read, _) = demux([stream.as_bytes()], config());
    assert!(has_warning(&read, "X13"));
    assert_eq!(
        read.choices().next().expect("a choice").message().content,
        "HiHi"
    );
}

#[test]
fn d03_a_ping_before_chat_in_one_array_decides_nothing() {
    let stream = r#"data: [{"type":"ping"},{"choices":[{"index":0,"delta":{"content":"Hi"}}]}]"#;
    let (read, _) = demux([format!("{stream}\n\n").as_bytes()], Config::default());
    assert_eq!(
        read.choices().next().expect("a choice").message().content,
        "Hi"
    );
}

#[test]
fn a05_an_empty_piece_replaces_no_input_of_the_start() {
    let demux = read(&[
        anthropic_start(),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "server_tool_use", "id": "s", "name": "web_search", "input": { "query": "rust" } } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_stop" }),
    ]);
    let message = demux.choices().next().expect("a choice").message();
    let (_, parts) = message
        .extra
        .iter()
        .find(|(key, _)| **key == *"content_parts")
        .expect("kept");
    let parts: Value = serde_json::from_str(parts).expect("JSON");
    assert_eq!(parts[0]["input"], json!({ "query": "rust" }));
}

#[test]
fn a07_whole_arguments_are_kept_if_the_body_ends_early() {
    let demux = read(&[
        anthropic_start(),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "t", "name": "f", "input": { "a": 1 } } }),
    ]);
    let choice = demux.choices().next().expect("a choice");
    assert_eq!(choice.end().expect("an end").as_str(), "interrupted");
    assert_eq!(choice.message().tool_calls[0].arguments, "{\"a\":1}");
}

#[test]
fn d16_blocks_that_only_start_are_kept_up_to_a_limit() {
    let start = |index: u32| json!({ "type": "content_block_start", "index": index, "content_block": { "type": "server_tool_use", "input": { "q": "x".repeat(1 << 20) } } });
    let mut demux = Demux::new(Config::default());
    demux.feed(events(&[anthropic_start()]).as_bytes());
    for index in 0..40 {
        demux.feed(events(&[start(index)]).as_bytes());
    }
    assert!(has_warning(&demux, "D16"));
}

#[test]
fn d16_metadata_of_many_candidates_is_kept_up_to_a_limit() {
    let mut demux = Demux::new(Config::default());
    for index in 0..40 {
        let metadata = json!({ "webSearchQueries": ["x".repeat(1 << 20)] });
        let candidate = json!({ "index": index, "content": { "parts": [{ "text": "a" }] }, "groundingMetadata": metadata });
        demux.feed(events(&[json!({ "candidates": [candidate] })]).as_bytes());
    }
    assert!(has_warning(&demux, "D16"));
}

#[test]
fn d06_values_of_another_format_are_one_warning() {
    let mut values = vec![anthropic_start()];
    values
        .extend((0..100).map(
            |n| json!({ "choices": [{ "index": 0, "delta": { "content": n.to_string() } }] }),
        ));
    let demux = read(&values);
    let warnings = demux.warnings();
    let foreign = warnings.iter().filter(|warning| warning.code == "D6");
    assert_eq!(foreign.count(), 1);
}

#[tokio::test]
async fn fields_that_do_not_change_are_reported_once() {
    let line = |text: &str| {
        json!({
            "model": "m",
            "created_at": "2026-11-22T00:00:00Z",
            "remote_model": "x",
            "message": { "role": "assistant", "content": text },
            "done": false,
        })
    };
    let body: String = ["a", "b", "c"]
        .map(|text| format!("{}\n", line(text)))
        .concat();
    let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    let updates: Vec<_> = Updates::from_byte_stream(bytes)
        .try_collect()
        .await
        .expect("a stream");
    let fields = updates.iter().flat_map(|update| &update.metadata);
    let repeated = fields.filter(|(key, _)| key == "remote_model");
    assert_eq!(repeated.count(), 1);
}

fn chat_chunk(text: &str) -> Value {
    json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": { "content": text } }] })
}

/// A stream of each dialect that has begun to answer, and what its values look like.
fn begun() -> [(Dialect, Vec<Value>); 7] {
    [
        (Dialect::Chat, vec![chat_chunk("Hi")]),
        (
            Dialect::Anthropic,
            vec![
                anthropic_start(),
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hi" } }),
            ],
        ),
        (
            Dialect::Responses,
            vec![
                json!({ "type": "response.created", "response": { "id": "r", "status": "in_progress", "output": [] } }),
                json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi" }),
            ],
        ),
        (
            Dialect::Gemini,
            vec![json!({ "candidates": [{ "content": { "parts": [{ "text": "Hi" }] } }] })],
        ),
        (
            Dialect::Ollama,
            vec![json!({ "message": { "role": "assistant", "content": "Hi" }, "done": false })],
        ),
        (
            Dialect::Cohere,
            vec![
                json!({ "type": "message-start", "delta": { "message": { "role": "assistant" } } }),
                json!({ "type": "content-delta", "index": 0, "delta": { "message": { "content": { "text": "Hi" } } } }),
            ],
        ),
        (
            Dialect::Bedrock,
            vec![
                json!({ "messageStart": { "role": "assistant" } }),
                json!({ "contentBlockDelta": { "contentBlockIndex": 0, "delta": { "text": "Hi" } } }),
            ],
        ),
    ]
}

#[test]
fn x07_x08_the_errors_of_gateways_end_a_stream_of_any_dialect() {
    let errors = [
        json!({ "base_resp": { "status_code": 1002, "status_msg": "busy" } }),
        json!({ "detail": "boom" }),
        json!({ "error_type": "busy", "error_message": "boom", "choices": null }),
        json!({ "code": 1234, "msg": "boom" }),
        json!({ "code": "1234", "message": "boom" }),
        json!({ "success": false, "reason": "boom" }),
        json!({ "object": "error", "message": "boom" }),
        json!({ "type": "BadRequestError", "message": "boom", "code": 400 }),
        json!({ "choices": [], "detail": "boom" }),
    ];
    for (dialect, values) in begun() {
        for error in &errors {
            let mut values = values.clone();
            values.push(error.clone());
            let demux = read(&values);
            let choice = demux.choices().next().expect("a choice");
            let end = choice.end().map(|end| end.as_str());
            assert_eq!(end, Some("server_error"), "{dialect:?} {error}");
            assert_eq!(choice.message().content, "Hi");
        }
    }
}

#[test]
fn x07_no_value_of_a_dialect_is_an_error_for_its_fields() {
    let harmless = [
        json!({ "detail": null, "error_message": "", "code": 0, "msg": "ok" }),
        json!({ "base_resp": { "status_code": 0 }, "success": true }),
        json!({ "type": "progress", "detail": "half of it", "success": false }),
        json!({ "code": 200, "msg": "success" }),
        json!({ "code": "102", "msg": "processing" }),
    ];
    for (dialect, values) in begun() {
        for value in &harmless {
            let mut values = values.clone();
            values.push(value.clone());
            let demux = read(&values);
            let choice = demux.choices().next().expect("a choice");
            let end = choice.end().map(|end| end.as_str());
            assert_eq!(end, Some("interrupted"), "{dialect:?} {value}");
        }
        // The name of the event says what it is.
        for name in ["ping", "progress"] {
            let event = format!("event: {name}\ndata: {{\"detail\":\"position 3\"}}\n\n");
            let stream = events(&values) + &event;
            let (read, _) = demux([stream.as_bytes()], Config::default());
            let choice = read.choices().next().expect("a choice");
            let end = choice.end().map(|end| end.as_str());
            assert_eq!(end, Some("interrupted"), "{dialect:?} {name}");
        }
        // The field is beside what the value says.
        let mut with_detail = values.clone();
        let last = with_detail.last_mut().and_then(Value::as_object_mut);
        last.expect("an object").insert("detail".into(), json!("x"));
        let demux = read(&with_detail);
        let choice = demux.choices().next().expect("a choice");
        assert_eq!(choice.message().content, "Hi", "{dialect:?}");
    }
}

#[test]
fn o09_the_first_line_may_be_no_json_where_the_dialect_is_known() {
    let lines = "{\"message\":{\"content\":\"Hi\"},\"done\":false}\r\n\
                 {\"message\":{\"content\":\" you\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    let config = || Config::default().with_dialect(Some(Dialect::Ollama));
    for first in [
        "oops\n",
        "  oops\r\n",
        "\n\noops: x\n",
        "data\n",
        "\u{feff}oops\r",
    ] {
        let body = format!("{first}{lines}");
        for cut in 0..body.len() {
            let (head, tail) = body.as_bytes().split_at(cut);
            let (read, _) = demux([head, tail], config());
            let choice = read.choices().next().expect("a choice");
            assert_eq!(choice.message().content, "Hi you", "{first:?} {cut}");
            assert!(has_warning(&read, "X13"), "{first:?} {cut}");
        }
    }
    // An event stream begins with one of its fields.
    let values = [json!({ "message": { "content": "Hi" }, "done": true, "done_reason": "stop" })];
    for first in [": comment\n\n", "event: x\n", ""] {
        let body = format!("{first}{}", events(&values));
        let (read, _) = demux([body.as_bytes()], config());
        let choice = read.choices().next().expect("a choice");
        assert_eq!(choice.message().content, "Hi", "{first:?}");
        assert!(read.warnings().is_empty(), "{first:?}");
    }
}

#[test]
fn d06_a_chat_keeps_nothing_of_another_dialect() {
    for (dialect, values) in begun().into_iter().skip(1) {
        let mut mixed = vec![chat_chunk("a")];
        mixed.extend(values);
        mixed.push(chat_chunk("b"));
        let demux = read(&mixed);
        let choice = demux.choices().next().expect("a choice");
        assert_eq!(choice.message().content, "ab", "{dialect:?}");
        let codes: Vec<_> = demux.warnings().iter().map(|w| w.code).collect();
        assert_eq!(codes, ["D6"], "{dialect:?}");
        assert!(demux.metadata().extra.is_empty(), "{dialect:?}");
        assert_eq!(demux.metadata().model.as_deref(), Some("m"));
    }
}

#[test]
fn d04_a_chat_keeps_its_usage_whatever_a_gateway_adds_to_it() {
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 });
    for value in [
        json!({ "usage": usage }),
        json!({ "done": true, "usage": usage }),
        json!({ "id": "c", "usage": usage, "usageMetadata": { "promptTokenCount": 5 } }),
        json!({ "object": "chat.completion.chunk", "usage": usage, "created_at": "x", "response": "" }),
    ] {
        for name in ["", "event: message_stop\n"] {
            let stream = format!("{}{name}data: {value}\n\n", events(&[chat_chunk("Hi")]));
            let (read, _) = demux([stream.as_bytes()], Config::default());
            assert_eq!(read.usage().total_tokens, Some(7), "{name} {value}");
            assert!(read.warnings().is_empty(), "{name} {value}");
        }
    }
    // The object decides before the first choice, too.
    let demux = read(&[
        json!({ "object": "chat.completion.chunk", "usageMetadata": {}, "created_at": "x", "message": {} }),
        chat_chunk("Hi"),
    ]);
    assert_eq!(demux.metadata().dialect(), Some(Dialect::Chat));
    let choice = demux.choices().next().expect("a choice");
    assert_eq!(choice.message().content, "Hi");
}

#[test]
fn u16_an_image_of_another_choice_comes_between_a_reason_and_its_usage() {
    let chunk = |index: u32, rest: Value| {
        let mut choice = json!({ "index": index, "delta": {} });
        let fields = rest.as_object().expect("an object").clone();
        choice.as_object_mut().expect("an object").extend(fields);
        json!({ "choices": [choice] })
    };
    let finish = |index| chunk(index, json!({ "finish_reason": "stop" }));
    let usage = |tokens: u32| json!({ "choices": [], "usage": { "prompt_tokens": 5, "completion_tokens": tokens } });
    let completion = |between: Value| {
        let values = [
            chunk(0, json!({ "delta": { "content": "a" } })),
            chunk(1, json!({ "delta": { "content": "b" } })),
            finish(0),
            chunk(1, between),
            usage(3),
            finish(1),
            usage(9),
        ];
        read(&values).usage().completion_tokens
    };
    assert_eq!(
        completion(json!({ "delta": { "images": [{ "index": 0 }] } })),
        Some(9)
    );
    assert_eq!(
        completion(json!({ "logprobs": { "content": [{ "token": "b" }] } })),
        Some(9)
    );
    for nothing in [
        json!({}),
        json!({ "delta": { "role": "assistant", "content": "" } }),
        json!({ "delta": { "content": null, "tool_calls": [] }, "finish_reason": null }),
    ] {
        assert_eq!(completion(nothing.clone()), Some(12), "{nothing}");
    }
}

#[test]
fn c20_an_entry_in_place_of_a_list_is_one_of_its_entries() {
    let kept = |values: &[Value]| {
        let chunk = |value| json!({ "choices": [{ "index": 0, "delta": { "content": "a", "annotations": value } }] });
        let chunks: Vec<_> = values.iter().map(chunk).collect();
        let demux = read(&chunks);
        let message = demux.choices().next().expect("a choice").message();
        let mut fields = message.extra.iter();
        let field = fields.find(|(key, _)| **key == *"annotations");
        serde_json::from_str::<Value>(&field.expect("kept").1).expect("JSON")
    };
    let entry = |n: u32| json!({ "n": n });
    assert_eq!(
        kept(&[json!([entry(1)]), entry(2), entry(2)]),
        json!([entry(1), entry(2)])
    );
    assert_eq!(
        kept(&[entry(1), json!([entry(2)])]),
        json!([entry(1), entry(2)])
    );
    assert_eq!(kept(&[entry(1), entry(2)]), entry(2));
    for blank in [
        json!(""),
        json!(0),
        json!(false),
        json!({}),
        json!(null),
        json!([]),
    ] {
        let list = json!([entry(1)]);
        assert_eq!(kept(&[list.clone(), blank.clone()]), list, "{blank}");
        assert_eq!(kept(&[blank.clone(), list.clone()]), list, "{blank}");
        let both = json!([entry(1), entry(2)]);
        assert_eq!(kept(&[list, entry(2), blank.clone()]), both, "{blank}");
    }
}
