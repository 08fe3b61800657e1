//! `unbraid demo`: four answers over a real socket.

use std::io::{BufRead, BufReader, Read};

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
        "[0] finished (stop)        0 calls",
        "[1] finished (stop)        0 calls",
        "[2] finished (length)      0 calls",
        "[3] finished (tool_calls)  2 calls",
        "stream closed  24 prompt  ",
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
