//! The running aggregate, and other methods that never wait.

use std::time::Duration;

use serde_json::{Value, json};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, read_with, soon};
use crate::{Completions, Limits, Source};

const SECOND: Duration = Duration::from_secs(1);

fn pause() -> Step {
    Step::Pause(SECOND)
}

fn texts(response: &Value) -> Vec<(u64, &str, Option<&str>)> {
    let choices = response["choices"].as_array().unwrap();
    choices
        .iter()
        .map(|choice| {
            let text = choice["message"]["content"].as_str().unwrap_or_default();
            let index = choice["index"].as_u64().unwrap();
            (index, text, choice["finish_reason"].as_str())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_the_state_after_each_message() {
    let completions = read([
        bytes(content(1, "He")),
        pause(),
        bytes(content(0, "Hi")),
        pause(),
        bytes(content(1, "llo")),
        pause(),
        bytes(finish(1, "stop")),
        pause(),
        bytes(finish(0, "length")),
        bytes(DONE),
    ]);
    assert_eq!(completions.snapshot()["choices"], json!([]));
    tokio::time::sleep(SECOND / 2).await;
    let expected = [
        vec![(1, "He", None)],
        vec![(0, "Hi", None), (1, "He", None)],
        vec![(0, "Hi", None), (1, "Hello", None)],
        vec![(0, "Hi", None), (1, "Hello", Some("stop"))],
        vec![(0, "Hi", Some("length")), (1, "Hello", Some("stop"))],
    ];
    for expected in expected {
        assert_eq!(texts(&completions.snapshot()), expected);
        tokio::time::sleep(SECOND).await;
    }
    let aggregate = soon(completions.aggregate()).await;
    assert_eq!(completions.snapshot(), aggregate);
}

#[tokio::test(start_paused = true)]
async fn the_last_snapshot_holds_the_usage() {
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":7}}\n\n";
    let completions = read([bytes(content(0, "Hi")), bytes(usage), pause(), bytes(DONE)]);
    soon(completions.first()).await.unwrap();
    assert!(completions.snapshot()["usage"].is_null());
    soon(completions.closed()).await.unwrap();
    assert_eq!(completions.snapshot()["usage"]["total_tokens"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_completion_is_closed_once_its_stream_is_over() {
    let completions = read([bytes(content(0, "Hi")), pause(), bytes(DONE)]);
    assert!(!completions.is_closed());
    soon(completions.first()).await.unwrap();
    assert!(!completions.is_closed());
    soon(completions.closed()).await.unwrap();
    assert!(completions.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_merged_completion_is_closed_with_its_last_source() {
    let script = |steps| Source::from_byte_stream(unbraid_testkit::script::Script::new(steps));
    let completions = Completions::merge([
        script(vec![bytes(content(0, "a")), bytes(DONE)]),
        script(vec![bytes(content(0, "b")), pause(), bytes(DONE)]),
    ]);
    tokio::time::sleep(SECOND / 2).await;
    assert!(!completions.is_closed());
    tokio::time::sleep(SECOND).await;
    assert!(completions.is_closed());
}

fn one_warning() -> crate::CompletionsBuilder {
    Completions::builder().limits(Limits::default().with_warnings(1))
}

#[tokio::test(start_paused = true)]
async fn warnings_that_were_not_kept_are_counted() {
    let lost = "data: {not json}\n\n";
    let steps = || {
        [
            bytes(content(0, "a")),
            bytes(lost.repeat(4)),
            bytes(finish(0, "stop")),
            bytes(DONE),
        ]
    };
    let completions = read_with(one_warning(), steps());
    soon(completions.closed()).await.unwrap();
    assert_eq!(completions.warnings().len(), 1);
    assert_eq!(completions.warnings_dropped(), 3);
    let all = read(steps());
    soon(all.closed()).await.unwrap();
    assert_eq!((all.warnings().len(), all.warnings_dropped()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_warnings_of_several_sources_are_added_up() {
    let lost = "data: {not json}\n\n";
    let source = || {
        let steps = [bytes(content(0, "a")), bytes(lost.repeat(3)), bytes(DONE)];
        Source::from_byte_stream(unbraid_testkit::script::Script::new(steps))
    };
    let completions = one_warning().merge([source(), source()]);
    soon(completions.closed()).await.unwrap();
    assert_eq!(completions.warnings_dropped(), 4);
}

#[tokio::test(start_paused = true)]
async fn declared_tool_names_decide_how_a_split_name_is_read() {
    let call = |name: &str| {
        let call = json!({ "index": 0, "id": "c", "function": { "name": name, "arguments": "" } });
        let chunk = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
        bytes(format!("data: {chunk}\n\n"))
    };
    let steps = || [call("get_"), call("get_weather"), bytes(DONE)];
    let name = async |builder| {
        let choice = soon(read_with(builder, steps()).first()).await.unwrap();
        let outcome = soon(choice.outcome()).await;
        outcome.message.tool_calls[0].name.to_string()
    };
    let declared = Completions::builder().tool_names(["get_weather"]);
    assert_eq!(name(declared).await, "get_weather");
    let request =
        json!({ "tools": [{ "type": "function", "function": { "name": "get_weather" } }] });
    let from_request = Completions::builder().request(&request);
    assert_eq!(name(from_request).await, "get_weather");
    let kept = Completions::builder()
        .tool_names(["get_get_weather"])
        .request(&request);
    assert_eq!(name(kept).await, "get_get_weather");
}
