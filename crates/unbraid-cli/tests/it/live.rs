//! The live view in a pseudo-terminal, with an emulator that interprets its output.

mod keys;
mod pictures;

use std::{
    io::Write,
    process::{ChildStdin, Command, Stdio},
};

use serde_json::{Value, json};
use unbraid_testkit::{
    fixture::workspace_root,
    terminal::{Left, Terminal},
};

use crate::UNBRAID;

/// A running `watch` whose stream the test writes chunk by chunk.
struct LiveStream {
    terminal: Terminal,
    stdin: ChildStdin,
}

impl LiveStream {
    fn watch(args: &[&str], size: (u16, u16)) -> Self {
        let args = ["watch"].iter().chain(args);
        let mut terminal = Terminal::run_with_stdin(UNBRAID, args, size, Some(Stdio::piped()));
        let stdin = terminal.stdin().expect("a pipe");
        Self { terminal, stdin }
    }

    fn chunk(&mut self, choice: &Value) {
        let chunk = json!({ "choices": [choice] });
        write!(self.stdin, "data: {chunk}\n\n").unwrap();
    }

    fn content(&mut self, choice: u32, text: &str) {
        self.chunk(&json!({ "index": choice, "delta": { "content": text } }));
    }

    fn call(&mut self, choice: u32, call: &Value) {
        self.chunk(&json!({ "index": choice, "delta": { "tool_calls": [call] } }));
    }

    fn finish(&mut self, choice: u32) {
        self.chunk(&json!({ "index": choice, "delta": {}, "finish_reason": "stop" }));
    }

    fn done(mut self) -> Terminal {
        self.stdin.write_all(b"data: [DONE]\n\n").unwrap();
        self.terminal
    }
}

#[track_caller]
fn check_restored(left: &Left, code: i32) {
    assert_eq!(left.code, Some(code), "{}", left.contents);
    assert!(left.restored, "{}", left.contents);
    assert!(
        left.written.contains("\u{1b}[?1049l"),
        "the view was never open"
    );
}

/// The output after the live view, without colours.
fn printed(left: &Left) -> String {
    let (_, printed) = left.written.rsplit_once("\u{1b}[?1049l").unwrap();
    let mut text = String::new();
    let mut rest = printed;
    while let Some((before, sequence)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        rest = &sequence[end + 1..];
    }
    text.push_str(rest);
    text.replace("\r\n", "\n")
}

#[test]
fn each_choice_has_a_column() {
    let mut stream = LiveStream::watch(&[], (20, 90));
    stream.content(1, "Hello from one");
    stream.content(0, "Hello from zero");
    stream.content(2, "Hello from two");
    let screen = stream.terminal.wait_for("Hello from two");
    let row = screen
        .lines()
        .rfind(|line| line.contains("Hello from zero"))
        .unwrap();
    let column = |text| row.find(text).unwrap_or_else(|| panic!("{screen}"));
    assert!(
        column("zero") < column("one") && column("one") < column("two"),
        "{screen}"
    );
    stream.terminal.wait_for("[1] writing");
    stream.terminal.wait_for("3 of 3 choices open");
    stream.content(1, ", and on");
    stream.terminal.wait_for("one, and on");
    stream.finish(0);
    stream.content(2, " and two");
    stream.terminal.wait_for("[0] \u{2713} stop");
    stream.terminal.wait_for("2 of 3 choices open");
    stream.finish(1);
    stream.finish(2);
    let left = stream.done().end();
    check_restored(&left, 0);
    let printed = printed(&left);
    // The picture, and one line for each choice. The text is not printed again as lines.
    for text in [
        "[0]Hello from zero ",
        "\u{2502}Hello from zero ",
        "\n[0] \u{2713} stop  ",
    ] {
        assert_eq!(printed.matches(text).count(), 1, "{text}: {printed}");
    }
    assert!(!printed.contains("\n[0] Hello"), "{printed}");
    assert!(printed.contains("\nstream closed"), "{printed}");
}

