//! Every example of the help and of docs/command-line.md runs in a shell.
//!
//! A `curl` that prints a recording stands for the real one, and a scripted server for the provider. An example with `jq`
//! needs jq; without it the example is skipped, and the test says so.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use unbraid_testkit::fixture::{Fixture, workspace_root};

use crate::{
    UNBRAID,
    chat::server::{Reply, Server},
    documentation::help,
    pipes::watchdog,
};

/// A recording with text and a call, short enough for `--speed 20`.
const FIXTURE: &str = "openai_chat/glm-c12-text-and-call-in-one-delta";

/// The start of an example that serves.
const SERVE: &str = "unbraid serve --upstream";

/// A provider that sends as many choices as the request asks for. Each has a call, unless the request has its result.
fn provider() -> Server {
    Server::start(|_, request| {
        let recorded = |name: &str, kind| Reply::new(200, kind, &Fixture::named(name).bytes);
        if request.head.contains("/messages ") {
            return recorded("anthropic/anthropic-a22-citations", "text/event-stream");
        }
        if request.head.contains("/api/chat ") {
            return recorded("ollama/ollama-o03-o15-chat", "application/x-ndjson");
        }
        let n = request.body["n"].as_u64().unwrap_or(1);
        let name = request.body.pointer("/tools/0/function/name");
        let name = name.and_then(Value::as_str).unwrap_or("f");
        let function = json!({ "name": name, "arguments": "{}" });
        let messages = request.body["messages"].as_array();
        let has_result = messages.is_some_and(|all| all.iter().any(|m| m["role"] == "tool"));
        let delta = match has_result {
            true => json!({ "content": "Noon." }),
            false => {
                json!({ "content": "Seven.", "tool_calls": [{ "index": 0, "id": "c", "function": function }] })
            }
        };
        let choice = |index| json!({ "index": index, "delta": delta, "finish_reason": "stop" });
        let chunks =
            (0..n).map(|index| format!("data: {}\n\n", json!({ "choices": [choice(index)] })));
        let body = chunks.collect::<String>() + "data: [DONE]\n\n";
        Reply::new(200, "text/event-stream", body.as_bytes())
    })
}

/// A directory with everything that the examples name.
fn sandbox() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    let stream = Fixture::named(FIXTURE).bytes;
    for name in ["answer.sse", "turn1.sse", "turn2.sse"] {
        write(name, &stream);
    }
    write("question.txt", b"Name a prime number.\n");
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "Well?" }] });
    write("request.json", request.to_string().as_bytes());
    let tool = json!({ "type": "function", "function": { "name": "now" } });
    write("tools.json", json!([tool]).to_string().as_bytes());
    write("key.txt", b"a key\n");
    write("keys", b"# no keys\n");
    write("now.sh", b"#!/bin/sh\ndate\n");
    executable(&dir.path().join("now.sh"));
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(UNBRAID, bin.join("unbraid")).unwrap();
    fs::write(bin.join("curl"), "#!/bin/sh\ncat answer.sse\n").unwrap();
    executable(&bin.join("curl"));
    for shell in [
        ".local/share/bash-completion/completions",
        ".config/fish/completions",
    ] {
        fs::create_dir_all(dir.path().join(shell)).unwrap();
    }
    dir
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn shell(dir: &Path, url: &str, line: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(dir)
        .env("PATH", format!("{}/bin:{path}", dir.display()))
        .env("HOME", dir)
        .env("OPENAI_BASE_URL", url)
        .env("ANTHROPIC_BASE_URL", url)
        .env("OLLAMA_HOST", url.trim_end_matches("/v1"))
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null());
    command
}

fn has_jq() -> bool {
    Command::new("jq").arg("--version").output().is_ok()
}

