use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use crate::{ChoiceStrategy, Request};

/// Any JSON value, with numbers that a `Value` holds.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let fields = vec((any::<String>(), inner.clone()), 0..6);
        prop_oneof![
            vec(inner, 0..6).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn message() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("role".to_owned()),
        Just("content".to_owned()),
        Just("tool_calls".to_owned()),
        any::<String>(),
    ];
    vec((names, value()), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// A stored conversation: messages between unknown fields.
fn conversation() -> impl Strategy<Value = Map<String, Value>> {
    let fields = || vec((any::<String>(), value()), 0..4);
    (fields(), vec(message(), 0..6), fields()).prop_map(|(before, messages, after)| {
        let messages = ("messages".to_owned(), Value::from(messages));
        before.into_iter().chain([messages]).chain(after).collect()
    })
}

proptest! {
    #[test]
    fn a_conversation_is_read_and_written_unchanged(fields in conversation()) {
        let json = serde_json::to_string(&fields).unwrap();
        let request: Request = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&request).unwrap(), &*json);
        let read: Request = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
        prop_assert!(read == request);
        let from_value = Request::from_value(Value::Object(fields.clone())).unwrap();
        prop_assert!(from_value == request);

        // A turn is added after the others, which stay as they were.
        if let Some(Value::Array(before)) = fields.get("messages") {
            let longer = request.clone().user("next").tool_result("c", "done");
            let after = longer.get("messages").and_then(Value::as_array).unwrap();
            prop_assert_eq!(&after[..before.len()], &before[..]);
            prop_assert_eq!(after.len(), before.len() + 2);
            let names = |request: &Request| serde_json::to_value(request).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            prop_assert_eq!(names(&longer), names(&request));
        }
    }
}

#[test]
fn only_given_fields_are_written() {
    let request = Request::chat("m")
        .user("Hello?")
        .choice_strategy(ChoiceStrategy::Auto)
        .include_usage(false);
    let json = serde_json::to_value(&request).unwrap();
    let given = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello?" }] });
    assert_eq!(json, given);
    assert_eq!(request.body()["stream"], true);
}

#[test]
fn json_other_than_an_object_is_refused() {
    let error = serde_json::from_str::<Request>("[1]").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a request is a JSON object, not an array"),
        "{error}"
    );
}
