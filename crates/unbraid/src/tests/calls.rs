//! Function calls while they stream.

mod json_text;
mod ready;
mod tools;

use std::time::Duration;

use futures::TryStreamExt;
use serde_json::{Value, json};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, read_with, soon};
use crate::{CallKind, CallStatus, Choice, Completions, JsonError, JsonErrorKind, ToolCallHandle};

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
            .map(|chars| fragment(0, 0, &chars.iter().collect::<String>())),
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
fn error_kind<T: std::fmt::Debug>(result: Result<T, JsonError>) -> String {
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
async fn parallel_calls_are_announced_as_they_begin_and_read_separately() {
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
    let mut announced = choice.tool_calls();
    let before = tokio::time::Instant::now();
    let second = async {
        let one = announced.next().await.unwrap().unwrap();
        (one, announced.next().await.unwrap().unwrap())
    };
    let (one, two) = soon(second).await;
    assert_eq!(before.elapsed(), SECOND);
    assert_eq!(soon(two.parse::<Value>()).await.unwrap(), json!({ "y": 2 }));
    assert_eq!(soon(one.parse::<Value>()).await.unwrap(), json!({ "x": 1 }));
    let replayed = calls(&choice).await;
    assert_eq!(
        replayed
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
async fn t24_equal_fragments_are_all_returned() {
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
    assert_eq!(error_kind(soon(call.parse::<Value>()).await), "CustomTool");

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
async fn a_cut_choice_cuts_its_calls() {
    let completions = read([
        header(0, 0, "c", "f"),
        fragment(0, 0, "{\"a\":\"b"),
        Step::Fail,
    ]);
    let call = first_call(&completions).await;
    let error = soon(call.finished()).await.unwrap_err();
    assert!(
        matches!(error.kind(), JsonErrorKind::Choice(error) if error.end().as_str() == "transport")
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
async fn t2_t13_a_missing_name_or_id_is_reported() {
    let nameless = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{}" } }] });
    let completions = read([delta(0, &nameless), bytes(DONE)]);
    let nameless_call = first_call(&completions).await;
    assert_eq!(
        soon(nameless_call.finished()).await.unwrap().status,
        Some(CallStatus::MissingName)
    );
    assert_eq!(
        error_kind(soon(nameless_call.parse::<Value>()).await),
        "MissingName"
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
async fn t16_the_tools_of_the_request_decide_a_name_in_pieces() {
    let name_delta = |name: &str| {
        bytes(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{name}\"}}}}]}}}}]}}\n\n"
        ))
    };
    let steps = || [name_delta("search"), name_delta("web_search"), bytes(DONE)];
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
async fn a_late_id_is_returned_without_copying_the_arguments() {
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
