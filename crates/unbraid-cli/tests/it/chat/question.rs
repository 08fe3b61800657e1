//! What is asked: the question, the request around it, and the key.

use std::fs;

use serde_json::{Value, json};

use super::{
    answering, chat,
    server::{Asked, Server},
    stream, whole,
};

fn server() -> Server {
    answering(|| stream(&(whole(0, "Yes.") + "data: [DONE]\n\n")))
}

/// What is asked with these words and variables, and this standard input.
#[track_caller]
fn asked(words: &[&str], variables: &[(&str, &str)], stdin: &str) -> Asked {
    let server = server();
    let url = server.base_url();
    let variables = [&[("OPENAI_BASE_URL", url.as_str())], variables].concat();
    let run = chat(words, &variables, stdin);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    server.asked().remove(0)
}

/// The request that a file holds, over which these words are set.
#[track_caller]
fn over(request: &Value, words: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("request.json");
    fs::write(&file, request.to_string()).unwrap();
    asked(
        &[&["--request", file.to_str().unwrap()], words].concat(),
        &[],
        "",
    )
    .body
}

#[test]
fn the_standard_input_asks() {
    for words in [&["-m", "m"][..], &["-m", "m", "-"]] {
        let body = asked(words, &[], "What is\nthis?\n").body;
        assert_eq!(
            body["messages"],
            json!([{ "role": "user", "content": "What is\nthis?" }])
        );
    }
}

#[test]
fn options_become_fields() {
    let dir = tempfile::tempdir().unwrap();
    let tools = dir.path().join("tools.json");
    fs::write(
        &tools,
        r#"[{"type":"function","function":{"name":"sluice"}}]"#,
    )
    .unwrap();
    let words = "-m m --system Briefly. --temperature 0.7 --max-tokens 20 --tools";
    let words: Vec<&str> = words
        .split(' ')
        .chain([tools.to_str().unwrap(), "Well?"])
        .collect();
    let body = json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "Briefly." },
            { "role": "user", "content": "Well?" },
        ],
        "tools": [{ "type": "function", "function": { "name": "sluice" } }],
        "temperature": 0.7,
        "max_tokens": 20,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(asked(&words, &[], "").body, body);
}

#[test]
fn a_request_is_sent_as_it_is() {
    let request = json!({
        "model": "m",
        "top_k": 4,
        "messages": [{ "role": "user", "content": "Well?" }],
        "stream": true,
        "stream_options": { "include_usage": false },
    });
    assert_eq!(over(&request, &[]), request);
    let piped = asked(
        &["--request", "-"],
        &[("OPENAI_MODEL", "other")],
        &request.to_string(),
    );
    assert_eq!(piped.body, request);
}

#[test]
fn options_are_set_over_a_request() {
    let request = json!({
        "model": "m",
        "messages": [{ "role": "system", "content": "At length." }, { "role": "user", "content": "Well?" }],
        "n": 4,
        "max_completion_tokens": 9,
    });
    let words = [
        "-m",
        "other",
        "-n",
        "1",
        "--system",
        "Briefly.",
        "--max-tokens",
        "5",
        "So?",
    ];
    let body = over(&request, &words);
    let messages = json!([
        { "role": "system", "content": "Briefly." },
        { "role": "user", "content": "Well?" },
        { "role": "user", "content": "So?" },
    ]);
    assert_eq!(body["messages"], messages);
    assert_eq!((&body["model"], &body["n"]), (&json!("other"), &json!(1)));
    assert_eq!(
        (&body["max_completion_tokens"], body.get("max_tokens")),
        (&json!(5), None)
    );
    let text = over(&json!({ "model": "m", "prompt": "Once" }), &["Twice"]);
    assert_eq!(
        (&text["prompt"], text.get("messages")),
        (&json!("Twice"), None)
    );
}

#[test]
fn model_and_key_come_from_the_environment() {
    let variables = [
        ("OPENAI_MODEL", "m"),
        ("OPENAI_API_KEY", "sk-of-the-environment"),
    ];
    let by_environment = asked(&["Well?"], &variables, "");
    assert_eq!(by_environment.body["model"], "m");
    let bearer = "authorization: Bearer sk-of-the-environment\r\n";
    assert!(
        by_environment.head.contains(bearer),
        "{}",
        by_environment.head
    );
    let words = [
        "-m",
        "other",
        "--api-key",
        "sk-of-the-command-line",
        "Well?",
    ];
    let by_option = asked(&words, &variables, "");
    assert_eq!(by_option.body["model"], "other");
    assert!(
        by_option.head.contains("Bearer sk-of-the-command-line\r\n"),
        "{}",
        by_option.head
    );
    assert!(
        !asked(&["-m", "m", "Well?"], &[], "")
            .head
            .contains("authorization")
    );
}
