//! `unbraid events`: one line for each event, and the sums in the `done` events.

use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use crate::{run_fixture, unbraid};

#[test]
fn every_event_is_one_line_with_seq_choice_and_type() {
    let stream = b"data: {\"choices\":[{\"index\":1,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\\n\"}}]}\n\n\
        data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"there\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let run = unbraid("events", stream);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let expected = [
        json!({"seq":0,"choice":1,"type":"choice.start","role":"assistant"}),
        json!({"seq":1,"choice":1,"type":"content.delta","delta":"Hi\n"}),
        json!({"seq":2,"choice":1,"type":"content.delta","delta":"there"}),
        json!({"seq":3,"choice":1,"type":"finish","finish_reason":"stop"}),
        json!({"seq":4,"choice":1,"type":"content.done","content":"Hi\nthere"}),
        json!({"seq":5,"choice":1,"type":"end","end":"finished","error":null}),
        json!({"seq":0,"choice":null,"type":"usage","usage":{"completion_tokens":2}}),
    ];
    assert_eq!(run.lines(), expected);
}

#[test]
fn m04_r09_reasoning_and_refusal_done_events_have_the_text() {
    let stream = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"Hm\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"No\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\", no\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: [DONE]\n\n";
    let lines = unbraid("events", stream).lines();
    let expected = [
        json!({"seq":5,"choice":0,"type":"reasoning.done","reasoning":"Hm, no"}),
        json!({"seq":6,"choice":0,"type":"refusal.done","refusal":"No"}),
    ];
    assert_eq!(lines[5..7], expected);
}

#[test]
fn the_done_event_of_a_call_has_its_id_name_and_arguments() {
    let fixture = Fixture::named("openai_chat/bridge-t12-t32-late-id-late-function");
    let lines = run_fixture("events", &fixture).lines();
    let collected = run_fixture("collect", &fixture).json();
    let calls = collected["choices"][0]["message"]["tool_calls"]
        .as_array()
        .unwrap();
    let done: Vec<&Value> = lines
        .iter()
        .filter(|line| line["choice"] == 0 && line["type"] == "tool_call.done")
        .collect();
    assert_eq!(done.len(), calls.len());
    for (done, call) in done.into_iter().zip(calls) {
        assert_eq!(done["id"], call["id"]);
        assert_eq!(done["name"], call["function"]["name"]);
        assert_eq!(done["arguments"], call["function"]["arguments"]);
    }
}

#[test]
fn a_call_in_both_forms_has_two_done_events_with_the_same_arguments() {
    let fixture = Fixture::named("openai_chat/bridge-t37-function-call-and-tool-calls");
    for line in run_fixture("events", &fixture).lines() {
        if line["type"] == "tool_call.done" {
            assert_ne!(line["name"], "", "{line}");
            assert_eq!(line["status"], "complete", "{line}");
        }
    }
}

/// A stream with unescaped control characters in its text, as servers send it.
const CONTROLS: &str = "data: {\"id\":\"\u{9b}31m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\u{9b}2Jb\u{202e}c\u{7f}d\u{2066}\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn terminal_controls_are_escaped_in_json() {
    for command in ["events", "collect"] {
        let run = unbraid(command, CONTROLS.as_bytes());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let escaped = r"a\u009b2Jb\u202ec\u007fd\u2066";
        assert!(run.stdout.contains(escaped), "{command}: {}", run.stdout);
        let is_control =
            |c: char| c.is_control() && c != '\n' || ('\u{2000}'..'\u{2100}').contains(&c);
        assert!(
            !run.stdout.contains(is_control),
            "{command}: {}",
            run.stdout
        );
    }
    let collected = unbraid("collect", CONTROLS.as_bytes()).json();
    let content = &collected["choices"][0]["message"]["content"];
    assert_eq!(
        content, "a\u{9b}2Jb\u{202e}c\u{7f}d\u{2066}",
        "the value is unchanged"
    );
}

#[test]
fn the_error_is_the_last_line() {
    let run = unbraid("events", b"<!doctype html><p>504</p>\n");
    assert_eq!(run.code, 1);
    let lines = run.lines();
    assert_eq!(lines.last().unwrap()["type"], "error");
    assert_eq!(lines.last().unwrap()["error"]["type"], "not_a_stream");
    assert_eq!(lines.last().unwrap()["choice"], Value::Null);
}

/// Its usage is an event, so the stream is not empty as one without any event is.
#[test]
fn a_stream_of_usage_alone_ends_with_the_error_that_collect_reports() {
    let stream = b"data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\ndata: [DONE]\n\n";
    let run = unbraid("events", stream);
    let error = unbraid("collect", stream).json()["unbraid"]["error"].clone();
    assert_eq!((run.code, &error["type"]), (1, &json!("empty")));
    let expected = [
        json!({"seq":0,"choice":null,"type":"usage","usage":{"total_tokens":3}}),
        json!({"seq":1,"choice":null,"type":"error","error":error}),
    ];
    assert_eq!(run.lines(), expected);
}
