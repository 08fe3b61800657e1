//! The question before a program runs, on the terminal.

use std::{fs, io::Write, process::Stdio};

use unbraid_testkit::terminal::Terminal;

use super::{Sandbox, answer, calls, new_messages, tool_result, turns};
use crate::UNBRAID;

fn run(sandbox: &Sandbox, url: &str, more: &[&str]) -> Terminal {
    let mut args = vec!["chat".to_owned()];
    args.extend(sandbox.args(url, more));
    Terminal::run(UNBRAID, args, (24, 120))
}

#[test]
fn the_user_agrees_or_declines() {
    let sandbox = Sandbox::new();
    let now = sandbox.script("now", "touch has-run; echo 12:00");
    for (keys, result, has_run) in [
        ("n\r", "error: the user declined", false),
        ("\r", "error: the user declined", false),
        ("yellow\r", "error: the user declined", false),
        ("\u{4}", "error: the user declined", false),
        ("y\r", "12:00", true),
    ] {
        let server = turns(&[
            calls(&[("c1", "now", "{\"a\":\"\u{9b}2J\u{202e}\"}")]),
            answer("Done."),
        ]);
        let url = server.base_url();
        let terminal = run(&sandbox, &url, &["--run-tool", &now]);
        let question = "unbraid: run now {\"a\":\"\\u{9b}2J\\u{202e}\"}? [y/N]";
        terminal.wait_for(question);
        assert!(fs::metadata(sandbox.path("has-run")).is_err());
        terminal.press(keys);
        let left = terminal.end();
        assert_eq!(left.code, Some(0), "{}", left.contents);
        assert_eq!(new_messages(&server, 1)[1], tool_result("c1", result));
        assert_eq!(fs::metadata(sandbox.path("has-run")).is_ok(), has_run);
        let shown = format!("unbraid: result of now: {result}");
        assert!(left.contents.contains(&shown), "{}", left.contents);
        // Lines, not the view.
        assert!(left.contents.contains("[0] Done."), "{}", left.contents);
        assert!(!left.written.contains("\u{1b}[?1049h"));
    }
}

#[test]
fn each_call_has_its_own_question_in_the_order_of_the_calls() {
    let sandbox = Sandbox::new();
    let server = turns(&[
        calls(&[("c1", "now", "{}"), ("c2", "weather", "{}")]),
        answer("Done."),
    ]);
    let now = sandbox.script("now", "echo 12:00");
    let weather = sandbox.script("weather", "echo rain");
    let url = server.base_url();
    let args = ["--run-tool", &now, "--run-tool", &weather];
    let terminal = run(&sandbox, &url, &args);
    let screen = terminal.wait_for("run now {}? [y/N]");
    assert!(!screen.contains("run weather"), "{screen}");
    terminal.press("n\r");
    terminal.wait_for("run weather {}? [y/N]");
    terminal.press("Y\r");
    assert_eq!(terminal.end().code, Some(0));
    let expected = [
        tool_result("c1", "error: the user declined"),
        tool_result("c2", "rain"),
    ];
    assert_eq!(new_messages(&server, 1)[1..], expected);
}

#[test]
fn the_question_is_asked_on_the_terminal_while_the_input_is_a_pipe() {
    let sandbox = Sandbox::new();
    let server = turns(&[calls(&[("c1", "now", "{}")]), answer("Done.")]);
    let now = sandbox.script("now", "cat; echo 12:00");
    let url = server.base_url();
    let mut args = vec!["chat".to_owned()];
    args.extend(sandbox.args(&url, &["--run-tool", &now, "--text"]));
    args.pop();
    let mut terminal = Terminal::run_with_stdin(UNBRAID, args, (24, 120), Some(Stdio::piped()));
    let mut stdin = terminal.stdin().unwrap();
    stdin.write_all(b"y\ny\n").unwrap();
    drop(stdin);
    terminal.wait_for("run now {}? [y/N]");
    terminal.press("y\r");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{}", left.contents);
    let question = server.requests()[0].body["messages"][0]["content"].clone();
    assert_eq!(question, "y\ny");
    assert_eq!(new_messages(&server, 1)[1], tool_result("c1", "{}12:00"));
}

#[test]
fn input_from_before_the_question_is_not_its_answer() {
    let sandbox = Sandbox::new();
    let server = turns(&[
        calls(&[("c1", "now", "{}"), ("c2", "now", "{}")]),
        answer("Done."),
    ]);
    let now = sandbox.script(
        "now",
        "touch running; until test -e go; do sleep 0.01; done",
    );
    let url = server.base_url();
    let terminal = run(&sandbox, &url, &["--run-tool", &now]);
    terminal.wait_for("[y/N]");
    terminal.press("y\r");
    while fs::metadata(sandbox.path("running")).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    terminal.press("y\ry\r");
    terminal.wait_for("y\ny\n"); // echoed, so it is in the queue
    fs::write(sandbox.path("go"), "").unwrap();
    terminal.wait(|screen| screen.contents().matches("[y/N]").count() == 2);
    terminal.press("n\r");
    assert_eq!(terminal.end().code, Some(0));
    let declined = tool_result("c2", "error: the user declined");
    assert_eq!(new_messages(&server, 1)[2], declined);
}

#[test]
fn an_interrupt_at_the_question_ends_the_conversation() {
    let sandbox = Sandbox::new();
    let server = turns(&[calls(&[("c1", "now", "{}")]), answer("Done.")]);
    let now = sandbox.script("now", "touch has-run");
    let url = server.base_url();
    let terminal = run(&sandbox, &url, &["--run-tool", &now]);
    terminal.wait_for("[y/N]");
    terminal.press("\u{3}");
    let left = terminal.end();
    assert_eq!(left.code, Some(3), "{}", left.contents);
    let is_explained = left.contents.contains("cancelled before the last answer");
    assert!(is_explained, "{:?}", left.written);
    assert_eq!(server.requests().len(), 1);
    assert!(fs::metadata(sandbox.path("has-run")).is_err());
}

/// A process in its own session has no controlling terminal.
#[cfg(target_os = "linux")]
#[test]
fn without_a_terminal_nothing_is_sent() {
    let sandbox = Sandbox::new();
    let server = turns(&[answer("Never.")]);
    let now = sandbox.script("now", "touch has-run");
    let url = server.base_url();
    let run = std::process::Command::new("setsid")
        .args(["--wait", UNBRAID, "chat"])
        .args(sandbox.args(&url, &["--run-tool", &now]))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let run = crate::Run::from(run);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("--yes"), "{}", run.stderr);
    assert_eq!(server.requests().len(), 0);
}
