//! Messages and exit codes of a request that brings no answer.

use std::{fs, net::TcpListener};

use serde_json::json;

use super::{
    chat, replying,
    server::{Reply, Server},
};
use crate::Run;

const KEY: &str = "sk-secret-0123456789";

/// Sends a request with a key, and checks that the output does not contain it.
#[track_caller]
fn check(server: &Server, code: i32, message: &str) {
    let url = server.base_url();
    let variables = [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_API_KEY", KEY)];
    check_run(
        &chat(&["-m", "m", "--retries", "0", "Well?"], &variables, ""),
        code,
        message,
    );
}

#[track_caller]
fn check_run(run: &Run, code: i32, message: &str) {
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (code, ""),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains(KEY), "{}", run.stderr);
}

fn error(status: u16, message: &str, code: &str) -> Reply {
    let error =
        json!({ "error": { "message": message, "type": "invalid_request_error", "code": code } });
    Reply::new(status, "application/json", error.to_string().as_bytes())
}

#[test]
fn a_wrong_key_is_reported_without_the_key() {
    let message = format!("Incorrect API key\u{1b}[2J provided: {KEY}.");
    let server = replying(move || error(401, &message, "invalid_api_key"));
    let expected = "unbraid: status 401 Unauthorized (type invalid_request_error, code invalid_api_key, request req-7): \
        Incorrect API key\\u{1b}[2J provided: [key].; is OPENAI_API_KEY set, and a key of this server?\n";
    check(&server, 1, expected);
}

#[test]
fn an_unknown_model_is_reported_with_the_address() {
    let server = replying(|| error(404, "The model `m` does not exist", "model_not_found"));
    check(
        &server,
        1,
        "/v1/chat/completions (type invalid_request_error, code model_not_found",
    );
    check(
        &server,
        1,
        "The model `m` does not exist; are the base URL and the model right?\n",
    );
}

#[test]
fn a_request_to_a_busy_server_is_retried() {
    let server = replying(|| Reply::new(500, "text/plain", b"Overloaded."));
    let run = server.chat(&["-m", "m", "--retries", "1", "Well?"]);
    check_run(
        &run,
        1,
        "unbraid: status 500 Internal Server Error (request req-7): Overloaded. (2 attempts)\n",
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_html_page_is_not_an_answer() {
    let server = replying(|| Reply::new(200, "text/html", b"<html><title>Sign in</title></html>"));
    check(
        &server,
        1,
        "Sign in; is the base URL that of the API? it usually ends in /v1",
    );
}

#[test]
fn a_body_that_is_not_a_stream_is_reported_with_a_hint() {
    let server = replying(|| Reply::new(200, "text/plain", b"<p>Hello</p>\n"));
    let run = server.chat(&["-m", "m", "--json", "Well?"]);
    assert_eq!(
        (run.code, &run.json()["unbraid"]["end"]),
        (1, &json!("not_a_stream"))
    );
    assert!(
        run.stderr.contains("this appears to be HTML or XML"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_body_that_is_not_streamed_is_an_answer() {
    let message = json!({ "role": "assistant", "content": "Seven." });
    let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
    let body = json!({ "object": "chat.completion", "choices": choices }).to_string();
    let server = replying(move || Reply::new(200, "application/json", body.as_bytes()));
    let run = server.chat(&["-m", "m", "Well?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, "Seven.\n");
}

#[test]
fn a_refused_connection_is_reported() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{closed}/v1");
    let run = chat(
        &["--base-url", &url, "--retries", "0", "-m", "m", "Well?"],
        &[],
        "",
    );
    check_run(&run, 1, &format!("unbraid: no connection to {closed}: "));
    check_run(&run, 1, "; is the server running?");
}

#[test]
fn a_server_without_tls_is_reported() {
    let server = replying(|| Reply::new(200, "text/plain", b""));
    let url = server.base_url().replace("http:", "https:");
    let run = chat(
        &["--base-url", &url, "--retries", "0", "-m", "m", "Well?"],
        &[],
        "",
    );
    check_run(&run, 1, "unbraid: no TLS with 127.0.0.1:");
    check_run(
        &run,
        1,
        "; if the server uses plain HTTP, the base URL begins with http://\n",
    );
}

#[test]
fn an_invalid_request_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("array.json");
    fs::write(&file, "[1]").unwrap();
    let file = file.to_str().unwrap();
    let object = dir.path().join("object.json");
    fs::write(&object, "{}").unwrap();
    let object = object.to_str().unwrap();
    let check = |args: &[&str], message: &str| {
        let run = chat(args, &[("OPENAI_API_KEY", KEY)], "");
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{args:?}: {}",
            run.stderr
        );
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.contains(KEY), "{}", run.stderr);
    };
    check(&["-m", "m"], "the question is empty");
    check(&["Well?"], "no model");
    check(&["-m", "m", "-n", "0", "Well?"], "0 is not in 1..=128");
    check(&["-m", "m", "-n", "129", "Well?"], "129 is not in 1..=128");
    check(
        &["-m", "m", "-n", "2", "--take", "3", "Well?"],
        "--take 3 of 2",
    );
    check(&["-m", "m", "--take", "0", "Well?"], "0 is not in");
    check(
        &["-m", "m", "--temperature", "hot", "Well?"],
        "not a number",
    );
    check(
        &["-m", "m", "--json", "--events", "Well?"],
        "cannot be used with",
    );
    check(
        &["-m", "m", "--fan-out", "--record", "x.sse", "Well?"],
        "cannot be used with",
    );
    check(
        &["-m", "m", "--base-url", "localhost:8000", "Well?"],
        "http:// or https://",
    );
    check(
        &["-m", "m", "--tools", object, "Well?"],
        "tools are a JSON array",
    );
    check(&["--request", file], "a request is a JSON object");
    check(
        &["--request", "-", "-"],
        "cannot be the request and the question",
    );
    check(&["--request", "-"], "a request is a JSON object");
    let absent = chat(&["--request", "absent.json"], &[], "");
    check_run(&absent, 1, "unbraid: absent.json: ");
}
