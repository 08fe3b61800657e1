//! Function calls while they stream.

use std::time::Duration;

use futures::{FutureExt, TryStreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, read_with, soon};
use crate::{
    CallKind, CallStatus, Choice, Completions, JsonError, JsonErrorKind, ToolCallHandle,
    json::Repair,
};

const SECOND: Duration = Duration::from_secs(1);

/// A chunk of one choice's delta.
fn delta(choice: u32, delta: &Value) -> Step {
    let chunk = json!({ "choices": [{ "index": choice, "delta": delta }] });
    bytes(format!("data: {chunk}\n\n"))
}

fn header(choice: u32, index: i64, id: &str, name: &str) -> Step {
    let call = json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
    delta(choice, &json!({ "tool_calls": [call] }))
}

fn fragment(choice: u32, index: i64, arguments: &str) -> Step {
    let call = json!({ "index": index, "function": { "arguments": arguments } });
    delta(choice, &json!({ "tool_calls": [call] }))
}

/// One call `f` with these arguments, in fragments of three bytes; the choice ends with this reason.
async fn one_call(arguments: &str, reason: &str) -> (Completions, ToolCallHandle) {
    let mut steps = vec![header(0, 0, "c1", "f")];
    let chars: Vec<char> = arguments.chars().collect();
    steps.extend(
        chars
            .chunks(3)
            .map(|piece| fragment(0, 0, &piece.iter().collect::<String>())),
    );
    steps.extend([bytes(finish(0, reason)), bytes(DONE)]);
    let completions = read(steps);
    let call = first_call(&completions).await;
    (completions, call)
}

async fn first_call(completions: &Completions) -> ToolCallHandle {
    let choice = soon(completions.first()).await.unwrap();
    soon(choice.tool_calls().next()).await.unwrap().unwrap()
}

async fn calls(choice: &Choice) -> Vec<ToolCallHandle> {
    soon(choice.tool_calls().try_collect()).await.unwrap()
}

#[track_caller]
fn fault<T: std::fmt::Debug>(result: Result<T, JsonError>) -> String {
    format!("{:?}", result.unwrap_err().kind())
}

