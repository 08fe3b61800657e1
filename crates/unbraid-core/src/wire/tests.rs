use serde_json::{Value, json};

use crate::{Audio, CallKind, ChoiceIndex, Config, Demux, Message, ToolCall, Usage};

/// A stream of these chunks, at its end.
fn demux(chunks: &[&str]) -> Demux {
    let mut demux = Demux::new(Config::default());
    for chunk in chunks {
        demux.feed(format!("data: {chunk}\n\n").as_bytes());
    }
    demux.feed(b"data: [DONE]\n\n");
    demux
}

fn message(delta: &str) -> Message {
    let chunk = format!("{{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}");
    let demux = demux(&[&chunk]);
    demux.choice(ChoiceIndex(0)).expect("a choice").message()
}

/// The JSON of a delta's message, which reads back as the same message.
#[track_caller]
fn check(delta: &str, expected: &str) {
    let mut message = message(delta);
    let json = serde_json::to_string(&message).expect("JSON");
    assert_eq!(json, expected);
    let read: Message = serde_json::from_str(&json).expect("a message");
    for call in &mut message.tool_calls {
        (call.status, call.wire_index) = (None, None);
    }
    assert_eq!(read, message);
    assert_eq!(serde_json::to_string(&read).expect("JSON"), json);
}

#[test]
fn a_message_has_only_the_fields_that_arrived() {
    check("{}", r#"{"role":"assistant"}"#);
    check(
        r#"{"content":"Hi","refusal":"no","reasoning":"hm"}"#,
        r#"{"role":"assistant","content":"Hi","refusal":"no","reasoning":"hm"}"#,
    );
}

#[test]
fn unknown_fields_of_a_message_keep_every_digit() {
    check(
        r#"{"content":"Hi","score":1.50,"large":1e400,"list":[1.0]}"#,
        r#"{"role":"assistant","content":"Hi","score":1.50,"large":1e400,"list":[1.0]}"#,
    );
}

#[test]
fn calls_of_every_kind_are_kept() {
    check(
        r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1.50}"},"x":1.0}]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1.50}"},"x":1.0}]}"#,
    );
    check(
        r#"{"tool_calls":[{"index":0,"type":"custom","custom":{"name":"f","input":"text"}}]}"#,
        r#"{"role":"assistant","tool_calls":[{"type":"custom","custom":{"name":"f","input":"text"}}]}"#,
    );
    check(
        r#"{"function_call":{"name":"f","arguments":"{}"}}"#,
        r#"{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}"#,
    );
}

#[test]
fn a_call_reads_back_by_itself() {
    let source = message(
        r#"{"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"id":"c1","function":{"name":"g","arguments":""}}]}"#,
    );
    for call in &source.tool_calls {
        let json = serde_json::to_string(call).expect("JSON");
        let read: ToolCall = serde_json::from_str(&json).expect("a call");
        assert_eq!((read.kind, &read.id), (call.kind, &call.id));
        assert_eq!((&read.name, &read.arguments), (&call.name, &call.arguments));
        assert_eq!(read.status, None);
    }
}

