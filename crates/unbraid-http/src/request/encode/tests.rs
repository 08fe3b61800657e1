use bytes::Bytes;
use serde_json::{Value, json};

use crate::{Provider, Request};

fn text(parts: &[Bytes]) -> String {
    String::from_utf8(parts.concat()).unwrap()
}

/// The bodies of a fan-out equal those of separate requests with these fields.
#[track_caller]
fn check(request: Value, n: u32, varying: &[Value]) {
    let request = Request::from_value(request).unwrap();
    let bodies = request.encode_fan_out(Provider::OpenAi, n).unwrap();
    for (index, fields) in varying.iter().enumerate() {
        let mut one = request.clone();
        one.remove("n");
        for (name, value) in fields.as_object().unwrap() {
            one.set(name, value.clone());
        }
        let sent = text(&bodies.body(index as u32));
        assert_eq!(sent, one.body().to_string(), "choice {index}");
    }
}

#[test]
fn the_encoded_text_equals_the_body() {
    for request in [
        json!({}),
        json!({ "model": "m", "messages": [{ "role": "user", "content": "\"\\\u{1F980}\n" }] }),
        json!({ "stream": false, "model": "m", "stream_options": null, "n": 3 }),
        json!({ "stream_options": { "include_usage": false }, "temperature": 0.7, "x\"": [1e300] }),
        json!({ "stream_options": "odd", "seed": -1 }),
    ] {
        for include in [true, false] {
            let request = Request::from_value(request.clone()).unwrap();
            let request = request.include_usage(include);
            assert_eq!(
                text(&[request.encode(Provider::OpenAi).unwrap()]),
                request.body().to_string()
            );
        }
    }
}

#[test]
fn each_choice_has_its_own_seed_and_no_n() {
    check(
        json!({ "model": "m", "n": 3, "seed": 7, "messages": [] }),
        3,
        &[
            json!({ "seed": 7 }),
            json!({ "seed": 8 }),
            json!({ "seed": 9 }),
        ],
    );
    check(
        json!({ "seed": i64::MAX, "messages": [] }),
        2,
        &[json!({ "seed": i64::MAX }), json!({ "seed": i64::MIN })],
    );
    check(
        json!({ "seed": u64::MAX - 1, "messages": [] }),
        3,
        &[
            json!({ "seed": u64::MAX - 1 }),
            json!({ "seed": u64::MAX }),
            json!({ "seed": 0 }),
        ],
    );
    for odd in [json!(1.5), json!("7"), json!(null)] {
        check(json!({ "seed": odd }), 2, &[json!({}), json!({})]);
    }
}

#[test]
fn each_choice_has_its_own_prompt() {
    let fields = |prompt: &str, seed: u32| json!({ "prompt": prompt, "seed": seed });
    check(
        json!({ "seed": 1, "prompt": ["a", "b\""], "model": "m", "n": 2 }),
        2,
        &[
            fields("a", 1),
            fields("a", 2),
            fields("b\"", 3),
            fields("b\"", 4),
        ],
    );
    check(
        json!({ "prompt": [[1, 2], [3]], "model": "m" }),
        1,
        &[json!({ "prompt": [1, 2] }), json!({ "prompt": [3] })],
    );
    for single in [json!("a"), json!([1, 2]), json!([])] {
        let same = json!({ "prompt": single });
        check(same.clone(), 2, &[same.clone(), same]);
    }
}

#[test]
fn the_shared_text_is_not_copied() {
    let request = Request::chat("m").user("x".repeat(1000)).seed(1).n(3);
    let bodies = request.encode_fan_out(Provider::OpenAi, 3).unwrap();
    let [first, second] = [bodies.body(0), bodies.body(1)];
    assert_eq!(first.len(), 3);
    assert_eq!(first[0].as_ptr(), second[0].as_ptr());
    assert_eq!(first[2].as_ptr(), second[2].as_ptr());
}