#[test]
fn calls_grow_as_indented_json() {
    let mut stream = LiveStream::watch(&[], (20, 60));
    stream.call(
        0,
        &json!({ "index": 0, "id": "c", "function": { "name": "forecast", "arguments": "{\"ci" } }),
    );
    stream.terminal.wait_for("\"ci");
    stream.call(
        0,
        &json!({ "index": 0, "function": { "arguments": "ty\":\"Os" } }),
    );
    let screen = stream.terminal.wait_for("  \"city\": \"Os");
    assert!(screen.contains("> forecast {"), "{screen}");
    stream.terminal.wait_for("[0] calling");
    stream.call(
        0,
        &json!({ "index": 0, "function": { "arguments": "lo\",\"days\":[1" } }),
    );
    stream.terminal.wait_for("\"days\": [");
    stream.terminal.press("q");
    let left = stream.terminal.end();
    check_restored(&left, 3);
    let printed = printed(&left);
    for text in [
        "> forecast {\n  \"city\": \"Oslo\",\n  \"days\": [\n    1 (truncated)\n",
        "\n[0] \u{2717} cancelled  1 call  ",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
}

#[test]
fn resizing_rearranges_the_choices() {
    let mut stream = LiveStream::watch(&[], (24, 100));
    stream.content(0, "zero");
    stream.content(1, "one");
    let side_by_side = |screen: &vt100::Screen| {
        let contents = screen.contents();
        contents
            .lines()
            .any(|line| line.contains("[0] writing") && line.contains("[1] writing"))
    };
    stream.terminal.wait(side_by_side);
    stream.terminal.resize((24, 40));
    stream
        .terminal
        .wait(|screen| !side_by_side(screen) && screen.contents().contains("[1] writing"));
    stream.terminal.resize((30, 120));
    stream.terminal.wait(side_by_side);
    stream.terminal.resize((2, 3));
    stream.terminal.resize((24, 100));
    stream.terminal.wait(side_by_side);
    stream.terminal.press("\u{3}");
    check_restored(&stream.terminal.end(), 3);
}

#[test]
fn keys_scroll_and_keep_the_view_open() {
    let mut stream = LiveStream::watch(&[], (12, 50));
    let text: String = (0..50).map(|k| format!("line {k}\n")).collect();
    stream.content(0, &text);
    let screen = stream.terminal.wait_for("line 49");
    assert!(!screen.contains("\nline 0"), "{screen}");
    stream.terminal.press("\u{1b}[H");
    let screen = stream.terminal.wait_for("\nline 0");
    assert!(!screen.contains("\nline 49"), "{screen}");
    stream.terminal.press("\u{1b}[B");
    stream.terminal.wait(|screen| {
        !screen.contents().contains("\nline 0\n") && screen.contents().contains("\nline 1")
    });
    stream.content(0, "line 50\n");
    stream.terminal.wait_for("of 51");
    stream.terminal.press("\u{1b}[F");
    stream.terminal.wait_for("\nline 50");
    stream.finish(0);
    let terminal = stream.done();
    // A key was used, so the user may still be reading, and the end of the stream does not close the view.
    terminal.wait_for("1 choice, stream closed");
    terminal.press("q");
    check_restored(&terminal.end(), 0);
}

#[test]
fn the_view_stays_open_with_the_option() {
    let mut stream = LiveStream::watch(&["--stay"], (12, 60));
    stream.content(0, "Hi");
    stream.finish(0);
    let terminal = stream.done();
    terminal.wait_for("1 choice, stream closed");
    terminal.press("q");
    check_restored(&terminal.end(), 0);
}

#[test]
fn a_signal_restores_the_terminal() {
    for (signal, code) in [("-TERM", 128 + 15), ("-HUP", 128 + 1), ("-INT", 3)] {
        let mut stream = LiveStream::watch(&[], (12, 60));
        stream.content(0, "Hi");
        stream.terminal.wait_for("Hi");
        let id = stream.terminal.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        check_restored(&stream.terminal.end(), code);
    }
}

/// As with `kill -STOP`, and `fg` in a shell, which has used the terminal meanwhile.
#[cfg(target_os = "linux")]
#[test]
fn a_view_that_was_stopped_takes_the_terminal_again() {
    let mut stream = LiveStream::watch(&[], (12, 60));
    stream.content(0, "Hi");
    stream.terminal.wait_for("Hi");
    let id = stream.terminal.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &id]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let shell = format!(
        "tty=$(readlink /proc/{id}/fd/1); stty sane <$tty; printf '\\033[?1049l\\033[?25h$ fg' >$tty"
    );
    assert!(
        Command::new("sh")
            .args(["-c", &shell])
            .status()
            .unwrap()
            .success()
    );
    stream.terminal.wait_for("$ fg");
    signal("-CONT");
    let screen = stream.terminal.wait_for("Hi");
    assert!(!screen.contains("$ fg"), "{screen}");
    stream.terminal.press("q");
    check_restored(&stream.terminal.end(), 3);
}

