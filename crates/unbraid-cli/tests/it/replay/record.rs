//! `replay --record-from`: records a provider once, and serves what it recorded.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    CHAT, Replay, Response,
    several::{files, recording},
};
use crate::chat::server::{Reply, Server};

const KEY: &str = "sk-a-key-that-must-not-be-written";

/// A provider that answers with the number of the request.
fn provider() -> Server {
    Server::start(|number, _| {
        let body = recording("m-2026-01-01", &format!("answer {number}"));
        Reply::new(200, "text/event-stream", body.as_bytes())
    })
}

/// The paths of recordings that do not exist yet.
pub(super) fn missing(names: &[&str]) -> (TempDir, Vec<String>) {
    let (dir, _) = files(&[]);
    let path = |name: &&str| dir.path().join(name).to_str().unwrap().to_owned();
    let paths = names.iter().map(path).collect();
    (dir, paths)
}

pub(super) fn record(provider: &Server, files: &[String], options: &str) -> Replay {
    let options = format!("--record-from {} {options}", provider.base_url());
    Replay::of_files(files, &options)
}

fn question(text: &str) -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": text }], "stream": true })
}

fn ask(replay: &Replay, body: &Value) -> Response {
    let key = format!("authorization: Bearer {KEY}\r\nx-secret: {KEY}\r\nx-request-id: mine\r\n");
    Response::read(replay.connect_with("POST", CHAT, &key, &body.to_string()))
}

fn ask_raw(replay: &Replay, path: &str, body: &str) -> Response {
    let key = format!("authorization: Bearer {KEY}\r\n");
    Response::read(replay.connect_with("POST", path, &key, body))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn each_missing_file_is_recorded_once_and_then_served() {
    let provider = provider();
    let (dir, files) = missing(&["1.sse", "2.sse"]);
    let replay = record(&provider, &files, "");
    let answers = ["a", "b", "b", "a"].map(|text| ask(&replay, &question(text)).body());
    let expected =
        [0, 1, 1, 0].map(|n| recording("m-2026-01-01", &format!("answer {n}")).into_bytes());
    assert_eq!(answers, expected);
    assert_eq!(provider.requests().len(), 2, "the others were served");
    for (file, expected) in files.iter().zip(&expected) {
        assert_eq!(&fs::read(file).unwrap(), expected);
    }
    let expected = [
        "1.sse",
        "1.sse.exchange.json",
        "2.sse",
        "2.sse.exchange.json",
    ];
    assert_eq!(names(dir.path()), expected);
    drop(replay);
    // The same command serves the files, and other commands read them.
    let again = record(&provider, &files, "");
    assert_eq!(ask(&again, &question("b")).body(), answers[1]);
    assert_eq!(provider.requests().len(), 2);
    let stats = crate::unbraid(&format!("stats --json {}", files[0]), b"").json();
    assert_eq!(stats["times"], "recorded");
    assert!(stats["choices"][0]["first_delta_ms"].is_number());
}

#[test]
fn the_provider_gets_the_request_unchanged() {
    let provider = provider();
    let (_dir, files) = missing(&["1.sse"]);
    let replay = record(&provider, &files, "");
    let body = question("Grüße");
    ask(&replay, &body);
    let received = &provider.requests()[0];
    assert_eq!(received.body, body);
    let head = received.head.to_ascii_lowercase();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1"),
        "{head}"
    );
    assert!(
        head.contains(&format!("authorization: bearer {KEY}")),
        "{head}"
    );
    assert!(head.contains("x-request-id: mine"), "{head}");
    assert!(head.contains("accept-encoding: identity"), "{head}");
}

#[test]
fn the_exchange_has_both_sides_and_no_key() {
    let provider = provider();
    let (dir, files) = missing(&["1.sse"]);
    let replay = record(&provider, &files, "");
    let response = ask(&replay, &question("a"));
    assert!(
        response.head.contains("x-request-id: req-7"),
        "{}",
        response.head
    );
    let exchange = fs::read_to_string(format!("{}.exchange.json", files[0])).unwrap();
    let exchange: Value = serde_json::from_str(&exchange).unwrap();
    assert_eq!(exchange["request"]["method"], "POST");
    assert_eq!(exchange["request"]["path"], CHAT);
    assert_eq!(exchange["request"]["body"], question("a"));
    assert_eq!(
        exchange["request"]["headers"],
        json!({ "x-request-id": "mine" })
    );
    let expected = json!({ "content-type": "text/event-stream", "x-request-id": "req-7" });
    assert_eq!(exchange["response"]["headers"], expected);
    assert_eq!(exchange["response"]["status"], 200);
    let reads = exchange["response"]["reads"].as_array().unwrap();
    assert_eq!(
        reads.last().unwrap()[0],
        fs::metadata(&files[0]).unwrap().len()
    );
    for name in names(dir.path()) {
        let bytes = fs::read(dir.path().join(&name)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "{name}");
    }
}

