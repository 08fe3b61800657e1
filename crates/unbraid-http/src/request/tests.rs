use serde_json::{Value, json};

use super::{Kind, Request, RequestError};
use crate::Provider;

#[track_caller]
fn check_expected(request: Value, expected: Option<u32>) {
    let parsed = Request::from_value(request.clone()).unwrap();
    assert_eq!(
        parsed.expected_choices(Provider::OpenAi),
        expected,
        "{request}"
    );
}

#[test]
fn n_choices_are_expected_for_each_prompt() {
    check_expected(json!({ "messages": [] }), None);
    check_expected(json!({ "messages": [], "n": 1 }), Some(1));
    check_expected(json!({ "messages": [], "n": 4 }), Some(4));
    check_expected(json!({ "prompt": "a", "n": 2 }), Some(2));
    check_expected(json!({ "prompt": ["a", "b", "c"], "n": 2 }), Some(6));
    check_expected(json!({ "prompt": ["a", "b"] }), Some(2));
    check_expected(json!({ "prompt": ["a", "b"], "n": null }), Some(2));
    check_expected(json!({ "prompt": ["a"] }), None);
    check_expected(json!({ "prompt": [1, 2, 3] }), None);
    check_expected(json!({ "prompt": [1, 2, 3], "n": 2 }), Some(2));
    check_expected(json!({ "prompt": [[1, 2], [3]], "n": 2 }), Some(4));
    for odd in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("2"),
        json!(null),
        json!(u64::MAX),
    ] {
        check_expected(json!({ "messages": [], "n": odd }), None);
    }
}

#[test]
fn a_json_request_goes_to_the_interface_of_its_fields() {
    let kind = |value| Request::from_value(value).unwrap().kind();
    assert_eq!(kind(json!({ "messages": [] })), Kind::Chat);
    assert_eq!(kind(json!({ "prompt": "a" })), Kind::Text);
    assert_eq!(kind(json!({ "messages": [], "prompt": "a" })), Kind::Chat);
    assert_eq!(kind(json!({})), Kind::Chat);
}

#[test]
fn only_stream_and_include_usage_are_set() {
    let given = json!({
        "zeta": { "b": 1, "a": [null, "x", 0.1] },
        "stream": false,
        "max_tokens": 18_446_744_073_709_551_615_u64,
        "temperature": 0.30000000000000004,
        "functions": [{ "name": "f" }],
        "function_call": { "name": "f" },
        "model": "m",
    });
    let mut expected = given.clone();
    expected["stream"] = json!(true);
    let sent = Request::from_value(given.clone())
        .unwrap()
        .include_usage(false);
    assert_eq!(
        sent.body().to_string(),
        expected.to_string(),
        "in the same order"
    );
    expected["stream_options"] = json!({ "include_usage": true });
    let sent = Request::from_value(given).unwrap();
    assert_eq!(sent.body().to_string(), expected.to_string());
}

#[track_caller]
fn check_options(given: Value, expected: Value) {
    let request = Request::chat("m").field("stream_options", given.clone());
    assert_eq!(request.body()["stream_options"], expected, "{given}");
    let request = request.include_usage(false);
    assert_eq!(request.body()["stream_options"], given, "{given}");
}

#[test]
fn given_stream_options_are_kept() {
    check_options(
        json!({ "include_usage": false }),
        json!({ "include_usage": false }),
    );
    check_options(
        json!({ "include_obfuscation": false }),
        json!({ "include_obfuscation": false, "include_usage": true }),
    );
    check_options(json!("odd"), json!("odd"));
    let null = Request::chat("m").field("stream_options", Value::Null);
    assert_eq!(
        null.body()["stream_options"],
        json!({ "include_usage": true })
    );
    let without = Request::chat("m").include_usage(false);
    assert_eq!(without.body(), json!({ "model": "m", "stream": true }));
}

#[test]
fn a_value_other_than_an_object_is_refused() {
    for (value, found) in [
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!(1), "a number"),
        (json!("{}"), "a string"),
        (json!([{}]), "an array"),
    ] {
        for result in [
            Request::from_value(value.clone()),
            Request::chat("m").fields(&value),
        ] {
            let RequestError::NotAnObject { found: reported } = result.unwrap_err() else {
                panic!("{value}")
            };
            assert_eq!(reported, found);
        }
    }
    let tuple_keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = Request::from_serialize(&tuple_keys).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the request cannot be serialized to JSON"
    );
}

#[test]
fn single_precision_numbers_keep_their_digits() {
    let request =
        Request::chat("m").fields(&std::collections::BTreeMap::from([("top_p", 0.7_f32)]));
    assert_eq!(request.unwrap().get("top_p").unwrap().to_string(), "0.7");
}

#[test]
fn messages_are_appended_in_order() {
    let request = Request::chat("m")
        .field("messages", "odd")
        .system("a")
        .user("b")
        .assistant("c");
    let request = request.message(json!({ "role": "tool", "content": "d", "tool_call_id": "1" }));
    assert_eq!(
        request.body()["messages"],
        json!([
            { "role": "system", "content": "a" },
            { "role": "user", "content": "b" },
            { "role": "assistant", "content": "c" },
            { "role": "tool", "content": "d", "tool_call_id": "1" },
        ])
    );
}

#[test]
fn debug_prints_only_field_names() {
    let request = Request::chat("secret model").user("secret words").n(2);
    let shown = format!("{request:?}");
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("messages"), "{shown}");
}
