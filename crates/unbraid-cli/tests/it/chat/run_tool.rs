//! `--run-tool`: the calls of an answer are run, and the next request has their results.

mod arguments;
mod failures;
mod terminal;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    chat, chunk, complete,
    server::{Reply, Server},
    stream,
};
use crate::{Run, replay::Replay};

const DONE: &str = "data: [DONE]\n\n";

/// A stream with calls, each an id, a name and arguments.
fn calls(calls: &[(&str, &str, &str)]) -> String {
    calls_with("", "tool_calls", calls)
}

fn calls_with(text: &str, finish_reason: &str, calls: &[(&str, &str, &str)]) -> String {
    let call = |(index, (id, name, arguments)): (usize, &(&str, &str, &str))| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let delta = json!({ "role": "assistant", "content": text, "tool_calls": calls });
    chunk(&json!({ "index": 0, "delta": delta, "finish_reason": finish_reason })) + DONE
}

fn answer(text: &str) -> String {
    complete(0, text) + DONE
}

/// A server whose answers are these, in turn; the last is repeated.
fn turns(bodies: &[String]) -> Server {
    let bodies = bodies.to_vec();
    Server::start(move |number, _| -> Reply { stream(&bodies[number.min(bodies.len() - 1)]) })
}

/// A directory with the definitions of the tools `now`, `weather` and `free`, and with scripts.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        let tool = |name| json!({ "type": "function", "function": { "name": name } });
        // One is a bare function.
        let tools = json!([tool("now"), { "name": "weather" }, tool("free")]);
        fs::write(sandbox.path("tools.json"), tools.to_string()).unwrap();
        sandbox
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Adds a script for a tool, and returns the value of `--run-tool`.
    fn script(&self, name: &str, lines: &str) -> String {
        let path = self.path(&format!("{name}.sh"));
        fs::write(
            &path,
            format!("#!/bin/sh\ncd '{}'\n{lines}\n", self.path("")),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("{name}={path}")
    }

    /// The arguments of `chat` with these tools.
    fn args<'a>(&'a self, url: &'a str, more: &[&'a str]) -> Vec<String> {
        let tools = self.path("tools.json");
        let args = ["--base-url", url, "-m", "m", "--tools", &tools];
        let args = args.iter().chain(more).chain(&["Well?"]);
        args.map(|&arg| arg.to_owned()).collect()
    }

    fn chat(&self, url: &str, more: &[&str]) -> Run {
        let args = self.args(url, more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        chat(&args, &[], "")
    }
}

/// The messages of a request that follow the question.
fn new_messages(server: &Server, request: usize) -> Vec<Value> {
    let messages = server.requests()[request].body["messages"].clone();
    messages.as_array().unwrap()[1..].to_vec()
}

fn tool_result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

