//! The message so far as JSON.

use serde_json::{Value, json};
use unbraid_log::{End, Meta};

use super::script::{Script, choice, kept, part};
use crate::view::{Part, Target};

fn get(script: &Script, target: Target) -> Value {
    let text = script.view.json(target, true).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_message_so_far_is_an_ordinary_completion_with_a_state() {
    let mut script = Script::new(2);
    script.text(0, "Hel");
    script.text(1, "x");
    script.text(0, "lo");
    let json = get(&script, choice(0));
    assert_eq!(json["object"], "chat.completion");
    assert_eq!(json["choices"][0]["message"]["content"], "Hello");
    assert_eq!(json["choices"][0]["index"], 0);
    assert_eq!(json["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(json["choices"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        json["unbraid"],
        json!({ "seq": 3, "state": "running", "end": null })
    );
    let both = get(&script, Target::Combined);
    assert_eq!(both["choices"][1]["message"]["content"], "x");
    assert_eq!(get(&script, choice(1))["choices"][0]["index"], 0);
    assert_eq!(get(&script, kept(1))["choices"][0]["index"], 1);
    script.choice_end(1, End::Finished);
    assert_eq!(
        get(&script, choice(1))["unbraid"],
        json!({ "seq": 4, "state": "ended", "end": "finished" })
    );
    assert_eq!(get(&script, choice(0))["unbraid"]["state"], "running");
    script.seal(End::ProducerLost);
    assert_eq!(
        get(&script, choice(0))["unbraid"],
        json!({ "seq": 5, "state": "ended", "end": "producer_lost" })
    );
    assert_eq!(
        get(&script, Target::Combined)["unbraid"]["end"],
        "producer_lost"
    );
    let body = script.view.json(Target::Combined, false).unwrap();
    assert!(!body.contains("unbraid"), "the answer to a POST: {body}");
}

/// A choice that has not appeared exists as well, so it was opened with a chunk of its own, after which no other dialect was read.
#[test]
fn the_only_choice_of_another_dialect_has_the_message_of_the_combined_view() {
    for meta in [
        Meta::new("/v1/chat/completions", 7).with_n(Some(1)),
        Meta::new("/v1/chat/completions", 7),
    ] {
        let mut script = Script::of(meta);
        let is_empty = |json: &Value| {
            let choices = json["choices"].as_array().unwrap();
            choices
                .iter()
                .all(|choice| choice["message"]["content"].is_null())
        };
        let so_far = get(&script, choice(0));
        assert!(is_empty(&so_far) && so_far["choices"].as_array().unwrap().len() == 1);
        let start = json!({"type": "message_start", "message": {"id": "a", "model": "m",
            "role": "assistant", "content": [], "usage": {"input_tokens": 3, "output_tokens": 0}}});
        script.chunk(&[], r#"{"type":"ping"}"#);
        script.chunk(&[], &start.to_string());
        let open = json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}});
        script.chunk(&[0], &open.to_string());
        for text in ["Hel", "lo"] {
            let delta = json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}});
            script.chunk(&[0], &delta.to_string());
        }
        let one = get(&script, choice(0));
        assert_eq!(one["choices"][0]["message"]["content"], "Hello");
        assert_eq!(one, get(&script, Target::Combined));
    }
}

#[test]
fn the_state_of_an_upstream_gateway_is_replaced() {
    let mut script = Script::new(1);
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}],"unbraid":{"snapshot":true,"seq":9}}"#,
    );
    let text = script.view.json(Target::Combined, true).unwrap();
    assert_eq!(text.matches("\"unbraid\"").count(), 1, "{text}");
    assert_eq!(
        get(&script, Target::Combined)["unbraid"],
        json!({ "seq": 1, "state": "running", "end": null })
    );
}

#[test]
fn a_choice_that_has_not_appeared_is_an_empty_message() {
    let json = get(&Script::new(2), choice(1));
    assert_eq!(json["choices"][0]["message"]["content"], Value::Null);
    assert_eq!(
        json["unbraid"],
        json!({ "seq": 0, "state": "running", "end": null })
    );
    let text = get(&Script::of(Meta::new("/v1/completions", 7)), choice(0));
    assert_eq!(
        (&text["object"], &text["choices"][0]["text"]),
        (&json!("text_completion"), &json!(""))
    );
    let empty = get(
        &Script::of(Meta::new("/v1/completions", 7)),
        Target::Combined,
    );
    assert_eq!(empty["object"], "text_completion");
}