#[test]
fn a_body_with_the_key_is_passed_on_but_not_recorded() {
    let echo =
        Server::start(|_, _| Reply::new(200, "text/event-stream", recording("m", KEY).as_bytes()));
    let (dir, files) = missing(&["1.sse"]);
    let replay = record(&echo, &files, "");
    let first = ask(&replay, &question("a"));
    assert!(String::from_utf8_lossy(&first.body()).contains(KEY));
    ask(&replay, &question(&format!("is {KEY} valid?")));
    assert_eq!(names(dir.path()), Vec::<String>::new());
    assert_eq!(echo.requests().len(), 2);
    assert!(replay.stderr().contains("not recorded"));
}

#[test]
fn a_key_behind_an_escape_or_in_the_path_is_not_recorded() {
    let provider = provider();
    let (dir, files) = missing(&["1.sse"]);
    let replay = record(&provider, &files, "");
    let escaped = question(KEY).to_string().replace("sk-a", "s\\u006b-a");
    assert!(!escaped.contains(KEY));
    ask_raw(&replay, CHAT, &escaped);
    ask_raw(
        &replay,
        &format!("/{KEY}{CHAT}"),
        &question("a").to_string(),
    );
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_file_that_is_named_twice_is_refused() {
    let provider = provider();
    let (_dir, files) = missing(&["1.sse"]);
    let file = &files[0];
    let line = format!(
        "replay --port 0 --record-from {} {file} {file}",
        provider.base_url()
    );
    let run = crate::unbraid(&line, b"");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("named twice"), "{}", run.stderr);
}

#[test]
fn errors_and_broken_responses_are_not_recorded() {
    let flaky = Server::start(|number, _| match number {
        0 => Reply::new(
            429,
            "application/json",
            b"{\"error\":{\"message\":\"slow down\"}}",
        ),
        1 => Reply::new(
            200,
            "text/event-stream\r\ncontent-length: 999",
            b"data: {}\n\n",
        ),
        _ => Reply::new(200, "text/event-stream", recording("m", "whole").as_bytes()),
    });
    let (dir, files) = missing(&["1.sse"]);
    let replay = record(&flaky, &files, "--after-last error");
    let refused = ask(&replay, &question("a"));
    assert_eq!(
        (refused.status, &refused.json()["error"]["message"]),
        (429, &json!("slow down"))
    );
    let broken = ask(&replay, &question("a"));
    assert!(broken.error.is_some(), "{broken:?}");
    assert_eq!(names(dir.path()), Vec::<String>::new());
    let whole = ask(&replay, &question("a"));
    assert_eq!(whole.body(), recording("m", "whole").into_bytes());
    assert_eq!(names(dir.path()).len(), 2);
    assert_eq!(
        ask(&replay, &question("a")).status,
        404,
        "it was served once"
    );
}

#[test]
fn an_unreachable_provider_is_an_error_response() {
    let (dir, files) = missing(&["1.sse"]);
    let replay = Replay::of_files(&files, "--record-from http://127.0.0.1:1/v1");
    let response = ask(&replay, &question("a"));
    assert_eq!(response.status, 502);
    assert!(
        response.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cannot be reached")
    );
    assert_eq!(names(dir.path()), Vec::<String>::new());
    let run = crate::unbraid("replay --record-from nonsense x.sse", b"");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.starts_with("unbraid: --record-from: "),
        "{}",
        run.stderr
    );
    let run = crate::unbraid("replay missing.sse", b"");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
}

#[test]
fn a_client_that_leaves_at_once_does_not_stop_the_recording() {
    let slow = Server::start(|_, _| {
        let (first, rest) = (recording("m", "one"), ": trailing comment\n\n");
        Reply::new(200, "text/event-stream", first.as_bytes())
            .then(std::time::Duration::from_millis(300), rest)
    });
    let (_dir, files) = missing(&["1.sse"]);
    let mut replay = record(&slow, &files, "--once");
    let mut socket = replay.connect("POST", CHAT, &question("a").to_string());
    let mut head = [0; 64];
    std::io::Read::read_exact(&mut socket, &mut head).unwrap();
    drop(socket);
    assert!(replay.printed().contains("200 recording"));
    let recorded = fs::read_to_string(&files[0]).unwrap();
    assert!(recorded.ends_with(": trailing comment\n\n"), "{recorded}");
}

#[test]
fn concurrent_requests_are_recorded_in_different_files() {
    let provider = provider();
    let (_dir, files) = missing(&["1.sse", "2.sse", "3.sse"]);
    let replay = record(&provider, &files, "");
    std::thread::scope(|scope| {
        for text in ["a", "b", "c"] {
            scope.spawn(|| assert_eq!(ask(&replay, &question(text)).status, 200));
        }
    });
    assert_eq!(provider.requests().len(), 3);
    for file in &files {
        assert!(Path::new(file).exists());
    }
}
