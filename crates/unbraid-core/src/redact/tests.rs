use serde_json::{Value, json};

use super::Redact;
use crate::{ChoiceIndex, Config, Demux, StreamError, limits::MAX_REDACTED_BYTES};

const KEY: &str = "sk-0\"/secret";

fn redact() -> Redact {
    Redact::new(|text| text.replace(KEY, "[key]").replace("31415926", "[number]"))
}

fn read(stream: &str) -> Demux {
    let mut demux = Demux::new(Config {
        redact: redact(),
        ..Config::default()
    });
    demux.feed(stream.as_bytes());
    demux.finish();
    demux
}

/// Returns everything that a reader may print of a stream.
fn printed(demux: &mut Demux) -> String {
    let closed = demux.closed().cloned();
    let error = closed.as_ref().and_then(|closed| closed.as_ref().err());
    let mut printed = vec![
        format!("{closed:?} {}", demux.aggregate_json()),
        error.map_or_else(String::new, |error| {
            format!("{error} {}", serde_json::json!(error))
        }),
        format!("{:?} {:?}", demux.metadata(), demux.warnings()),
    ];
    while let Some(event) = demux.next_event() {
        printed.push(serde_json::json!(event).to_string());
    }
    for choice in demux.choices() {
        let end = choice.end().map(|end| serde_json::json!(end.cause()));
        printed.push(format!("{end:?} {:?} {:?}", choice.end(), choice.message()));
    }
    printed.concat()
}

/// The output contains the replacement and no secret.
#[track_caller]
fn check(stream: &str) {
    let printed = printed(&mut read(stream));
    assert!(!printed.contains("secret"), "{printed}");
    assert!(printed.contains("[key]"), "{printed}");
}

#[test]
fn a_secret_is_in_no_error_of_a_stream() {
    for key in [
        r#"sk-0\"/secret"#,
        r#"sk-0\"\/secret"#,
        r#"\u0073k-0\"/secret"#,
    ] {
        let object =
            format!(r#"{{"message":"no {key}!","type":"{key}","code":"{key}","{key}":1}}"#);
        for body in [
            format!("data: {{\"error\":{object}}}\n\n"),
            format!("{{\"error\":{object}}}"),
            format!("data: {{\"error\":\"no {key}\"}}\n\n"),
            format!("data: {{\"object\":\"error\",\"message\":\"no {key}\",\"code\":7}}\n\n"),
            format!("data: {{\"detail\":[{{\"msg\":\"no {key}\"}}]}}\n\n"),
            format!("data: {{\"message\":\"no {key}\"}}\n\n"),
            format!("{{\"message\":\"no {key}\"}}"),
            format!("event: error\ndata: {object}\n\n"),
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}}}}]}}\n\ndata: {{\"error\":{object},\"note\":\"{key}\"}}\n\n"
            ),
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"error\"}}],\"error\":{object}}}\n\n"
            ),
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"note\":\"{key}\",\"error\":{object}}}]}}\n\n"
            ),
        ] {
            check(&body);
        }
    }
    check("event: error\ndata: no sk-0\"/secret!\n\n");
}

fn error(stream: &str) -> Value {
    let demux = read(stream);
    let Some(Err(StreamError::Server(error))) = demux.closed() else {
        panic!("{:?}", demux.closed());
    };
    error.body().clone()
}

#[test]
fn an_error_keeps_its_structure() {
    let body = error(
        "data: {\"error\":{\"message\":\"no sk-0\\\"/secret!\",\"code\":400,\"more\":[null,true]}}\n\n",
    );
    let expected = json!({ "message": "no [key]!", "code": 400, "more": [null, true] });
    assert_eq!(body, json!({ "error": expected }));
    let body = error("data: {\"error\":{\"message\":\"no\",\"code\":31415926}}\n\n");
    assert_eq!(
        body["error"],
        json!({ "message": "no", "code": "[number]" })
    );
}

#[test]
fn an_error_without_a_secret_keeps_every_digit() {
    let raw = r#"{"error":{"message":"no","at":1234567890123456789012,"a":1,"a":2}}"#;
    let mut demux = Demux::new(Config::default());
    demux.feed(format!("data: {raw}\n\n").as_bytes());
    let Some(Err(StreamError::Server(unredacted))) = demux.closed() else {
        panic!("{:?}", demux.closed());
    };
    assert_eq!(&error(&format!("data: {raw}\n\n")), unredacted.body());
}

#[test]
fn a_secret_that_is_split_over_strings_is_replaced() {
    let redact = Redact::new(|text| text.replace("one\",\"two", "[key]"));
    let mut demux = Demux::new(Config {
        redact,
        ..Config::default()
    });
    demux.feed(b"data: {\"error\":[\"one\",\"two\",\"three\"]}\n\n");
    let Some(Err(StreamError::Server(error))) = demux.closed() else {
        panic!("{:?}", demux.closed());
    };
    assert_eq!(error.body(), &json!({ "error": ["[key]", "three"] }));
}

#[test]
fn a_secret_in_the_first_of_equal_keys_is_replaced() {
    let body =
        error("data: {\"error\":{\"message\":\"no sk-0\\\"/secret!\",\"message\":\"no\"}}\n\n");
    assert_eq!(body, json!({ "error": { "message": "no" } }));
}

#[test]
fn the_text_of_a_choice_is_not_changed() {
    let demux =
        read("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"sk-0\\\"/secret\"}}]}\n\n");
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    assert_eq!(choice.message().content, KEY);
}

#[test]
fn the_kept_length_of_an_error_is_bounded() {
    let long = |bytes: usize| format!("data: {{\"error\":\"{}\"}}\n\n", "x".repeat(bytes));
    let names = "error".len() + 2; // the object and its value count as one byte each
    for (bytes, kept) in [
        (MAX_REDACTED_BYTES - names, MAX_REDACTED_BYTES - names),
        (MAX_REDACTED_BYTES, MAX_REDACTED_BYTES - names),
        (8 * MAX_REDACTED_BYTES, MAX_REDACTED_BYTES - names),
    ] {
        let body = error(&long(bytes));
        assert_eq!(body["error"].as_str().map(str::len), Some(kept), "{bytes}");
    }
    let many = format!("data: {{\"error\":[{}1]}}\n\n", "1,".repeat(100_000));
    assert!(error(&many)["error"].as_array().unwrap().len() < MAX_REDACTED_BYTES);
}

#[test]
fn combined_redactions_are_both_applied() {
    let one = Redact::new(|text| text.replace("one", "1"));
    let both = one
        .clone()
        .and(Redact::new(|text| text.replace("two", "2")));
    let mut demux = Demux::new(Config {
        redact: both.and(Redact::default()),
        ..Config::default()
    });
    demux.feed(b"data: {\"error\":\"one two\"}\n\n");
    let Some(Err(StreamError::Server(error))) = demux.closed() else {
        panic!("{:?}", demux.closed());
    };
    assert_eq!(error.message(), Some("1 2"));
    assert_eq!(one.clone().and(one.clone()), one);
    assert_eq!(
        format!("{one:?} {:?}", Redact::default()),
        "Redact(..) Redact(none)"
    );
}