#[test]
fn x4_the_choices_of_an_error_event_belong_to_the_message() {
    let mut script = Script::new(2);
    script.text(0, "a");
    script.text(1, "A");
    script.error(
        None,
        r#"{"error":{"message":"x"},"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"error"}]}"#,
    );
    script.seal(End::ServerError);
    let both = get(&script, Target::Combined);
    assert_eq!(both["choices"][0]["message"]["content"], "ab");
    assert_eq!(both["choices"][0]["finish_reason"], "error");
    assert_eq!(both["choices"][1]["message"]["content"], "A");
    let first = get(&script, choice(0));
    assert_eq!(first["choices"][0]["message"]["content"], "ab");
    let second = get(&script, choice(1));
    assert_eq!(second["choices"][0]["message"]["content"], "A");
    assert_eq!(get(&script, kept(0))["choices"][0]["index"], 0);
}

#[test]
fn s15_an_event_with_the_name_of_an_error_has_no_choices() {
    let mut script = Script::new(1);
    script.text(0, "a");
    script.error(
        Some("error"),
        r#"{"error":{},"choices":[{"index":0,"delta":{"content":"b"}}]}"#,
    );
    let json = get(&script, choice(0));
    assert_eq!(json["choices"][0]["message"]["content"], "a");
}

#[test]
fn a_stream_with_an_upstream_error_runs_until_its_log_is_sealed() {
    let mut script = Script::new(1);
    script.text(0, "a");
    script.error(None, r#"{"error":{}}"#);
    let state = |script: &Script| get(script, Target::Combined)["unbraid"].clone();
    assert_eq!(
        state(&script),
        json!({ "seq": 2, "state": "running", "end": null })
    );
    script.choice_end(0, End::ServerError);
    script.seal(End::ServerError);
    assert_eq!(
        state(&script),
        json!({ "seq": 2, "state": "ended", "end": "server_error" })
    );
}

#[test]
fn a_part_is_all_that_the_message_contains() {
    let mut script = Script::new(1);
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"delta":{"reasoning":"r","content":"c"}}]}"#,
    );
    let json = get(&script, part(0, Part::Reasoning));
    assert_eq!(json["choices"][0]["message"]["reasoning"], "r");
    assert_eq!(json["choices"][0]["message"]["content"], Value::Null);
}

