//! JSON of a call or of content: one field while it is written, the value so far, and the parsed value.

use std::time::Duration;

use futures::{FutureExt, TryStreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{SECOND, error_kind, first_call, fragment, header, one_call};
use crate::{
    JsonErrorKind,
    json::Repair,
    tests::{read, soon},
};

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only its type matters")]
struct Weather {
    city: String,
}

#[tokio::test(start_paused = true)]
async fn j22_a_field_streams_from_its_first_character_while_the_call_is_open() {
    let completions = read([
        header(0, 0, "c", "answer"),
        fragment(0, 0, "{\"question\":\"\\\"answer\\\":\\\"no\\\"\",\"ans"),
        fragment(0, 0, "wer\":\"It"),
        Step::Pause(SECOND),
        fragment(0, 0, " ra\\u00"),
        fragment(0, 0, "efns\\n"),
        fragment(0, 0, "\",\"more\":\"x"),
        Step::Stall,
    ]);
    let call = first_call(&completions).await;
    let mut field = call.field("/answer");
    let before = tokio::time::Instant::now();
    assert_eq!(soon(field.next()).await.unwrap().unwrap(), "It");
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(soon(field.next()).await.unwrap().unwrap(), " ra");
    assert_eq!(soon(field.next()).await.unwrap().unwrap(), "ïns\n");
    assert!(
        soon(field.next()).await.is_none(),
        "the field is complete, although the call is not"
    );
    let replayed: String = soon(call.field("/answer").try_collect()).await.unwrap();
    assert_eq!(replayed, "It raïns\n");
    let mut open = call.field("/more");
    assert_eq!(soon(open.next()).await.unwrap().unwrap(), "x");
    assert!(open.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_field_that_cannot_be_read_ends_with_one_typed_error() {
    let arguments = r#"{"n":5,"s":"x","list":["a",{"b":"deep"}]}"#;
    let (_completions, call) = one_call(arguments, "tool_calls").await;
    for (pointer, expected) in [
        ("/s", Ok("x")),
        ("/list/0", Ok("a")),
        ("/list/1/b", Ok("deep")),
        ("/n", Err("Field(NotAString)")),
        ("/list", Err("Field(NotAString)")),
        ("/absent", Err("Field(Absent)")),
        ("/list/2", Err("Field(Absent)")),
        ("s", Err("Pointer(NoSlash)")),
    ] {
        let mut field = call.field(pointer);
        let mut text = String::new();
        let mut error = None;
        while let Some(item) = soon(field.next()).await {
            match item {
                Ok(delta) => text.push_str(&delta),
                Err(item) => error = Some(format!("{:?}", item.kind())),
            }
        }
        assert_eq!(
            error.as_deref().map_or(Ok(text.as_str()), Err),
            expected,
            "{pointer}"
        );
        assert!(soon(field.next()).await.is_none());
    }
    let (_completions, cut) = one_call("{\"s\":\"ab", "length").await;
    let mut field = cut.field("/s");
    assert_eq!(soon(field.next()).await.unwrap().unwrap(), "ab");
    assert_eq!(error_kind(soon(field.next()).await.unwrap()), "Field(Cut)");
}

#[tokio::test(start_paused = true)]
async fn j19_the_value_so_far_grows_and_does_not_show_an_end() {
    let completions = read([
        header(0, 0, "c", "f"),
        fragment(0, 0, "{\"a\":1"),
        Step::Pause(SECOND),
        fragment(0, 0, "2,\"b\":[\"x"),
        Step::Pause(SECOND),
        fragment(0, 0, "y\"]}"),
        Step::Stall,
    ]);
    let call = first_call(&completions).await;
    tokio::time::sleep(SECOND / 2).await;
    assert_eq!(call.partial(), Some(json!({})));
    let clone = call.clone();
    tokio::time::sleep(SECOND).await;
    assert_eq!(call.partial(), Some(json!({ "a": 12, "b": ["x"] })));
    tokio::time::sleep(SECOND).await;
    assert_eq!(clone.partial(), Some(json!({ "a": 12, "b": ["xy"] })));
    assert!(
        call.parse::<Value>().now_or_never().is_none(),
        "T27: the choice is open"
    );
    assert_eq!(call.snapshot().unwrap().status, None);
}

#[tokio::test(start_paused = true)]
async fn parsing_is_strict_unless_asked() {
    let raw = "{\"city\":\"Os\nlo\"}";
    let (_completions, call) = one_call(raw, "tool_calls").await;
    let error = soon(call.parse::<Weather>()).await.unwrap_err();
    assert!(matches!(error.kind(), JsonErrorKind::NeedsRepair));
    assert_eq!(error.raw(), raw);
    let repaired: Value = soon(call.parse_repaired(Repair::default())).await.unwrap();
    assert_eq!(repaired["city"], "Os\nlo");
    assert_eq!(
        soon(call.finished()).await.unwrap().arguments,
        raw,
        "the raw text stays"
    );
    for (arguments, expected) in [
        ("{\"city\":\"Os", "Truncated { bytes: 11 }"),
        (
            "{\"city\":\"a\"}{\"city\":\"b\"}",
            "Concatenated { offset: 12 }",
        ),
        ("{\"city\":oops}", "Invalid { offset: 8 }"),
        ("{\"city\":5}", "TypeMismatch(TypeMismatch(Data, (1, 9)))"),
        ("", "TypeMismatch(TypeMismatch(Data, (1, 2)))"),
    ] {
        let (_completions, call) = one_call(arguments, "tool_calls").await;
        let error = soon(call.parse::<Weather>()).await.unwrap_err();
        assert_eq!(format!("{:?}", error.kind()), expected);
        assert_eq!(error.raw(), arguments);
    }
    let (_completions, empty) = one_call(" ", "tool_calls").await;
    assert_eq!(
        soon(empty.parse::<Value>()).await.unwrap(),
        json!({}),
        "T23"
    );
    let deep = "[".repeat(200) + &"]".repeat(200);
    let (_completions, call) = one_call(&deep, "tool_calls").await;
    assert!(
        error_kind(soon(call.parse::<Value>()).await).starts_with("TooDeep"),
        "J16"
    );
}

#[tokio::test(start_paused = true)]
async fn no_error_of_a_call_shows_its_text() {
    let (_completions, call) = one_call("{\"city\":\"SECRET\",\"n\":SECRET", "length").await;
    let error = soon(call.parse::<Value>()).await.unwrap_err();
    for text in [
        error.to_string(),
        format!("{error:?}"),
        format!("{:?}", error.kind()),
    ] {
        assert!(!text.contains("SECRET"), "{text}");
        assert!(
            text.contains("choice 0: tool call 0") || text.starts_with("Invalid"),
            "{text}"
        );
    }
    let (_completions, call) = one_call("{\"city\":{\"SECRET\":1}}", "tool_calls").await;
    let error = soon(call.parse::<Weather>()).await.unwrap_err();
    let JsonErrorKind::TypeMismatch(mismatch) = error.kind() else {
        panic!()
    };
    assert!(!format!("{error} {error:?}").contains("SECRET"));
    assert!(mismatch.detail().contains("expected a string"));
}

#[tokio::test(start_paused = true)]
async fn content_in_json_mode_has_fields_and_is_parsed() {
    let completions = read([
        bytes(content(0, "{\"city\":\"Os")),
        bytes(content(0, "lo\"}")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let json = soon(completions.first()).await.unwrap().content_json();
    let deltas: Vec<_> = soon(json.field("/city").try_collect()).await.unwrap();
    assert_eq!(deltas, ["Os", "lo"]);
    assert_eq!(json.partial(), Some(json!({ "city": "Oslo" })));
    soon(json.parse::<Weather>()).await.unwrap();
    let completions = read([
        bytes(content(0, "{\"city\":\"Os")),
        bytes(finish(0, "length")),
        bytes(DONE),
    ]);
    let json = soon(completions.first()).await.unwrap().content_json();
    let error = soon(json.parse::<Weather>()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "choice 0: content: the text ends inside its JSON, after 11 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn empty_content_and_content_that_may_be_cut_are_refused() {
    let of = async |text: &str, reason: &str| {
        let completions = read([
            bytes(content(0, text)),
            bytes(finish(0, reason)),
            bytes(DONE),
        ]);
        let choice = soon(completions.first()).await.unwrap();
        let json = choice.content_json();
        let strict = soon(json.parse::<Value>()).await;
        let repaired = soon(json.parse_repaired::<Value>(Repair::ALL)).await;
        assert_eq!(strict.is_ok(), repaired.is_ok(), "{text} {reason}");
        strict.map_err(|error| matches!(error.kind(), JsonErrorKind::Truncated { .. }))
    };
    for (text, reason) in [
        ("", "stop"),
        (" ", "stop"),
        ("", "content_filter"),
        ("12", "length"),
        ("12", "error"),
    ] {
        assert_eq!(of(text, reason).await, Err(true), "{text} {reason}");
    }
    assert_eq!(of("12", "stop").await, Ok(json!(12)));
    assert_eq!(of("{}", "length").await, Ok(json!({})));
}