/// The line with the server of the test in place of real ones, and with a faster demo.
fn adapted(line: &str, url: &str) -> String {
    let line = line.replace("http://localhost:8000/v1", url);
    let line = line.replace("https://api.openai.com/v1", url);
    let line = line.replace("--port 8080", "--port 0");
    let line = line.replace(" --listen 0.0.0.0:8080", "");
    if line.starts_with(SERVE) {
        return format!("{line} --listen 127.0.0.1:0");
    }
    match line.strip_prefix("unbraid demo") {
        Some(options) if !options.contains("--svg") => "unbraid demo --speed 200".to_owned(),
        Some(_) | None => line,
    }
}

fn check_output(line: &str, output: &Output) {
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(0), "{line}\n{stdout}{stderr}");
    // The recording has a call, which --text leaves out. With --run-tool it is run, and the text before it is not the answer.
    let is_activity = |text: &str| {
        let starts = [
            "Seven.",
            "unbraid: call of now: ",
            "unbraid: result of now: ",
        ];
        line.contains("--run-tool") && starts.iter().any(|start| text.starts_with(start))
    };
    let is_expected = |line: &str| {
        line.ends_with("has a tool call, which --text leaves out") || is_activity(line)
    };
    assert!(stderr.lines().all(is_expected), "{line}\n{stderr}");
    // A filter that selects what did not finish prints nothing, and neither does a command that writes a file.
    let is_silent = ["> ", "--svg", "!= \"finished\""]
        .iter()
        .any(|part| line.contains(part));
    assert_eq!(stdout.is_empty(), is_silent, "{line}");
}

/// Starts a replay, and waits for its address.
fn check_replay(line: &str, mut command: Command) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let watchdog = watchdog(&child);
    let mut address = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut address)
        .unwrap();
    assert!(
        address.starts_with("http://127.0.0.1:"),
        "{line}: {address}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    drop(watchdog);
}

#[track_caller]
fn check(examples: &[String]) {
    let server = provider();
    let url = server.base_url();
    for example in examples {
        let needs_zsh = example.contains("fpath");
        if needs_zsh || (example.contains("| jq") && !has_jq()) {
            println!("skipped: {example}");
            continue;
        }
        let dir = sandbox();
        let line = adapted(example, &url);
        // An example that serves must be the process that is killed.
        if line.starts_with("unbraid replay") || line.starts_with(SERVE) {
            check_replay(example, shell(dir.path(), &url, &format!("exec {line}")));
        } else {
            let output = shell(dir.path(), &url, &line).output().unwrap();
            check_output(example, &output);
        }
    }
}

#[test]
fn examples_of_the_help_run() {
    let main = help("");
    let mut examples = main.examples;
    for command in main.commands {
        examples.extend(help(&command).examples);
    }
    assert!(examples.len() > 25, "{examples:?}");
    check(&examples);
}

#[test]
fn examples_of_the_document_run() {
    let page = fs::read_to_string(workspace_root().join("docs/command-line.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    let examples: Vec<String> = lines.map(str::to_owned).collect();
    assert!(examples.len() > 8, "{examples:?}");
    check(&examples);
}

#[test]
fn filters_of_the_examples_select_what_they_promise() {
    if !has_jq() {
        println!("skipped: no jq");
        return;
    }
    let dir = sandbox();
    let run = |line: &str| {
        let output = shell(dir.path(), "", line).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let names =
        "unbraid collect answer.sse | jq -r '.choices[].message.tool_calls[]?.function.name'";
    assert_eq!(run(names), "sluice\n");
    let text = "curl -sN .. | unbraid events | jq --unbuffered -rj 'select(.choice == 0 and .type == \"content.delta\").delta'";
    assert_eq!(run(text), "Opening the sluice. Done soon.");
    let calls = run("unbraid events answer.sse | jq 'select(.type == \"tool_call.done\").name'");
    assert_eq!(calls, "\"sluice\"\n");
    let helps = [help("collect"), help("events")].map(|help| help.examples.join("\n"));
    assert!(helps.concat().contains(names) && helps.concat().contains(text));
}
