//! The request: the question, the options, and the key.

use std::fs;

use serde_json::{Value, json};

use super::{
    chat, complete, replying,
    server::{ReceivedRequest, Server},
    stream,
};

fn server() -> Server {
    replying(|| stream(&(complete(0, "Yes.") + "data: [DONE]\n\n")))
}

/// The request that these arguments, variables and standard input send.
#[track_caller]
fn sent_request(args: &[&str], variables: &[(&str, &str)], stdin: &str) -> ReceivedRequest {
    let server = server();
    let url = server.base_url();
    let variables = [&[("OPENAI_BASE_URL", url.as_str())], variables].concat();
    let run = chat(args, &variables, stdin);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    server.requests().remove(0)
}

/// The body that is sent for a request in a file with these further arguments.
#[track_caller]
fn body_with_request(request: &Value, args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("request.json");
    fs::write(&file, request.to_string()).unwrap();
    sent_request(
        &[&["--request", file.to_str().unwrap()], args].concat(),
        &[],
        "",
    )
    .body
}

#[test]
fn the_question_is_read_from_the_standard_input() {
    for args in [&["-m", "m"][..], &["-m", "m", "-"]] {
        let body = sent_request(args, &[], "What is\nthis?\n").body;
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
    let args = "-m m --system Briefly. --temperature 0.7 --max-tokens 20 --tools";
    let args: Vec<&str> = args
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
    assert_eq!(sent_request(&args, &[], "").body, body);
}

#[test]
fn a_request_is_sent_unchanged() {
    let request = json!({
        "model": "m",
        "top_k": 4,
        "messages": [{ "role": "user", "content": "Well?" }],
        "stream": true,
        "stream_options": { "include_usage": false },
    });
    assert_eq!(body_with_request(&request, &[]), request);
    let piped = sent_request(
        &["--request", "-"],
        &[("OPENAI_MODEL", "other")],
        &request.to_string(),
    );
    assert_eq!(piped.body, request);
}

#[test]
fn options_override_a_request() {
    let request = json!({
        "model": "m",
        "messages": [{ "role": "system", "content": "At length." }, { "role": "user", "content": "Well?" }],
        "n": 4,
        "max_completion_tokens": 9,
    });
    let args = [
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
    let body = body_with_request(&request, &args);
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
    let text = body_with_request(&json!({ "model": "m", "prompt": "Once" }), &["Twice"]);
    assert_eq!(
        (&text["prompt"], text.get("messages")),
        (&json!("Twice"), None)
    );
}

#[test]
fn model_and_key_come_from_the_environment() {
    let variables = [
        ("OPENAI_MODEL", "m"),
        ("OPENAI_API_KEY", "sk-from-the-environment"),
    ];
    let from_environment = sent_request(&["Well?"], &variables, "");
    assert_eq!(from_environment.body["model"], "m");
    let bearer = "authorization: Bearer sk-from-the-environment\r\n";
    assert!(
        from_environment.head.contains(bearer),
        "{}",
        from_environment.head
    );
    let args = [
        "-m",
        "other",
        "--api-key",
        "sk-from-the-command-line",
        "Well?",
    ];
    let from_option = sent_request(&args, &variables, "");
    assert_eq!(from_option.body["model"], "other");
    assert!(
        from_option
            .head
            .contains("Bearer sk-from-the-command-line\r\n"),
        "{}",
        from_option.head
    );
    assert!(
        !sent_request(&["-m", "m", "Well?"], &[], "")
            .head
            .contains("authorization")
    );
}

/// The limit that a server at this address receives, which is reached through a proxy.
fn sent_limit(base_url: &str, args: &[&str], stdin: &str) -> Value {
    let proxy = replying(|| stream(&complete(0, "Seven.")));
    let address = proxy.base_url();
    let variables = [("HTTP_PROXY", address.as_str()), ("NO_PROXY", "")];
    let base = ["--base-url", base_url, "--max-tokens", "9", "-m", "m"];
    let run = chat(&[&base[..], args].concat(), &variables, stdin);
    assert_eq!(run.code, 0, "{base_url}: {}", run.stderr);
    let body = proxy.requests()[0].body.clone();
    json!([body.get("max_tokens"), body.get("max_completion_tokens")])
}

#[test]
fn the_limit_of_tokens_has_the_name_that_the_server_accepts() {
    let (old, new) = (json!([9, null]), json!([null, 9]));
    for (base_url, expected) in [
        ("http://api.openai.com/v1", &new),
        ("http://eu.api.openai.com/v1", &new),
        ("http://x.openai.azure.com/openai/v1", &new),
        ("http://x.services.ai.azure.com/openai/v1", &new),
        ("http://x.cognitiveservices.azure.com/openai/v1", &new),
        ("http://api.example.com/v1", &old),
        ("http://api.openai.com.example.com/v1", &old),
        ("http://notapi.openai.com.example/v1", &old),
    ] {
        let sent = sent_limit(base_url, &["Well?"], "");
        assert_eq!(&sent, expected, "{base_url}");
    }
    let openai = "http://api.openai.com/v1";
    let text = r#"{"prompt":"Well?"}"#;
    assert_eq!(sent_limit(openai, &["--request", "-"], text), old);
    let own = r#"{"messages":[],"max_tokens":5}"#;
    assert_eq!(sent_limit(openai, &["--request", "-"], own), old);
}
