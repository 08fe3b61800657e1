//! Programs that fail, and conversations that do not end.

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::{Sandbox, answer, calls, calls_with, exists, new_messages, tool_result, turns};
use crate::{Run, UNBRAID, pipes::watchdog};

/// Runs the script for one call, and returns the run and the result that the model reads.
#[track_caller]
fn fail(sandbox: &Sandbox, script: &str, more: &[&str]) -> (Run, Value) {
    let server = turns(&[calls(&[("c1", "now", "{}")]), answer("Sorry.")]);
    let now = sandbox.script("now", script);
    let args = [&["--run-tool", &now, "--yes"], more].concat();
    let run = sandbox.chat(&server.base_url(), &args);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "Sorry.\n"),
        "{}",
        run.stderr
    );
    let result = new_messages(&server, 1).swap_remove(1);
    (run, result)
}

#[test]
fn the_model_reads_the_exit_code_and_the_user_reads_why() {
    let script = "echo half; printf 'no \\033[31mkey\\n2\\n3\\n4\\n5\\n6\\n' >&2; exit 3";
    let (run, result) = fail(&Sandbox::new(), script, &[]);
    let error = "error: the tool failed with exit code 3";
    assert_eq!(result, tool_result("c1", error));
    let lines: Vec<&str> = run.stderr.lines().collect();
    let expected = [
        "unbraid: call of now: {}",
        "unbraid: now: no \\u{1b}[31mkey",
        "unbraid: now: 2",
        "unbraid: now: 3",
        "unbraid: now: 4",
        "unbraid: now: 5",
        &format!("unbraid: result of now: {error}"),
    ];
    assert_eq!(lines, expected);
    let (_, result) = fail(&Sandbox::new(), "kill -9 $$", &[]);
    assert_eq!(result["content"], "error: the tool was ended by a signal");
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let sandbox = Sandbox::new();
    let start = Instant::now();
    let (_, result) = fail(
        &sandbox,
        "sleep 600 & echo $! > pid; wait",
        &["--tool-timeout", "0.5"],
    );
    assert_eq!(
        result["content"],
        "error: the tool did not end within 500ms"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    let pid = fs::read_to_string(sandbox.path("pid")).unwrap();
    while exists(&pid) {
        assert!(start.elapsed() < Duration::from_secs(30), "{pid} is alive");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_output_without_end_is_an_error() {
    let (_, result) = fail(&Sandbox::new(), "yes", &[]);
    assert_eq!(
        result["content"],
        "error: the output of the tool exceeds 1048576 bytes"
    );
    let (_, result) = fail(
        &Sandbox::new(),
        "head -c 1048576 /dev/zero | tr '\\0' x",
        &[],
    );
    assert_eq!(result["content"].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_program_need_not_read_its_input_and_may_write_any_errors() {
    let sandbox = Sandbox::new();
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(300_000));
    let server = turns(&[calls(&[("c1", "now", &long)]), answer("Done.")]);
    let now = sandbox.script("now", "exec <&-; head -c 300000 /dev/zero >&2; echo ok");
    let run = sandbox.chat(&server.base_url(), &["--run-tool", &now, "--yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(new_messages(&server, 1)[1], tool_result("c1", "ok"));
}

#[test]
fn t44_an_unknown_tool_is_an_error_that_the_model_reads() {
    let sandbox = Sandbox::new();
    let server = turns(&[calls(&[("c1", "nothing", "{}")]), answer("Sorry.")]);
    let now = sandbox.script("now", "echo 12:00");
    let run = sandbox.chat(&server.base_url(), &["--run-tool", &now, "--yes"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Sorry.\n"));
    let error = "error: there is no tool of this name";
    assert_eq!(new_messages(&server, 1)[1], tool_result("c1", error));
    assert_eq!(run.stderr, format!("unbraid: result of nothing: {error}\n"));
}

#[test]
fn arguments_that_are_not_json_do_not_start_the_program() {
    let sandbox = Sandbox::new();
    let server = turns(&[calls(&[("c1", "now", "{\"a\":")]), answer("Sorry.")]);
    let now = sandbox.script("now", "touch has-run");
    let run = sandbox.chat(&server.base_url(), &["--run-tool", &now, "--yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let result = new_messages(&server, 1)[1]["content"].clone();
    assert!(
        result
            .as_str()
            .unwrap()
            .starts_with("error: the arguments are not valid JSON")
    );
    assert!(fs::metadata(sandbox.path("has-run")).is_err());
}

#[test]
fn a_conversation_ends_after_max_turns_with_its_own_code() {
    let sandbox = Sandbox::new();
    let now = sandbox.script("now", "echo x >> runs");
    for (more, requests) in [
        (&["--max-turns", "2"][..], 2),
        (&[], 5),
        (&["--max-turns", "1"], 1),
    ] {
        let server = turns(&[calls_with("Again.", "tool_calls", &[("c1", "now", "{}")])]);
        let _first = fs::remove_file(sandbox.path("runs"));
        let args = [&["--run-tool", &now, "--yes"], more].concat();
        let run = sandbox.chat(&server.base_url(), &args);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (4, "Again.\n"),
            "{}",
            run.stderr
        );
        assert_eq!(server.requests().len(), requests);
        let runs = fs::read_to_string(sandbox.path("runs")).unwrap_or_default();
        assert_eq!(runs.lines().count(), requests - 1);
        let turns = if requests == 1 {
            "1 turn".to_owned()
        } else {
            format!("{requests} turns")
        };
        let message =
            format!("unbraid: answer: a call left after {turns}: --max-turns allows no more\n");
        assert!(run.stderr.ends_with(&message), "{}", run.stderr);
    }
}

#[test]
fn calls_of_an_answer_that_was_cut_are_not_run() {
    let sandbox = Sandbox::new();
    let now = sandbox.script("now", "touch has-run");
    let cut = calls_with("Hm.", "length", &[("c1", "now", "{}")]);
    let lost = calls(&[("c1", "now", "{}")]).replace("tool_calls\"}", "\"}");
    let lost = lost.replace("\"finish_reason\":\"tool_calls\"", "\"finish_reason\":null");
    for body in [cut, lost.replace(super::DONE, "")] {
        let server = turns(&[body]);
        let run = sandbox.chat(&server.base_url(), &["--run-tool", &now, "--yes"]);
        assert_eq!(
            (run.code, server.requests().len()),
            (3, 1),
            "{}",
            run.stderr
        );
        assert!(fs::metadata(sandbox.path("has-run")).is_err());
    }
}

#[test]
fn an_interrupt_and_a_signal_to_end_kill_the_programs() {
    check_signal("-INT", 3);
    check_signal("-TERM", 143);
    check_signal("-HUP", 129);
}

#[track_caller]
fn check_signal(signal: &str, code: i32) {
    let sandbox = Sandbox::new();
    let server = turns(&[calls(&[("c1", "now", "{}")]), answer("Done.")]);
    let now = sandbox.script(
        "now",
        "sleep 600 & echo $! > pid.part; mv pid.part pid; wait",
    );
    let url = server.base_url();
    let mut child = Command::new(UNBRAID)
        .arg("chat")
        .args(sandbox.args(&url, &["--run-tool", &now, "--yes"]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let _watchdog = watchdog(&child);
    let pid = loop {
        match fs::read_to_string(sandbox.path("pid")) {
            Ok(pid) => break pid,
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
        assert!(child.try_wait().unwrap().is_none());
    };
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(code));
    let start = Instant::now();
    while exists(&pid) {
        assert!(start.elapsed() < Duration::from_secs(30), "{pid} is alive");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.requests().len(), 1);
}