#[test]
fn a_model_cannot_control_the_screen() {
    let mut stream = LiveStream::watch(&[], (12, 70));
    stream.content(0, "a\u{1b}[2Jb\u{9b}31m\u{202e}c\u{1b}]0;title\u{7}");
    let screen = stream
        .terminal
        .wait_for("\\u{1b}[2Jb\\u{9b}31m\\u{202e}c\\u{1b}]0;title\\u{7}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
    stream.terminal.press("q");
    let left = stream.terminal.end();
    for control in ["\u{1b}[2Jb", "\u{9b}", "\u{202e}", "\u{1b}]"] {
        assert!(!left.written.contains(control), "{control:?}");
    }
}

#[test]
fn lines_are_printed_if_the_view_cannot_open() {
    let fixture = workspace_root().join("tests/fixtures/openai_chat/openai-m04-refusal.sse");
    let fixture = fixture.to_str().unwrap();
    let lines = Terminal::run(UNBRAID, ["watch", "--plain", fixture], (24, 80)).end();
    assert_eq!(lines.code, Some(0));
    assert!(!lines.written.contains("\u{1b}[?1049h"));
    assert!(
        lines.contents.contains("[0] ! I'm sorry"),
        "{}",
        lines.contents
    );
    // The stream itself is typed at the terminal, so the view could not read keys.
    let typed = Terminal::run(UNBRAID, ["watch"], (24, 80));
    typed.press("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"typed\\n\"},\"finish_reason\":\"stop\"}]}\n\n");
    typed.wait_for("[0] typed");
    typed.wait_for("waiting for a stream on the terminal");
    typed.press("data: [DONE]\n\n\u{4}");
    let typed = typed.end();
    assert_eq!(typed.code, Some(0));
    assert!(!typed.written.contains("\u{1b}[?1049h"));
}

#[test]
fn a_command_that_reads_from_the_terminal_says_what_it_waits_for() {
    for command in ["collect", "events", "watch"] {
        let terminal = Terminal::run(UNBRAID, [command], (24, 80));
        terminal.wait_for("unbraid: waiting for a stream on the terminal; end it with Ctrl-D");
        terminal.press("\u{4}");
        assert_eq!(terminal.end().code, Some(1), "{command}");
        let path = workspace_root().join("tests/fixtures/openai_chat/openai-m04-refusal.sse");
        let from_file = Terminal::run(UNBRAID, [command, path.to_str().unwrap()], (24, 80));
        assert!(!from_file.end().written.contains("waiting for"));
    }
}

/// A process in its own session has no controlling terminal to read keys from, although it can write to this one.
#[cfg(target_os = "linux")]
#[test]
fn without_keys_the_view_works_and_closes_by_itself() {
    let args = ["--wait", UNBRAID, "watch", "--stay"];
    let mut terminal = Terminal::run_with_stdin("setsid", args, (12, 60), Some(Stdio::piped()));
    let stdin = terminal.stdin().expect("a pipe");
    let mut stream = LiveStream { terminal, stdin };
    stream.content(0, "Hi");
    let screen = stream.terminal.wait_for("1 of 1 choice open");
    assert!(!screen.contains("q quit"), "{screen}");
    stream.terminal.resize((12, 100));
    stream.terminal.wait(|screen| {
        let contents = screen.contents();
        let is_rule = |line: &str| line.ends_with("──") && line.chars().count() == 100;
        contents.lines().any(is_rule)
    });
    stream.finish(0);
    check_restored(&stream.done().end(), 0);
}
