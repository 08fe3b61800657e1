use serde_json::{Value, json};

use crate::{Config, Demux};

/// The first choice of the aggregate of these entries of `choices`, one for each chunk.
fn choice(entries: &[&str]) -> (Value, Vec<&'static str>) {
    let mut demux = Demux::new(Config::default());
    for entry in entries {
        demux.feed(format!("data: {{\"choices\":[{entry}]}}\n\n").as_bytes());
    }
    demux.feed(b"data: [DONE]\n\n");
    demux.finish();
    let codes = demux.warnings().into_iter().map(|warning| warning.code);
    (demux.aggregate()["choices"][0].take(), codes.collect())
}

/// Checks the value at a JSON pointer of the aggregate, `null` if there is none.
#[track_caller]
fn check(entries: &[&str], pointer: &str, expected: Value) {
    let (choice, codes) = choice(entries);
    let actual = choice.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(actual, expected, "{pointer} of {choice}");
    assert!(codes.is_empty(), "{codes:?}");
}

#[test]
fn an_unknown_field_never_is_the_finish_reason() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n\n");
    demux.feed(
        b"data: {\"type\":\"message_delta\",\"delta\":{\"finish_reason\":\"stop\",\"x\":1}}\n\n",
    );
    demux.finish();
    let choice = demux.aggregate()["choices"][0].take();
    assert_eq!(choice["finish_reason"], Value::Null);
    assert_eq!(choice["x"], json!(1));

    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\"a\",\"delta\":{\"finish_reason\":\"stop\"}}]}\n\n");
    demux.finish();
    assert_eq!(
        demux.aggregate()["choices"][0]["finish_reason"],
        Value::Null
    );
}

#[test]
fn c20_lists_in_deltas_are_concatenated_in_the_message() {
    let entries = [
        r#"{"index":0,"delta":{"content":"a","annotations":[{"at":1}]}}"#,
        r#"{"index":0,"delta":{"annotations":[]}}"#,
        r#"{"index":0,"delta":{"annotations":[{"at":1},{"at":2}],"images":[ ]}}"#,
        r#"{"index":0,"delta":{"images":[{"url":"x"}]},"finish_reason":"stop"}"#,
    ];
    check(
        &entries,
        "/message/annotations",
        json!([{"at":1},{"at":1},{"at":2}]),
    );
    check(&entries, "/message/images", json!([{"url":"x"}]));
    check(&entries, "/annotations", Value::Null);
}

#[test]
fn c20_a_field_received_after_the_end_is_in_the_message() {
    let entries = [
        r#"{"index":0,"delta":{"images":[1]},"finish_reason":"stop"}"#,
        r#"{"index":1,"delta":{"content":"x"}}"#,
        r#"{"index":0,"delta":{"images":[2],"channel":"late"},"seal":7}"#,
    ];
    check(&entries, "/message/images", json!([1, 2]));
    check(&entries, "/message/channel", json!("late"));
    check(&entries, "/seal", json!(7));
}

#[test]
fn e24_unknown_fields_keep_their_object_and_their_last_value() {
    let entries = [
        r#"{"index":0,"delta":{"content":"a","channel":"x","mark":1},"mark":2,"stop_reason":3}"#,
        r#"{"index":0,"delta":{"channel":"y"},"stop_reason":4,"finish_reason":"stop"}"#,
    ];
    check(&entries, "/message/channel", json!("y"));
    check(&entries, "/message/mark", json!(1));
    check(&entries, "/mark", json!(2));
    check(&entries, "/stop_reason", json!(4));
    check(&entries, "/message/stop_reason", Value::Null);
}

#[test]
fn e24_the_lenient_decoder_puts_fields_in_the_same_objects() {
    let entries = [
        r#"{"index":"0","delta":{"content":"a","images":[1],"mark":1},"mark":2}"#,
        r#"{"index":"0","delta":{"images":[2]},"finish_reason":"stop"}"#,
    ];
    check(&entries, "/message/images", json!([1, 2]));
    check(&entries, "/message/mark", json!(1));
    check(&entries, "/mark", json!(2));
}

