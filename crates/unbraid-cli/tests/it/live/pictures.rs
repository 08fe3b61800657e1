//! Snapshots of the view and of the picture that stays, on terminals of three sizes.
//!
//! With `UNBRAID_BLESS` set, the tests replace the snapshots.

use std::{env, fs, path::PathBuf};

use unbraid_testkit::{fixture::workspace_root, terminal::Terminal};

use super::check_restored;
use crate::UNBRAID;

/// Rows and columns.
const SIZES: [(u16, u16); 3] = [(24, 80), (40, 120), (50, 200)];

/// The text of a screen without what differs between two runs: numbers of seconds, rates and ports, and the length of
/// rules, which depends on them.
fn stable(screen: &str) -> String {
    let mut text = String::new();
    for line in screen.lines() {
        let words = line.split(' ').collect::<Vec<&str>>();
        let is_measured = |position: usize| {
            let unit = words.get(position + 1).copied().unwrap_or_default();
            unit == "s" || unit.starts_with("tokens/s")
        };
        let mut out: Vec<String> = Vec::new();
        for (position, word) in words.iter().enumerate() {
            if word.starts_with(|c: char| c.is_ascii_digit()) && is_measured(position) {
                out.push("#".into());
            } else if let Some((before, _)) = word.split_once("127.0.0.1:") {
                out.push(format!("{before}127.0.0.1:#"));
            } else {
                out.push(rule(word));
            }
        }
        // The rule behind a title is gone where its figures have a digit more.
        text.push_str(
            out.join(" ")
                .replace("\u{2500}\u{2510}", "\u{2510}")
                .trim_end(),
        );
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// A word in which each rule has one character.
fn rule(word: &str) -> String {
    let mut short = String::new();
    for c in word.chars() {
        if !(c == '\u{2500}' && short.ends_with('\u{2500}')) {
            short.push(c);
        }
    }
    short
}

#[track_caller]
fn check(name: &str, (rows, columns): (u16, u16), screen: &str) {
    let file = format!("crates/unbraid-cli/tests/it/live/{name}-{columns}x{rows}.txt");
    let path: PathBuf = workspace_root().join(file);
    let actual = stable(screen);
    if env::var_os("UNBRAID_BLESS").is_some() {
        fs::write(&path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected.replace("\r\n", "\n"), "{name}\n{screen}");
}

#[test]
fn the_demo_shows_the_braid_and_leaves_its_picture() {
    for size in SIZES {
        let args = ["demo", "--speed", "10", "--stay"];
        let terminal = Terminal::run(UNBRAID, args, size);
        // The last row is drawn last.
        let is_drawn =
            |text: &str| text.contains("stream closed") && text.contains("events  q quit");
        let screen = terminal.wait(|screen| is_drawn(&screen.contents()));
        check("demo-view", size, &screen);
        terminal.press("q");
        let left = terminal.end();
        check_restored(&left, 0);
        check("demo-picture", size, &left.contents);
    }
}

#[test]
fn a_recording_is_replayed_and_leaves_its_picture() {
    let name = "tests/fixtures/openai_chat/openai-t28-t43-parallel-tools-two-choices.sse";
    let path = workspace_root().join(name);
    for size in SIZES {
        let args = ["watch", "--speed", "100", path.to_str().unwrap()];
        let left = Terminal::run(UNBRAID, args, size).end();
        check_restored(&left, 0);
        check("watch-picture", size, &left.contents);
    }
}

#[test]
fn an_error_is_marked_in_the_picture() {
    let path = workspace_root().join("tests/fixtures/broken/vllm-x06-object-error.sse");
    for size in SIZES {
        let left = Terminal::run(UNBRAID, ["watch", path.to_str().unwrap()], size).end();
        assert_eq!(left.code, Some(3), "{}", left.contents);
        assert!(left.restored);
        // The error is red and bold, and a tick marks the choice that had finished before it.
        assert!(
            left.written
                .contains("\u{1b}[1m\u{1b}[38;5;160m\u{2717} server_error"),
            "{:?}",
            left.written
        );
        assert!(left.contents.contains("\u{2713} stop"), "{}", left.contents);
        let line = |start: &str| {
            left.contents
                .lines()
                .filter(|line| line.starts_with(start))
                .count()
        };
        assert_eq!(line("stream server_error"), 1, "{}", left.contents);
        assert!(!left.contents.contains("0 calls"));
    }
}

#[test]
fn colours_follow_the_terminal() {
    let run = |variables: &[&str]| {
        let mut args: Vec<&str> = variables.to_vec();
        args.extend([UNBRAID, "demo", "--speed", "100", "--stay"]);
        let terminal = Terminal::run("env", args, (40, 120));
        terminal.wait_for("4 choices, stream closed");
        terminal.press("q");
        terminal.end()
    };
    let many = run(&[]);
    assert!(many.written.contains("\u{1b}[38;5;33m"), "256 colours");
    assert!(
        many.contents.contains("\u{2713} length"),
        "{}",
        many.contents
    );
    assert!(many.written.contains("38;5;136"), "length is amber");
    let few = run(&["TERM=xterm"]);
    assert!(
        few.written.contains("\u{1b}[94m"),
        "16 colours: {:?}",
        few.written
    );
    assert!(!few.written.contains("38;5;33m"));
    let none = run(&["NO_COLOR=1"]);
    assert!(!none.written.contains("\u{1b}[38;5;"), "{:?}", none.written);
    assert!(
        none.contents.contains("[2] \u{2713} length"),
        "{}",
        none.contents
    );
}