#[test]
fn audio_is_base64_again() {
    check(
        r#"{"audio":{"id":"a1","data":"UklGRg==","transcript":"Hi"}}"#,
        r#"{"role":"assistant","audio":{"id":"a1","data":"UklGRg==","transcript":"Hi"}}"#,
    );
    let json = serde_json::to_string(&Audio::default()).expect("JSON");
    assert_eq!(json, r#"{"data":"","transcript":""}"#);
}

#[test]
fn messages_of_other_shapes_are_read() {
    let read = |json: Value| serde_json::from_value::<Message>(json);
    let parts =
        json!({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]});
    let parts = read(parts).expect("a message");
    assert_eq!(parts.content, "ab");
    assert_eq!(&*parts.extra[0].1, r#"[{"type":"image"}]"#);
    let nulls = json!({"role": null, "content": null, "tool_calls": null, "function_call": null, "refusal": null});
    assert_eq!(read(nulls).expect("a message"), Message::default());
    let object =
        json!({"tool_calls": [{"index": 3, "function": {"name": "f", "arguments": {"a": 1}}}]});
    let object = read(object).expect("a message");
    assert_eq!(object.tool_calls[0].arguments, r#"{"a":1}"#);
    assert_eq!(object.tool_calls[0].wire_index, Some(3));
    assert_eq!(object.tool_calls[0].kind, CallKind::Function);
    let thinking = read(json!({"reasoning_content": "hm", "thinking": {"budget": 1}}));
    let thinking = thinking.expect("a message");
    assert_eq!((&*thinking.reasoning, thinking.extra.len()), ("hm", 1));
}

#[test]
fn json_of_another_shape_is_rejected_as_a_message() {
    for json in [
        "[]",
        "1",
        r#"{"content":1}"#,
        r#"{"tool_calls":{}}"#,
        r#"{"tool_calls":[1]}"#,
    ] {
        let error = serde_json::from_str::<Message>(json).expect_err(json);
        assert!(!error.to_string().contains(json));
    }
}

#[test]
fn u10_usage_is_the_object_that_was_reported() {
    let json = r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"cost":0.10}"#;
    let demux = demux(&[&format!("{{\"choices\":[],\"usage\":{json}}}")]);
    let usage = demux.usage();
    assert_eq!(serde_json::to_string(&usage).expect("JSON"), json);
    let read: Usage = serde_json::from_str(json).expect("usage");
    assert_eq!(read, usage);
    assert_eq!(
        usage.to_string(),
        "prompt 5, completion 2, total 7 tokens (reported)"
    );
}

#[test]
fn estimated_figures_are_serialized_like_reported_ones() {
    let mut usage = Usage::default();
    assert_eq!(serde_json::to_string(&usage).expect("JSON"), "null");
    assert_eq!(serde_json::from_str::<Usage>("null").expect("usage"), usage);
    usage.completion_tokens = Some(3);
    let json = serde_json::to_string(&usage).expect("JSON");
    assert_eq!(json, r#"{"completion_tokens":3}"#);
    assert!(serde_json::from_str::<Usage>("3").is_err());
}

#[test]
fn an_outcome_is_an_entry_of_choices_with_its_end() {
    let finished =
        demux(&[r#"{"choices":[{"index":1,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#]);
    let outcome = finished
        .result(ChoiceIndex(1))
        .expect("an end")
        .expect("no error");
    assert_eq!(
        serde_json::to_string(&outcome).expect("JSON"),
        r#"{"index":1,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop","end":"finished"}"#,
    );
    assert_eq!(outcome, outcome.clone());
    let failed =
        demux(&[r#"{"choices":[{"index":1,"delta":{"content":"Hi"},"error":{"message":"m"}}]}"#]);
    let error = failed
        .result(ChoiceIndex(1))
        .expect("an end")
        .expect_err("an error");
    let json = serde_json::to_value(error.partial()).expect("JSON");
    assert_eq!(json["end"], "server_error");
    assert_eq!(json["error"]["body"]["message"], "m");
}

#[test]
fn metadata_is_the_head_of_a_response() {
    let demux = demux(&[
        r#"{"id":"c1","model":"m","created":7,"seed":1.50,"choices":[{"index":0,"delta":{}}]}"#,
    ]);
    assert_eq!(
        serde_json::to_string(demux.metadata()).expect("JSON"),
        r#"{"id":"c1","object":"chat.completion","created":7,"model":"m","seed":1.50}"#,
    );
}

#[test]
fn errors_compare_by_what_they_say() {
    use crate::{StreamError, TransportError};
    let error = |bytes, text: &str| StreamError::Transport(TransportError::new(bytes, text).into());
    assert_eq!(error(1, "reset"), error(1, "reset"));
    assert_ne!(error(1, "reset"), error(2, "reset"));
    assert_ne!(error(1, "reset"), error(1, "refused"));
}

#[test]
fn m14_an_outcome_has_the_unknown_fields_of_its_choice() {
    let demux = demux(&[
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[5],"end":"x"}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"b"},"token_ids":[6],"stop_reason":7,"finish_reason":"stop"}]}"#,
    ]);
    let outcome = demux.choice(ChoiceIndex(0)).unwrap().outcome().unwrap();
    let extra = outcome.extra.iter().map(|(key, raw)| (&**key, &**raw));
    let expected = [
        ("token_ids", "[5,6]"),
        ("end", "\"x\""),
        ("stop_reason", "7"),
    ];
    assert_eq!(extra.collect::<Vec<_>>(), expected);
    assert_eq!(
        serde_json::to_string(&outcome).unwrap(),
        r#"{"index":0,"message":{"role":"assistant","content":"ab"},"finish_reason":"stop","end":"finished","token_ids":[5,6],"stop_reason":7}"#
    );
}
