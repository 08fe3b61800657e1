//! A call whose choice was cut before its first argument byte is never returned as a call without arguments.

use serde_json::{Value, json};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, soon};
use crate::{CallStatus, Completions, JsonErrorKind, ToolCallHandle, json::Repair};

/// The header of a call `f` of choice 0, without arguments.
fn header() -> Step {
    let call = json!({ "index": 0, "id": "c1", "function": { "name": "f", "arguments": "" } });
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
    bytes(format!("data: {chunk}\n\n"))
}

async fn call_of(steps: impl IntoIterator<Item = Step>) -> (Completions, ToolCallHandle) {
    // The name of a call is known to be complete once the choice goes on without it. White space is not yet the text after it.
    let begin = [header(), bytes(content(0, "\n"))];
    let completions = read(begin.into_iter().chain(steps));
    let choice = soon(completions.first()).await.unwrap();
    let call = soon(choice.tool_calls().next()).await.unwrap().unwrap();
    (completions, call)
}

/// What each method that returns the call says about it once the choice has ended: its status, and whether it can be parsed.
async fn views(
    completions: &Completions,
    call: &ToolCallHandle,
) -> Vec<(Option<CallStatus>, bool)> {
    let choice = soon(completions.first()).await.unwrap();
    let finished = soon(choice.outcome()).await.message;
    let message = choice.snapshot();
    let snapshot = call.snapshot().unwrap();
    let handle = soon(call.parse::<Value>()).await.is_ok();
    let mut views = vec![(snapshot.status, handle)];
    views.push((
        snapshot.status,
        soon(call.parse_repaired::<Value>(Repair::ALL))
            .await
            .is_ok(),
    ));
    for call in [&finished.tool_calls[0], &message.tool_calls[0], &snapshot] {
        views.push((call.status, call.parse::<Value>().is_ok()));
        views.push((
            call.status,
            call.parse_repaired::<Value>(Repair::ALL).is_ok(),
        ));
    }
    views
}

#[track_caller]
fn check(views: &[(Option<CallStatus>, bool)], status: CallStatus) {
    let usable = status == CallStatus::EmptyAsObject;
    assert!(
        views.iter().all(|view| *view == (Some(status), usable)),
        "{views:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn j06_a_call_cut_before_its_arguments_is_truncated_in_every_view() {
    let error = "data: {\"error\":{\"code\":503}}\n\n";
    for steps in [
        vec![bytes(finish(0, "length")), bytes(DONE)],
        vec![bytes(finish(0, "content_filter")), bytes(DONE)],
        vec![bytes(DONE)],
        vec![],
        vec![bytes(error)],
        vec![Step::Fail],
    ] {
        let (completions, call) = call_of(steps).await;
        check(&views(&completions, &call).await, CallStatus::Truncated);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_or_discarded_call_is_not_returned() {
    let (completions, call) = call_of([Step::Stall]).await;
    completions.cancel();
    check(&views(&completions, &call).await, CallStatus::Truncated);
    let (completions, call) = call_of([bytes(finish(0, "stop")), bytes(DONE)]).await;
    soon(completions.closed()).await.unwrap();
    soon(completions.first()).await.unwrap().discard();
    assert!(call.snapshot().is_none());
    let error = soon(call.finished()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "choice 0: tool call 0: discarded after its end"
    );
}

#[tokio::test(start_paused = true)]
async fn t23_a_call_without_arguments_is_an_empty_object_if_the_model_ended_it() {
    for reason in ["stop", "tool_calls", "function_call", "eos_token"] {
        let (completions, call) = call_of([bytes(finish(0, reason)), bytes(DONE)]).await;
        check(&views(&completions, &call).await, CallStatus::EmptyAsObject);
        assert_eq!(soon(call.parse::<Value>()).await.unwrap(), json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn d14_a_call_without_arguments_is_an_empty_object_before_the_text_at_which_the_limit_cut() {
    let steps = [
        bytes(content(0, "And")),
        bytes(finish(0, "length")),
        bytes(DONE),
    ];
    let (completions, call) = call_of(steps).await;
    check(&views(&completions, &call).await, CallStatus::EmptyAsObject);
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_call_cannot_be_parsed() {
    let (_completions, call) = call_of([Step::Stall]).await;
    let snapshot = call.snapshot().unwrap();
    assert_eq!(snapshot.status, None);
    assert!(matches!(
        snapshot.parse::<Value>(),
        Err(JsonErrorKind::Truncated { bytes: 0 })
    ));
}

#[tokio::test(start_paused = true)]
async fn j17_a_lone_surrogate_is_an_error_of_its_own_and_can_be_repaired() {
    let call = json!({ "index": 0, "id": "c1", "function": { "name": "f", "arguments": "{\"a\":\"\\ud83d\"}" } });
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" }] });
    let completions = read([bytes(format!("data: {chunk}\n\n")), bytes(DONE)]);
    let choice = soon(completions.first()).await.unwrap();
    let call = soon(choice.tool_calls().next()).await.unwrap().unwrap();
    assert_eq!(
        soon(call.finished()).await.unwrap().status,
        Some(CallStatus::Repaired)
    );
    let error = soon(call.parse::<Value>()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "choice 0: tool call 0: a lone surrogate is escaped at byte 6: the text is JSON only after a repair"
    );
    let value: Value = soon(call.parse_repaired(Repair::default())).await.unwrap();
    assert_eq!(value, json!({ "a": "\u{fffd}" }));
}