#[tokio::test(start_paused = true)]
async fn r26_fragmented_arguments_make_one_call() {
    let completions = read([
        header(0, 0, "call_1", "get_weather"),
        fragment(0, 0, "{\"city\":"),
        fragment(0, 0, "\"Oslo\"}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let calls = calls(&choice).await;
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert_eq!(
        (
            call.id().as_deref(),
            &*call.name(),
            call.wire_index(),
            call.call_index()
        ),
        (Some("call_1"), "get_weather", Some(0), crate::CallIndex(0))
    );
    let fragments: Vec<_> = soon(call.arguments().try_collect()).await.unwrap();
    assert_eq!(fragments, ["{\"city\":", "\"Oslo\"}"]);
    assert_eq!(
        soon(call.parse::<Value>()).await.unwrap(),
        json!({ "city": "Oslo" })
    );
    assert_eq!(
        soon(call.finished()).await.unwrap().status,
        Some(CallStatus::Complete)
    );
}

#[tokio::test(start_paused = true)]
async fn r26_arguments_in_one_chunk_make_the_same_call() {
    let call = json!({ "index": 0, "id": "call_1", "function": { "name": "get_weather", "arguments": "{\"city\":\"Oslo\"}" } });
    let completions = read([
        delta(0, &json!({ "tool_calls": [call] })),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ]);
    let call = first_call(&completions).await;
    assert_eq!(
        soon(call.parse::<Value>()).await.unwrap(),
        json!({ "city": "Oslo" })
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_are_told_as_they_begin_and_read_apart() {
    let completions = read([
        header(0, 0, "a", "one"),
        Step::Pause(SECOND),
        header(0, 1, "b", "two"),
        fragment(0, 0, "{\"x\":"),
        fragment(0, 1, "{\"y\":"),
        fragment(0, 1, "2}"),
        fragment(0, 0, "1}"),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let mut told = choice.tool_calls();
    let before = tokio::time::Instant::now();
    let second = async {
        let one = told.next().await.unwrap().unwrap();
        (one, told.next().await.unwrap().unwrap())
    };
    let (one, two) = soon(second).await;
    assert_eq!(before.elapsed(), SECOND);
    assert_eq!(soon(two.parse::<Value>()).await.unwrap(), json!({ "y": 2 }));
    assert_eq!(soon(one.parse::<Value>()).await.unwrap(), json!({ "x": 1 }));
    let again = calls(&choice).await;
    assert_eq!(
        again
            .iter()
            .map(|call| call.name().to_string())
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
}

#[tokio::test(start_paused = true)]
async fn t18_arguments_before_the_name_are_replayed_in_order() {
    let completions = read([
        fragment(0, 0, "{\"a\""),
        fragment(0, 0, ":1"),
        header(0, 0, "c", "late"),
        fragment(0, 0, "}"),
        bytes(DONE),
    ]);
    let call = first_call(&completions).await;
    assert_eq!(&*call.name(), "late");
    let text: String = soon(call.arguments().try_collect()).await.unwrap();
    assert_eq!(text, "{\"a\":1}");
}

#[tokio::test(start_paused = true)]
async fn t24_equal_fragments_are_all_given() {
    let steps = [
        header(0, 0, "c", "f"),
        fragment(0, 0, "[1"),
        fragment(0, 0, ",1"),
        fragment(0, 0, ",1"),
        fragment(0, 0, "]"),
        bytes(DONE),
    ];
    let call = first_call(&read(steps)).await;
    let fragments: Vec<_> = soon(call.arguments().try_collect()).await.unwrap();
    assert_eq!(fragments, ["[1", ",1", ",1", "]"]);
}

#[tokio::test(start_paused = true)]
async fn t31_t36_custom_tools_and_legacy_functions_are_calls_too() {
    let custom = json!({ "tool_calls": [{ "index": 0, "id": "c", "type": "custom", "custom": { "name": "sh", "input": "ls {" } }] });
    let completions = read([delta(0, &custom), bytes(DONE)]);
    let call = first_call(&completions).await;
    assert_eq!((call.kind(), &*call.name()), (CallKind::Custom, "sh"));
    assert_eq!(soon(call.finished()).await.unwrap().arguments, "ls {");
    assert_eq!(fault(soon(call.parse::<Value>()).await), "Json(CustomTool)");

    let legacy = |name: &str, arguments: &str| {
        delta(
            0,
            &json!({ "function_call": { "name": name, "arguments": arguments } }),
        )
    };
    let completions = read([
        legacy("f", "{\"a\""),
        legacy("", ":1}"),
        bytes(finish(0, "function_call")),
        bytes(DONE),
    ]);
    let call = first_call(&completions).await;
    assert_eq!(call.kind(), CallKind::LegacyFunction);
    assert_eq!(
        soon(call.parse::<Value>()).await.unwrap(),
        json!({ "a": 1 })
    );
}

#[tokio::test(start_paused = true)]
async fn j22_a_field_is_typed_from_its_first_character_while_the_call_is_open() {
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
        "it is whole, although the call is not"
    );
    let again: String = soon(call.field("/answer").try_collect()).await.unwrap();
    assert_eq!(again, "It raïns\n");
    let mut open = call.field("/more");
    assert_eq!(soon(open.next()).await.unwrap().unwrap(), "x");
    assert!(open.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_field_that_cannot_come_ends_with_one_typed_error() {
    let arguments = r#"{"n":5,"s":"x","list":["a",{"b":"deep"}]}"#;
    let (_completions, call) = one_call(arguments, "tool_calls").await;
    for (pointer, expected) in [
        ("/s", Ok("x")),
        ("/list/0", Ok("a")),
        ("/list/1/b", Ok("deep")),
        ("/n", Err("Json(Field(NotAString))")),
        ("/list", Err("Json(Field(NotAString))")),
        ("/absent", Err("Json(Field(Absent))")),
        ("/list/2", Err("Json(Field(Absent))")),
        ("s", Err("Json(Pointer(NoSlash))")),
    ] {
        let mut field = call.field(pointer);
        let mut text = String::new();
        let mut error = None;
        while let Some(item) = soon(field.next()).await {
            match item {
                Ok(delta) => text.push_str(&delta),
                Err(fault) => error = Some(format!("{:?}", fault.kind())),
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
    assert_eq!(fault(soon(field.next()).await.unwrap()), "Json(Field(Cut))");
}

#[tokio::test(start_paused = true)]
async fn j19_the_value_so_far_grows_and_is_no_sign_of_an_end() {
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

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only its shape counts")]
struct Weather {
    city: String,
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
        "D15: the raw text stays"
    );
    for (arguments, expected) in [
        ("{\"city\":\"Os", "Json(Truncated { bytes: 11 })"),
        (
            "{\"city\":\"a\"}{\"city\":\"b\"}",
            "Json(Concatenated { offset: 12 })",
        ),
        ("{\"city\":oops}", "Json(Invalid { offset: 8 })"),
        ("{\"city\":5}", "Json(Shape(TypeMismatch(Data, (1, 9))))"),
        ("", "Json(Shape(TypeMismatch(Data, (1, 2))))"),
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
        fault(soon(call.parse::<Value>()).await).starts_with("Json(TooDeep"),
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
            text.contains("choice 0: tool call 0") || text.contains("Json("),
            "{text}"
        );
    }
    let (_completions, call) = one_call("{\"city\":{\"SECRET\":1}}", "tool_calls").await;
    let error = soon(call.parse::<Weather>()).await.unwrap_err();
    let JsonErrorKind::TypeMismatch(shape) = error.kind() else {
        panic!()
    };
    assert!(!format!("{error} {error:?}").contains("SECRET"));
    assert!(shape.detail().contains("expected a string"));
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_is_cut_cuts_its_calls() {
    let completions = read([
        header(0, 0, "c", "f"),
        fragment(0, 0, "{\"a\":\"b"),
        Step::Fail,
    ]);
    let call = first_call(&completions).await;
    let error = soon(call.finished()).await.unwrap_err();
    assert!(
        matches!(error.kind(), JsonErrorKind::Choice(cut) if cut.end().as_str() == "transport")
    );
    assert_eq!(error.raw(), "{\"a\":\"b");
    let mut arguments = call.arguments();
    assert_eq!(soon(arguments.next()).await.unwrap().unwrap(), "{\"a\":\"b");
    assert_eq!(
        soon(arguments.next())
            .await
            .unwrap()
            .unwrap_err()
            .end()
            .as_str(),
        "transport"
    );
    assert!(soon(arguments.next()).await.is_none());
    let mut field = call.field("/a");
    assert_eq!(soon(field.next()).await.unwrap().unwrap(), "b");
    assert!(matches!(
        soon(field.next()).await.unwrap().unwrap_err().kind(),
        JsonErrorKind::Choice(_)
    ));
    let choice = soon(completions.first()).await.unwrap();
    let ended: Result<Vec<_>, _> = soon(choice.tool_calls().try_collect()).await;
    assert_eq!(ended.unwrap_err().end().as_str(), "transport");
}

#[tokio::test(start_paused = true)]
async fn t2_t13_what_never_came_is_named() {
    let nameless = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{}" } }] });
    let completions = read([delta(0, &nameless), bytes(DONE)]);
    let orphan = first_call(&completions).await;
    assert_eq!(
        soon(orphan.finished()).await.unwrap().status,
        Some(CallStatus::MissingName)
    );
    assert_eq!(
        fault(soon(orphan.parse::<Value>()).await),
        "Json(MissingName)"
    );
    let without_id =
        json!({ "tool_calls": [{ "index": 0, "function": { "name": "f", "arguments": "{}" } }] });
    let completions = read([delta(0, &without_id), bytes(DONE)]);
    let call = first_call(&completions).await;
    assert_eq!(
        soon(call.finished()).await.unwrap().status,
        Some(CallStatus::MissingId)
    );
    assert_eq!(soon(call.parse::<Value>()).await.unwrap(), json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_call_may_be_run_while_other_choices_stream() {
    let completions = read([
        header(0, 0, "c", "f"),
        bytes(content(1, "slow")),
        fragment(0, 0, "{}"),
        bytes(finish(0, "tool_calls")),
        bytes(content(1, " choice")),
        Step::Stall,
    ]);
    let call = first_call(&completions).await;
    assert_eq!(soon(call.parse::<Value>()).await.unwrap(), json!({}));
}

#[tokio::test(start_paused = true)]
async fn content_in_json_mode_has_fields_and_a_type() {
    let completions = read([
        bytes(content(0, "{\"city\":\"Os")),
        bytes(content(0, "lo\"}")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let json = soon(completions.first()).await.unwrap().content_json();
    let typed: Vec<_> = soon(json.field("/city").try_collect()).await.unwrap();
    assert_eq!(typed, ["Os", "lo"]);
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
async fn t16_the_tools_of_the_request_settle_a_name_in_pieces() {
    let piece = |name: &str| {
        bytes(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{name}\"}}}}]}}}}]}}\n\n"
        ))
    };
    let steps = || [piece("search"), piece("web_search"), bytes(DONE)];
    let request = serde_json::json!({
        "tools": [{ "type": "custom", "custom": { "name": "other" } }],
        "functions": [{ "name": "web_search" }],
    });
    for (builder, expected) in [
        (Completions::builder(), "searchweb_search"),
        (Completions::builder().request(&request), "web_search"),
    ] {
        let choice = soon(read_with(builder, steps()).first()).await.unwrap();
        let message = soon(choice.outcome()).await.message;
        assert_eq!(&*message.tool_calls[0].name, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_that_comes_late_is_given_without_a_copy_of_the_arguments() {
    let call = |rest: &str| {
        bytes(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,{rest}}}]}}}}]}}\n\n"
        ))
    };
    let completions = read([
        call("\"function\":{\"name\":\"f\",\"arguments\":\"[1\"}"),
        Step::Pause(SECOND),
        call("\"id\":\"late\",\"function\":{\"arguments\":\"]\"}"),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let call = soon(choice.tool_calls().next()).await.unwrap().unwrap();
    assert_eq!(call.id(), None);
    soon(completions.closed()).await.unwrap();
    let ids = [call.id().unwrap(), call.id().unwrap()];
    assert_eq!(&*ids[0], "late");
    assert!(std::sync::Arc::ptr_eq(&ids[0], &ids[1]));
}