#[test]
fn usage_belongs_to_the_stream_and_to_its_only_choice() {
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
    let mut one = Script::new(1);
    one.text(0, "a");
    assert_eq!(one.view.usage(), None);
    one.chunk(&[], usage);
    assert_eq!(get(&one, choice(0))["usage"]["total_tokens"], 3);
    assert!(one.view.usage().unwrap().contains(r#""total_tokens":3"#));
    let mut two = Script::new(2);
    two.text(0, "a");
    two.chunk(&[], usage);
    assert_eq!(get(&two, choice(0))["usage"], Value::Null);
    assert_eq!(get(&two, Target::Combined)["usage"]["total_tokens"], 3);
}

#[test]
fn numbers_and_calls_are_kept_as_they_were_sent() {
    let mut script = Script::new(1);
    script.chunk(
        &[0],
        r#"{"seed":12345678901234567890123,"choices":[{"index":0,"delta":{"tool_calls":[{"index":3,"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1"}}]}}]}"#,
    );
    let text = script.view.json(Target::Combined, true).unwrap();
    assert!(text.contains("12345678901234567890123"), "{text}");
    let (snapshot, _) = script.read(Target::Combined, crate::view::Start::Snapshot);
    assert!(
        snapshot.contains(r#""tool_calls":[{"index":3,"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1"}}]"#),
        "{snapshot}"
    );
}

#[test]
fn a_snapshot_names_reasoning_as_the_server_does() {
    for name in ["reasoning", "reasoning_content"] {
        let mut script = Script::new(1);
        script.chunk(
            &[0],
            &format!(r#"{{"choices":[{{"index":0,"delta":{{"{name}":"r"}}}}]}}"#),
        );
        let (snapshot, _) = script.read(choice(0), crate::view::Start::Snapshot);
        assert!(
            snapshot.contains(&format!("\"{name}\":\"r\"")),
            "{snapshot}"
        );
    }
}

/// A reader that comes after the event with the usage gets it from the snapshot only.
#[test]
fn a_snapshot_has_the_usage_and_the_fields_around_the_choices() {
    let mut script = Script::new(2);
    script.chunk(
        &[0],
        r#"{"id":"c","system_fingerprint":"fp","service_tier":"default","usage":null,"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    );
    script.chunk(&[], r#"{"id":"c","choices":[],"usage":{"total_tokens":3}}"#);
    for (target, usage) in [(Target::Combined, Some(3)), (choice(0), None)] {
        let (snapshot, _) = script.read(target, crate::view::Start::Snapshot);
        let data = snapshot.split_once("data: ").unwrap().1;
        let data = data.split_once("\n\n").unwrap().0;
        let chunk: Value = serde_json::from_str(data).unwrap();
        assert_eq!(chunk["system_fingerprint"], "fp");
        assert_eq!(chunk["service_tier"], "default");
        assert_eq!(chunk["usage"]["total_tokens"].as_u64(), usage);
        assert_eq!(chunk["choices"][0]["delta"]["content"], "a");
    }
}

/// C14: the other half follows in the next event.
#[test]
fn a_snapshot_ends_with_the_half_of_a_character_that_has_arrived() {
    let check = |endpoint: &str, chunk: &str, expected: &str| {
        let mut script = Script::of(Meta::new(endpoint, 7));
        script.chunk(&[0], chunk);
        let (snapshot, _) = script.read(Target::Combined, crate::view::Start::Snapshot);
        assert!(snapshot.contains(expected), "{snapshot}");
    };
    for name in ["content", "reasoning_content", "refusal"] {
        for text in ["A", ""] {
            let field = format!(r#""{name}":"{text}\ud83d""#);
            let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{{{field}}}}}]}}"#);
            check("/v1/chat/completions", &chunk, &field);
        }
    }
    for text in ["A", ""] {
        let transcript = format!(r#""transcript":"{text}\ud83d""#);
        let chunk =
            format!(r#"{{"choices":[{{"index":0,"delta":{{"audio":{{{transcript}}}}}}}]}}"#);
        check("/v1/chat/completions", &chunk, &transcript);
    }
    let arguments = r#""arguments":"{\"a\":\"\ud83d""#;
    for (call, kind) in [("function", "function"), ("custom", "custom")] {
        let called = match call {
            "function" => arguments.to_owned(),
            _ => arguments.replace("arguments", "input"),
        };
        let entry =
            format!(r#"{{"index":0,"id":"x","type":"{kind}","{call}":{{"name":"f",{called}}}}}"#);
        let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{entry}]}}}}]}}"#);
        check("/v1/chat/completions", &chunk, &called);
    }
    let legacy = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"function_call":{{"name":"f",{arguments}}}}}}}]}}"#
    );
    check("/v1/chat/completions", &legacy, arguments);
    let text =
        r#"{"choices":[{"index":0,"text":"\ud83d","reasoning":"r\ud83d","refusal":"\ud83d"}]}"#;
    check("/v1/completions", text, r#""text":"\ud83d""#);
    check("/v1/completions", text, r#""reasoning":"r\ud83d""#);
    check("/v1/completions", text, r#""refusal":"\ud83d""#);
}

#[test]
fn c19_the_snapshot_of_a_text_completion_has_reasoning_beside_its_text() {
    let mut script = Script::of(Meta::new("/v1/completions", 7));
    script.chunk(
        &[0],
        r#"{"object":"text_completion","choices":[{"index":0,"reasoning":"R","finish_reason":null}]}"#,
    );
    for target in [choice(0), Target::Combined] {
        let (snapshot, _) = script.read(target, crate::view::Start::Snapshot);
        assert!(
            snapshot.contains(r#""object":"text_completion""#),
            "{snapshot}"
        );
        assert!(snapshot.contains(r#""text":"""#), "{snapshot}");
        assert!(snapshot.contains(r#""reasoning":"R""#), "{snapshot}");
        assert!(!snapshot.contains("delta"), "{snapshot}");
    }
}

#[test]
fn the_snapshot_of_a_part_that_has_not_begun_shows_no_other_part() {
    let mut script = Script::of(Meta::new("/v1/completions", 7));
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"text":"A","reasoning":"R"}]}"#,
    );
    let (snapshot, _) = script.read(part(0, Part::Refusal), crate::view::Start::Snapshot);
    assert!(snapshot.contains(r#""text":"""#), "{snapshot}");
    assert!(!snapshot.contains(r#""R""#), "{snapshot}");
}
