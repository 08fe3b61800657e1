//! `unbraid demo`: four answers over a real socket.

#[cfg(feature = "serve")]
mod web;

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
};

use unbraid_testkit::fixture::workspace_root;

use crate::{pipes, unbraid, watch};

#[test]
fn four_answers_arrive_over_http() {
    let run = watch::run("demo --speed 50", b"", &[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(!run.stdout.contains('\u{1b}'));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].ends_with('?'));
    assert!(lines[1].contains(" http://127.0.0.1:"), "{}", lines[1]);
    let has = |wanted: &str| lines.iter().any(|line| line.starts_with(wanted));
    for wanted in [
        "[0] Start on Bygdøy with",
        "[1] 4. Evening:",
        "[2] Rain is no reason",
        "[3] > get_forecast {",
        "[3] >   \"day\": \"saturday\"",
        "[3] > find_activities {",
        "[3] >     8",
        "[0] finished (stop)                 ~73 tokens  first delta ",
        "[1] finished (stop)                 ~93 tokens  first delta ",
        "[2] finished (length)               ~94 tokens  first delta ",
        "[3] finished (tool_calls)  2 calls  ~66 tokens  first delta ",
        "stream closed  24 prompt  326 completion  350 total tokens",
    ] {
        assert!(has(wanted), "{wanted}: {}", run.stdout);
    }
    assert!(lines.last().unwrap().contains("unbraid watch"));
}

#[test]
fn concurrent_demos_do_not_interfere() {
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| unbraid("demo --speed 100 --strict", b"")))
            .collect();
        for run in runs {
            assert_eq!(run.join().unwrap().code, 0);
        }
    });
}

#[test]
fn a_closed_output_pipe_ends_the_demo_without_a_message() {
    let mut child = pipes::spawn("demo");
    let watchdog = pipes::watchdog(&child);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.ends_with("?\n"));
    drop(stdout);
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!(errors, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(watchdog);
}

#[test]
fn the_picture_in_the_readme_is_what_the_demo_draws() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("braid.svg");
    let run = unbraid(&format!("demo --svg {}", file.display()), b"");
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "")
    );
    let drawn = fs::read_to_string(&file).unwrap();
    let committed = workspace_root().join("docs/braid.svg");
    if env::var_os("UNBRAID_BLESS").is_some() {
        fs::write(&committed, &drawn).unwrap();
    }
    let committed = fs::read_to_string(committed).unwrap();
    assert_eq!(
        drawn,
        committed.replace("\r\n", "\n"),
        "run `unbraid demo --svg docs/braid.svg`"
    );
    for text in [
        "[3]",
        "\u{2713} length",
        "in: ",
        "get_forecast",
        "tokens/s",
        "elapsed ",
    ] {
        assert!(drawn.contains(text), "{text}");
    }
    let missing = unbraid(
        &format!("demo --svg {}", dir.path().join("no/braid.svg").display()),
        b"",
    );
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("no/braid.svg") || cfg!(windows),
        "{}",
        missing.stderr
    );
}
