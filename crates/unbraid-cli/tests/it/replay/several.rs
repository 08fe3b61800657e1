//! Several recordings: which of them answers which request.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CHAT, Replay, Response};

/// A stream of a model with one text.
pub(super) fn recording(model: &str, text: &str) -> String {
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": "stop" });
    let chunk = json!({ "model": model, "choices": [choice] });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

/// A directory with these recordings, and their paths.
pub(super) fn files(recordings: &[(&str, String)]) -> (TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let write = |(name, text): &(&str, String)| {
        fs::write(path(name), text).unwrap();
        path(name)
    };
    let paths = recordings.iter().map(write).collect();
    (dir, paths)
}

fn ask(replay: &Replay, body: &Value) -> Response {
    replay.send("POST", CHAT, &body.to_string())
}

/// The text of the answer to a request.
#[track_caller]
fn text(replay: &Replay, body: &Value) -> String {
    let response = ask(replay, body).json();
    response["choices"][0]["message"]["content"]
        .as_str()
        .unwrap_or("no answer")
        .to_owned()
}

#[test]
fn an_agent_finds_the_answer_of_its_second_turn() {
    let (_dir, files) = files(&[
        ("1.sse", recording("m", "call")),
        ("2.sse", recording("m", "answer")),
    ]);
    let question = json!({ "model": "m", "messages": [] });
    for (after_last, third) in [
        ("first", "call"),
        ("last", "answer"),
        ("error", "no answer"),
    ] {
        let replay = Replay::of_files(&files, &format!("--after-last {after_last}"));
        let texts = [0, 1, 2].map(|_| text(&replay, &question));
        assert_eq!(texts, ["call", "answer", third]);
    }
    let replay = Replay::of_files(&files, "--after-last error");
    let statuses = [0, 1, 2].map(|_| ask(&replay, &question).status);
    assert_eq!(statuses, [200, 200, 404]);
}

#[test]
fn a_request_gets_the_recordings_of_its_model() {
    let (_dir, files) = files(&[
        ("a1.sse", recording("a-2026-08-01", "a1")),
        ("b1.sse", recording("b", "b1")),
        ("a2.sse", recording("a-2026-08-01", "a2")),
    ]);
    let replay = Replay::of_files(&files, "");
    let texts = ["b", "a", "b", "a", "a"].map(|model| text(&replay, &json!({ "model": model })));
    assert_eq!(texts, ["b1", "a1", "b1", "a2", "a1"]);
    let unknown = Replay::of_files(&files, "");
    let texts = [0, 1, 2].map(|_| text(&unknown, &json!({ "model": "x" })));
    assert_eq!(texts, ["a1", "b1", "a2"]);
}

#[test]
fn a_recorded_request_is_answered_by_its_recording() {
    let (dir, files) = files(&[
        ("1.sse", recording("m", "one")),
        ("2.sse", recording("m", "two")),
    ]);
    let body =
        |text: &str| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
    for (file, question) in [("1.sse", "first?"), ("2.sse", "second?")] {
        let exchange = json!({
            "request": { "method": "POST", "path": CHAT, "headers": {}, "body": body(question) },
            "response": { "status": 200, "headers": { "content-type": "text/event-stream; charset=x" } },
        });
        let path = dir.path().join(format!("{file}.exchange.json"));
        fs::write(path, exchange.to_string()).unwrap();
    }
    let replay = Replay::of_files(&files, "");
    let texts = ["second?", "second?", "first?", "second?"].map(|q| text(&replay, &body(q)));
    assert_eq!(texts, ["two", "two", "one", "two"]);
    let mut streamed = body("first?");
    streamed["stream"] = json!(true);
    let response = ask(&replay, &streamed);
    assert_eq!(response.body(), recording("m", "one").into_bytes());
    assert!(
        response
            .head
            .contains("content-type: text/event-stream; charset=x")
    );
}

#[test]
fn a_request_with_a_fault_takes_no_turn() {
    let (_dir, files) = files(&[
        ("1.sse", recording("m", "one")),
        ("2.sse", recording("m", "two")),
    ]);
    for fault in ["status:500", "close:1"] {
        let replay = Replay::of_files(&files, &format!("--fault {fault} --times 1"));
        let failed = ask(&replay, &json!({ "stream": true }));
        assert!(failed.status == 500 || failed.error.is_some());
        let texts = [0, 1].map(|_| text(&replay, &json!({})));
        assert_eq!(texts, ["one", "two"], "{fault}");
    }
}

#[test]
fn the_line_of_a_request_names_the_recording_and_the_fault() {
    let (_dir, files) = files(&[
        ("1.sse", recording("m", "one")),
        ("2.sse", recording("m", "two")),
    ]);
    let mut several = Replay::of_files(&files, "--once");
    ask(&several, &json!({}));
    assert!(several.printed().ends_with(&format!("200 {}\n", files[0])));
    let printed = |fault: &str| {
        let mut replay = Replay::of_files(&files[..1], &format!("--once --fault {fault}:1"));
        ask(&replay, &json!({ "stream": true }));
        replay.printed()
    };
    let [closed, reset] = ["close", "reset"].map(printed);
    assert!(
        closed.ends_with("200 (the connection is closed within the body)\n"),
        "{closed}"
    );
    assert!(
        reset.ends_with("200 (the connection is reset)\n"),
        "{reset}"
    );
}

#[test]
fn chat_says_whether_the_connection_was_closed_or_reset() {
    let message = |fault: &str| {
        let replay = Replay::start(&format!("--fault {fault}"));
        let url = format!("http://{}/v1", replay.address());
        let args = ["--base-url", &url, "-m", "m", "-n", "2", "Well?"];
        crate::chat::chat(&args, &[], "").stderr
    };
    for fault in ["close", "close:5"] {
        let closed = message(fault);
        assert!(
            closed.contains("the server closed it within its answer: "),
            "{closed}"
        );
    }
    let reset = message("reset");
    assert!(reset.contains("the server reset it: "), "{reset}");
}
