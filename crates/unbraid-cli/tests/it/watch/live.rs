//! Watching at a pace, over a live pipe, and until Ctrl-C.

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
fn a_speed_is_a_number_of_events_a_second() {
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
    // Five events, so four pauses; there is no bound above on a machine with other work to do.
    assert!(elapsed >= Duration::from_millis(390), "{elapsed:?}");
    let fixture = Fixture::named("broken/proxy-s29-json-lines");
    let fast = run("watch --speed 1e6 -", &fixture.bytes, &[]);
    assert_eq!(fast.code, crate::over("collect", &fixture).code);
    for wrong in ["0", "-1", "fast", "nan", "inf", "1e-9"] {
        assert_eq!(
            unbraid(&format!("watch --speed {wrong}"), b"").code,
            2,
            "{wrong}"
        );
    }
}

#[test]
fn a_speed_changes_nothing_but_the_pace() {
    for fixture in Fixture::all()
        .iter()
        .filter(|f| f.bytes.len() < 200_000)
        .step_by(11)
    {
        let words = format!("watch {}", crate::flags(fixture));
        let plain = run(&words, &fixture.bytes, &[]);
        let paced = run(&format!("{words} --speed 1e6"), &fixture.bytes, &[]);
        assert_eq!(plain.code, paced.code, "{}", fixture.name);
        for choice in 0..8 {
            if plain.stdout.contains('[') {
                assert_eq!(
                    lines_of(&plain, choice),
                    lines_of(&paced, choice),
                    "{}",
                    fixture.name
                );
            }
        }
    }
}

#[test]
fn a_line_is_there_before_the_next_chunk_is_sent() {
    let mut child = pipes::spawn("watch");
    let rest = pipes::watchdog(&child);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for k in 0..20_u32 {
        stdin
            .write_all(delta(k % 3, &format!("line {k}\n")).as_bytes())
            .unwrap();
        let line = lines.next().expect("killed by the watchdog").unwrap();
        assert_eq!(line, format!("[{}] line {k}", k % 3));
    }
    // A long line is shown before its end.
    stdin
        .write_all(delta(1, &"word ".repeat(20)).as_bytes())
        .unwrap();
    assert!(lines.next().unwrap().unwrap().starts_with("[1] word word"));
    drop(stdin);
    assert!(lines.last().unwrap().unwrap().starts_with("stream closed"));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(rest);
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let line = delta(0, "on and on\n");
    pipes::unread("watch", line.as_bytes(), usize::MAX, 0);
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_and_still_tells_how_it_stands() {
    let mut child = pipes::spawn("watch");
    let rest = pipes::watchdog(&child);
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
    // The standard input stays open: nothing but the signal ends it.
    let rest_of_it: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(
        rest_of_it
            .iter()
            .any(|line| line.starts_with("[0] cancelled")),
        "{rest_of_it:?}"
    );
    assert_eq!(
        rest_of_it.last().unwrap(),
        "stream cancelled  ~4 completion tokens"
    );
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop((stdin, rest));
}
