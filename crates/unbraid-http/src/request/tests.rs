use serde_json::{Value, json};

use super::{Kind, Request, RequestError};

#[track_caller]
fn expects(request: Value, expected: Option<u32>) {
    let made = Request::from_value(request.clone()).unwrap();
    assert_eq!(made.expected_choices(), expected, "{request}");
}

#[test]
fn the_choices_to_expect_are_n_for_each_prompt() {
    expects(json!({ "messages": [] }), None);
    expects(json!({ "messages": [], "n": 1 }), Some(1));
    expects(json!({ "messages": [], "n": 4 }), Some(4));
    expects(json!({ "prompt": "a", "n": 2 }), Some(2));
    expects(json!({ "prompt": ["a", "b", "c"], "n": 2 }), Some(6));
    expects(json!({ "prompt": ["a", "b"] }), None);
    expects(json!({ "prompt": [1, 2, 3], "n": 2 }), Some(2));
    expects(json!({ "prompt": [[1, 2], [3]], "n": 2 }), Some(4));
    for odd in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("2"),
        json!(null),
        json!(u64::MAX),
    ] {
        expects(json!({ "messages": [], "n": odd }), None);
    }
}

#[test]
fn a_request_made_elsewhere_goes_where_it_belongs() {
    let kind = |value| Request::from_value(value).unwrap().kind();
    assert_eq!(kind(json!({ "messages": [] })), Kind::Chat);
    assert_eq!(kind(json!({ "prompt": "a" })), Kind::Text);
    assert_eq!(kind(json!({ "messages": [], "prompt": "a" })), Kind::Chat);
    assert_eq!(kind(json!({})), Kind::Chat);
}

#[test]
fn only_stream_and_include_usage_are_seen_to() {
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
        "the order, too"
    );
    expected["stream_options"] = json!({ "include_usage": true });
    let sent = Request::from_value(given).unwrap();
    assert_eq!(sent.body().to_string(), expected.to_string());
}

#[track_caller]
fn options(given: Value, expected: Value) {
    let request = Request::chat("m").field("stream_options", given.clone());
    assert_eq!(request.body()["stream_options"], expected, "{given}");
    let request = request.include_usage(false);
    assert_eq!(request.body()["stream_options"], given, "{given}");
}

#[test]
fn stream_options_that_were_given_stay() {
    options(
        json!({ "include_usage": false }),
        json!({ "include_usage": false }),
    );
    options(
        json!({ "include_obfuscation": false }),
        json!({ "include_obfuscation": false, "include_usage": true }),
    );
    options(json!("odd"), json!("odd"));
    let null = Request::chat("m").field("stream_options", Value::Null);
    assert_eq!(
        null.body()["stream_options"],
        json!({ "include_usage": true })
    );
    let without = Request::chat("m").include_usage(false);
    assert_eq!(without.body(), json!({ "model": "m", "stream": true }));
}

#[test]
fn what_is_no_object_is_no_request() {
    for (value, found) in [
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!(1), "a number"),
        (json!("{}"), "a string"),
        (json!([{}]), "an array"),
    ] {
        for refused in [
            Request::from_value(value.clone()),
            Request::chat("m").fields(&value),
        ] {
            let RequestError::NotAnObject { found: told } = refused.unwrap_err() else {
                panic!("{value}")
            };
            assert_eq!(told, found);
        }
    }
    let keys_that_are_no_text = std::collections::BTreeMap::from([((1, 2), 3)]);
    let refused = Request::from_serialize(&keys_that_are_no_text).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the request does not serialise to JSON"
    );
}

#[test]
fn numbers_of_single_precision_stay_as_they_are_written() {
    let request =
        Request::chat("m").fields(&std::collections::BTreeMap::from([("top_p", 0.7_f32)]));
    assert_eq!(request.unwrap().get("top_p").unwrap().to_string(), "0.7");
}

#[test]
fn messages_add_up() {
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
fn debug_shows_names_only() {
    let request = Request::chat("secret model").user("secret words").n(2);
    let shown = format!("{request:?}");
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("messages"), "{shown}");
}