fn exists(process: &str) -> bool {
    let stat = Path::new("/proc").join(process.trim()).join("stat");
    // A zombie has ended.
    fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_pipe_gets_only_the_text_of_the_final_answer() {
    let sandbox = Sandbox::new();
    let first = calls_with("Let me see.", "tool_calls", &[("c1", "now", "{}")]);
    fs::write(sandbox.path("1.sse"), first).unwrap();
    fs::write(sandbox.path("2.sse"), answer("It is noon.")).unwrap();
    let files = [sandbox.path("1.sse"), sandbox.path("2.sse")];
    let replay = Replay::of_files(&files, "--after-last error");
    let url = format!("http://{}/v1", replay.address());
    let now = sandbox.script("now", "echo 12:00");
    let run = sandbox.chat(&url, &["--run-tool", &now, "--yes"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "It is noon.\n"));
    let lines = "unbraid: call of now: {}\nunbraid: result of now: 12:00\n";
    assert_eq!(run.stderr, format!("Let me see.\n{lines}"));
}

#[test]
fn the_second_request_has_the_calls_and_their_results_verbatim() {
    let sandbox = Sandbox::new();
    let arguments = "{\"n\": 1.00, \"big\": 12345678901234567890123}";
    let server = turns(&[
        calls(&[("c1", "weather", arguments), ("c2", "now", "")]),
        answer("Done."),
    ]);
    let weather = sandbox.script("weather", "cat; printf '\\n\\n'");
    let now = sandbox.script("now", "cat");
    let args = ["--run-tool", &weather, "--run-tool", &now, "--yes"];
    let run = sandbox.chat(&server.base_url(), &args);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Done.\n"));
    let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let assistant = json!({
        "role": "assistant",
        "tool_calls": [call("c1", "weather", arguments), call("c2", "now", "{}")],
    });
    let expected = [
        assistant,
        tool_result("c1", arguments),
        tool_result("c2", "{}"),
    ];
    assert_eq!(new_messages(&server, 1), expected);
    let tools = server.requests()[0].body["tools"].clone();
    assert_eq!(
        tools[1],
        json!({ "type": "function", "function": { "name": "weather" } })
    );
    assert_eq!(server.requests()[1].body["tools"], tools);
}

#[test]
fn without_questions_the_calls_of_a_turn_run_at_the_same_time() {
    let sandbox = Sandbox::new();
    let server = turns(&[
        calls(&[("c1", "now", "{}"), ("c2", "weather", "{}")]),
        answer("Done."),
    ]);
    // Each of them ends only when the other one runs.
    let meet = |own: &str, other: &str| {
        format!("touch {own}; until test -e {other}; do sleep 0.01; done; echo {own}")
    };
    let now = sandbox.script("now", &meet("now", "weather"));
    let weather = sandbox.script("weather", &meet("weather", "now"));
    let args = ["--run-tool", &now, "--run-tool", &weather, "--yes"];
    let run = sandbox.chat(&server.base_url(), &args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let expected = [tool_result("c1", "now"), tool_result("c2", "weather")];
    assert_eq!(new_messages(&server, 1)[1..], expected);
}

#[test]
fn t37_a_legacy_function_call_gets_a_function_result() {
    let sandbox = Sandbox::new();
    let delta = json!({ "function_call": { "name": "now", "arguments": "{}" } });
    let first = json!({ "index": 0, "delta": delta, "finish_reason": "function_call" });
    let server = turns(&[chunk(&first) + DONE, answer("Done.")]);
    let now = sandbox.script("now", "echo 12:00");
    let run = sandbox.chat(&server.base_url(), &["--run-tool", &now, "--yes"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Done.\n"));
    let result = json!({ "role": "function", "name": "now", "content": "12:00" });
    assert_eq!(new_messages(&server, 1)[1], result);
}

#[test]
fn t31_the_program_of_a_custom_tool_reads_its_text() {
    let sandbox = Sandbox::new();
    let tools = json!([{ "type": "custom", "custom": { "name": "sql" } }]);
    fs::write(sandbox.path("tools.json"), tools.to_string()).unwrap();
    let call = json!({ "index": 0, "id": "c1", "type": "custom", "custom": { "name": "sql", "input": "SELECT 1" } });
    let first =
        json!({ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" });
    let server = turns(&[chunk(&first) + DONE, answer("Done.")]);
    let sql = sandbox.script("sql", "cat");
    let run = sandbox.chat(&server.base_url(), &["--run-tool", &sql, "--yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(new_messages(&server, 1)[1], tool_result("c1", "SELECT 1"));
}

#[test]
fn json_is_the_last_answer_and_events_are_those_of_every_turn() {
    let sandbox = Sandbox::new();
    let bodies = [calls(&[("c1", "now", "{}")]), answer("Done.")];
    let now = sandbox.script("now", "echo 12:00");
    let run = |format: &str| {
        let args = ["--run-tool", &now, "--yes", format];
        let run = sandbox.chat(&turns(&bodies).base_url(), &args);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run
    };
    let json = run("--json").json();
    assert_eq!(json["choices"][0]["message"]["content"], "Done.");
    let events = run("--events").lines();
    let types = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (types("tool_call.done"), types("content.done"), types("end")),
        (1, 1, 2)
    );
}

#[test]
fn a_call_without_a_program_ends_the_conversation() {
    let sandbox = Sandbox::new();
    let server = turns(&[calls(&[("c1", "now", "{}"), ("c2", "free", "{}")])]);
    let now = sandbox.script("now", "touch has-run");
    let run = sandbox.chat(&server.base_url(), &["--run-tool", &now, "--yes", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let calls = run.json()["choices"][0]["message"]["tool_calls"].clone();
    assert_eq!(calls[1]["function"]["name"], "free");
    assert_eq!(server.requests().len(), 1);
    assert!(!Path::new(&sandbox.path("has-run")).exists());
}

#[test]
fn each_turn_has_its_own_recording() {
    let sandbox = Sandbox::new();
    let bodies = [calls(&[("c1", "now", "{}")]), answer("Done.")];
    let now = sandbox.script("now", "echo 12:00");
    let file = sandbox.path("answer.sse");
    let args = ["--run-tool", &now, "--yes", "--record", &file];
    let run = sandbox.chat(&turns(&bodies).base_url(), &args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let recorded =
        [file, sandbox.path("answer.2.sse")].map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(recorded, bodies);
}