#[test]
fn m14_token_ids_of_a_choice_are_concatenated_beside_the_message() {
    let entries = [
        r#"{"index":0,"delta":{"content":""},"token_ids":[],"prompt_token_ids":[7]}"#,
        r#"{"index":0,"delta":{"content":"a"},"token_ids":[5]}"#,
        r#"{"index":0,"delta":{"content":"a"},"token_ids":[5, 6]}"#,
        r#"{"index":0,"delta":{},"token_ids":[],"finish_reason":"stop"}"#,
    ];
    check(&entries, "/token_ids", json!([5, 5, 6]));
    check(&entries, "/prompt_token_ids", json!([7]));
}

#[test]
fn r4_reasoning_details_are_concatenated_and_their_text_counts_once() {
    let entries = [
        r#"{"index":0,"delta":{"reasoning":"a","reasoning_details":[{"text":"a"}]}}"#,
        r#"{"index":0,"delta":{"reasoning":"a","reasoning_details":[{"text":"a"}]}}"#,
        r#"{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}"#,
    ];
    check(&entries, "/message/reasoning", json!("aa"));
    check(
        &entries,
        "/message/reasoning_details",
        json!([{"text":"a"},{"text":"a"}]),
    );
}

#[test]
fn c11_parts_that_are_not_text_are_kept() {
    let entries = [
        r#"{"index":0,"delta":{"content":[{"type":"text","text":"a"},{"type":"reference","ids":[1]},{"type":"reference","ids":[2]}]}}"#,
        r#"{"index":0,"delta":{"content":[{"type":"reference","ids":[3]}]},"finish_reason":"stop"}"#,
    ];
    check(
        &entries,
        "/message/content_parts",
        json!([{"type":"reference","ids":[1]},{"type":"reference","ids":[2]},{"type":"reference","ids":[3]}]),
    );
}

#[test]
fn e21_a_full_message_does_not_repeat_lists() {
    let entries = [
        r#"{"index":0,"delta":{"content":"a","annotations":[1]}}"#,
        r#"{"index":0,"delta":{},"message":{"role":"assistant","content":"a","annotations":[1],"images":[2]},"finish_reason":"stop"}"#,
    ];
    check(&entries, "/message/content", json!("a"));
    check(&entries, "/message/annotations", json!([1]));
    check(&entries, "/message/images", json!([2]));
}

#[test]
fn m11_audio_is_joined_and_only_in_the_message() {
    let entries = [
        r#"{"index":0,"delta":{"role":"assistant","audio":{"id":"a1","transcript":"The"}}}"#,
        r#"{"index":0,"delta":{"audio":{"data":"UklGRg==","transcript":" tide"}}}"#,
        r#"{"index":0,"delta":{"audio":{"data":"AQI="}}}"#,
        r#"{"index":0,"delta":{"audio":{"expires_at":99}},"finish_reason":"stop"}"#,
    ];
    check(
        &entries,
        "/message/audio",
        json!({"id":"a1","expires_at":99,"data":"UklGRgEC","transcript":"The tide"}),
    );
    check(&entries, "/audio", Value::Null);
    let (silent, _) = choice(&[r#"{"index":0,"delta":{"content":"a"}}"#]);
    assert_eq!(silent["message"].get("audio"), None, "no audio, no key");
}

#[test]
fn m11_audio_that_is_not_base64_is_kept_with_a_warning() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"audio\":{\"data\":\"?!\"}}}]}\n\n");
    let events: Vec<String> =
        std::iter::from_fn(|| demux.next_event().map(|e| e.to_string())).collect();
    let expected = [
        r#"0 0 c0 choice.start {"role":null}"#,
        r#"0 1 c0 audio.delta {"audio":{"data":"?!"}}"#,
        r#"0 2 c0 warning {"code":"M11","event":0,"message":"a piece of audio is not base64"}"#,
    ];
    assert_eq!(events, expected);
}

#[test]
fn t40_unknown_fields_of_a_call_are_in_its_entry() {
    let entries = [
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"heat","arguments":"{"},"extra_content":{"google":{"thought_signature":"Cp"}}}]}}"#,
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}"#,
    ];
    check(
        &entries,
        "/message/tool_calls/0",
        json!({"id":"c1","type":"function","function":{"name":"heat","arguments":"{}"},"extra_content":{"google":{"thought_signature":"Cp"}}}),
    );
}

