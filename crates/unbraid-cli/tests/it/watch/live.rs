//! `unbraid watch` with a speed, on a live pipe, and until Ctrl-C.

use std::{
    io::{BufRead, BufReader, Write},
    process::Command,
    time::Duration,
};

use tokio::time::Instant;
use unbraid_testkit::fixture::Fixture;

use super::{DONE, delta, finish, lines_of, run};
use crate::{pipes, unbraid};

#[test]
fn speed_is_the_number_of_events_per_second() {
    let stream = format!(
        "{}{}{}{}{DONE}",
        delta(0, "a "),
        delta(0, "b "),
        delta(0, "c"),
        finish(0)
    );
    let start = Instant::now();
    let slow = run("watch --speed 10", stream.as_bytes(), &[]);
    let elapsed = start.elapsed();
    assert_eq!(slow.code, 0);
    assert_eq!(lines_of(&slow, 0), ["a b c"]);
    // Five events have four pauses. There is no upper bound, because the machine may be busy.
    assert!(elapsed >= Duration::from_millis(390), "{elapsed:?}");
    let fixture = Fixture::named("broken/proxy-s29-json-lines");
    let fast = run("watch --speed 1e6 -", &fixture.bytes, &[]);
    assert_eq!(fast.code, crate::run_fixture("collect", &fixture).code);
    for invalid in ["0", "-1", "fast", "nan", "inf", "1e-9"] {
        assert_eq!(
            unbraid(&format!("watch --speed {invalid}"), b"").code,
            2,
            "{invalid}"
        );
    }
}

#[test]
fn speed_does_not_change_the_lines() {
    for fixture in Fixture::all()
        .iter()
        .filter(|f| f.bytes.len() < 200_000)
        .step_by(11)
    {
        let args = format!("watch {}", crate::flags(fixture));
        let unpaced = run(&args, &fixture.bytes, &[]);
        let paced = run(&format!("{args} --speed 1e6"), &fixture.bytes, &[]);
        assert_eq!(unpaced.code, paced.code, "{}", fixture.name);
        for choice in 0..8 {
            if unpaced.stdout.contains('[') {
                assert_eq!(
                    lines_of(&unpaced, choice),
                    lines_of(&paced, choice),
                    "{}",
                    fixture.name
                );
            }
        }
    }
}

#[test]
fn a_line_is_printed_before_the_next_chunk_is_sent() {
    let mut child = pipes::spawn("watch");
    let watchdog = pipes::watchdog(&child);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for k in 0..20_u32 {
        stdin
            .write_all(delta(k % 3, &format!("line {k}\n")).as_bytes())
            .unwrap();
        let line = lines.next().expect("killed by the watchdog").unwrap();
        assert_eq!(line, format!("[{}] line {k}", k % 3));
    }
    // A long line is not broken.
    let long = "word ".repeat(100);
    stdin.write_all(delta(1, &long).as_bytes()).unwrap();
    drop(stdin);
    assert_eq!(lines.next().unwrap().unwrap(), format!("[1] {long}"));
    assert!(lines.last().unwrap().unwrap().starts_with("stream closed"));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(watchdog);
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let line = delta(0, "on and on\n");
    pipes::run_without_reader("watch", line.as_bytes(), usize::MAX, 0);
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_and_the_summary_is_still_printed() {
    let mut child = pipes::spawn("watch");
    let watchdog = pipes::watchdog(&child);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    stdin
        .write_all(format!("{}{}", delta(0, "half\n"), delta(1, "whole\n")).as_bytes())
        .unwrap();
    for _ in 0..2 {
        lines.next().expect("killed by the watchdog").unwrap();
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    // The standard input stays open, so that only the signal ends the command.
    let remaining: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(
        remaining
            .iter()
            .any(|line| line.starts_with("[0] cancelled")),
        "{remaining:?}"
    );
    assert_eq!(
        remaining.last().unwrap(),
        "stream cancelled  ~4 completion tokens"
    );
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop((stdin, watchdog));
}