#[test]
fn the_keys_of_joined_logprobs_are_bounded() {
    use std::fmt::Write as _;

    let mut keys = String::new();
    for key in 0..2000 {
        write!(keys, ",\"k{key}\":1").unwrap();
    }
    let entry = format!(
        "{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"logprobs\":{{\"content\":[1]{keys}}}}}"
    );
    let (merged, _) = choice(&[&entry]);
    let logprobs = merged["logprobs"].as_object().unwrap();
    assert_eq!(logprobs.len(), crate::limits::MAX_FIELDS);
    assert_eq!(logprobs["content"], json!([1]), "the first keys are kept");
}

#[test]
fn m06_the_texts_of_log_probabilities_are_joined() {
    let entry = |text: &str| {
        format!(
            "{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"logprobs\":{{\"text\":{text},\"content\":[1]}}}}"
        )
    };
    let entries = ["\"Hi\\n\"", "\"\\\"\"", "\"!\"", "null"].map(entry);
    let (merged, _) = choice(&[&entries[0], &entries[1], &entries[2], &entries[3]]);
    let expected = json!({"text": "Hi\n\"!", "content": [1, 1, 1, 1]});
    assert_eq!(merged["logprobs"], expected);
}

#[test]
fn e22_lists_of_log_probabilities_may_be_objects_with_positions() {
    let entry = |content: &str| {
        format!(
            r#"{{"index":0,"delta":{{"content":"a"}},"logprobs":{{"content":{content},"reasoning_content":{content},"of":{{"1":2}}}}}}"#
        )
    };
    let contents = [r#"{"10":10,"1":1,"2":2}"#, "{}", "null", "[3]", "{}"].map(entry);
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    let (merged, _) = choice(&contents);
    let expected =
        json!({"content": [1, 2, 10, 3], "reasoning_content": [1, 2, 10, 3], "of": {"1": 2}});
    assert_eq!(merged["logprobs"], expected);
}

#[test]
fn calls_after_the_text_of_a_text_completion_are_part_of_the_aggregate() {
    let entries = [
        r#"{"index":0,"text":"Hi"}"#,
        r#"{"index":0,"delta":{"reasoning_content":"Hm","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}"#,
        r#"{"index":0,"delta":{},"finish_reason":"tool_calls"}"#,
    ];
    check(&entries, "/text", json!("Hi"));
    check(&entries, "/reasoning", json!("Hm"));
    check(&entries, "/tool_calls/0/function/name", json!("f"));
    let (choice, _) = choice(&entries);
    let keys: Vec<&String> = choice.as_object().unwrap().keys().collect();
    let expected = [
        "index",
        "text",
        "reasoning",
        "tool_calls",
        "finish_reason",
        "logprobs",
    ];
    assert_eq!(keys, expected, "null is left out");
}

#[test]
fn r05_an_unknown_field_has_its_name_beside_reasoning_of_another_name() {
    let message = |delta: &str| {
        let config = Config::default().with_reasoning_keys(["deliberation"]);
        let mut demux = Demux::new(config);
        demux.feed(format!("data: {{\"choices\":[{{\"index\":0,{delta}}}]}}\n\n").as_bytes());
        demux.finish();
        demux.aggregate()["choices"][0].clone()
    };
    let chat = message(r#""delta":{"reasoning":"R","content":"a"}"#);
    assert_eq!(chat["message"]["reasoning"], "R");
    let chat = message(r#""delta":{"deliberation":"D","content":"a"}"#);
    assert_eq!(chat["message"]["reasoning"], "D");
    let both = message(r#""delta":{"reasoning":{"a":1},"deliberation":"D"}"#);
    assert_eq!(both["message"]["reasoning"], json!({ "a": 1 }));
    assert_eq!(both["message"]["deliberation"], "D");
    let text = message(r#""text":"a","deliberation":"D","reasoning":"R""#);
    assert_eq!(
        (&text["reasoning"], &text["deliberation"]),
        (&json!("R"), &json!("D"))
    );
}
