//! Live pipes: lines as they happen, readers that go away, input without an end.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
};

use serde_json::{Value, json};

use crate::{PATIENCE, UNBRAID};

pub(crate) fn spawn(command: &str) -> Child {
    Command::new(UNBRAID)
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ends the process with this id, and with it all reads and writes that wait for it, unless it is told to rest before.
pub(crate) fn watchdog(child: &Child) -> Sender<()> {
    let (rest, told) = mpsc::channel();
    let id = child.id().to_string();
    thread::spawn(move || {
        if told.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let killed = Command::new("kill").args(["-9", &id]).status();
            assert!(killed.is_ok_and(|status| status.success()));
        }
    });
    rest
}

fn chunk(choice: u32, delta: &Value) -> String {
    let chunk = json!({ "choices": [{ "index": choice, "delta": delta }] });
    format!("data: {chunk}\n\n")
}

#[test]
fn each_line_is_there_before_the_next_chunk_is_sent() {
    let mut child = spawn("events");
    let rest = watchdog(&child);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut exchange = |choice: u32, delta: Value, kind: &str| {
        stdin.write_all(chunk(choice, &delta).as_bytes()).unwrap();
        let line = lines.next().expect("killed by the watchdog").unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&line["choice"], &line["type"]),
            (&json!(choice), &json!(kind))
        );
        line
    };
    for choice in 0..3 {
        exchange(choice, json!({ "role": "assistant" }), "choice.start");
    }
    for k in 0..60_u32 {
        let word = format!("word {k}\n");
        let line = exchange(k % 3, json!({ "content": word }), "content.delta");
        assert_eq!(line["delta"], word);
    }
    drop(stdin);
    let last: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
    assert_eq!(
        (&last["choice"], &last["end"]),
        (&json!(2), &json!("interrupted"))
    );
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(rest);
}

/// Writes until the other side is gone or `len` bytes are through; how many got there.
fn pour(stdin: &mut ChildStdin, piece: &[u8], len: usize, mut between: impl FnMut()) -> usize {
    let mut poured = 0;
    while poured < len && stdin.write_all(piece).is_ok() {
        poured += piece.len();
        between();
    }
    poured
}

fn stderr(child: &mut Child) -> String {
    let mut told = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut told).unwrap();
    told
}

/// Runs a command whose reader is gone before anything is printed.
#[track_caller]
pub(crate) fn unread(command: &str, pieces: &[u8], len: usize, code: i32) {
    let mut child = spawn(command);
    let rest = watchdog(&child);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    pour(&mut stdin, pieces, len, || ());
    drop(stdin);
    assert_eq!(stderr(&mut child), "");
    assert_eq!(child.wait().unwrap().code(), Some(code));
    drop(rest);
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let delta = chunk(0, &json!({ "content": "on and on " }));
    unread("events", delta.as_bytes(), usize::MAX, 0);
    let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let whole = format!("{delta}data: {finish}\n\ndata: [DONE]\n\n");
    unread("collect", whole.as_bytes(), 1, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_is_full_is_an_error() {
    for command in ["collect", "events", "watch"] {
        let mut child = Command::new(UNBRAID)
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(
                fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/full")
                    .unwrap(),
            )
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(chunk(0, &json!({ "content": "Hi" })).as_bytes())
            .unwrap();
        drop(stdin);
        assert!(stderr(&mut child).contains("unbraid: standard output: "));
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

/// The most memory that a process has held, in KiB; 0 where the system does not tell.
fn peak(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0)
}

const MIB: usize = 1 << 20;

/// Pours an input without an end into a command; what it printed, and how much it took.
fn pour_into(command: &str, head: &str, piece: &[u8], len: usize, code: i32) -> (String, usize) {
    let mut child = spawn(command);
    let rest = watchdog(&child);
    let mut stdout = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut printed = String::new();
        stdout.read_to_string(&mut printed).map(|_| printed)
    });
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(head.as_bytes()).unwrap();
    let id = child.id();
    let mut most = 0;
    let poured = pour(&mut stdin, piece, len, || most = most.max(peak(id)));
    drop(stdin);
    let printed = reader.join().unwrap().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{printed}");
    assert!(most < 160 * 1024, "{most} KiB");
    assert!(most > 0 || !cfg!(target_os = "linux"), "nothing measured");
    drop(rest);
    (printed, poured)
}

#[test]
fn a_line_of_a_gibibyte_is_refused_in_bounded_memory() {
    let piece = vec![b'x'; MIB];
    let (printed, poured) = pour_into("collect", "data: ", &piece, 1024 * MIB, 1);
    assert!(poured < 64 * MIB, "{poured}");
    let response: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(response["unbraid"]["end"], "limit_exceeded");
    assert_eq!(response["choices"], json!([]));
}

#[test]
fn what_came_before_the_long_line_is_kept() {
    let piece = vec![b'x'; MIB];
    let head = format!("{}data: ", chunk(0, &json!({ "content": "Hi" })));
    let (printed, _) = pour_into("collect", &head, &piece, 1024 * MIB, 3);
    let response: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(response["choices"][0]["message"]["content"], "Hi");
    assert_eq!(response["unbraid"]["choices"][0]["end"], "limit_exceeded");
}

#[test]
fn comments_without_end_cost_no_memory() {
    let piece = ": keep-alive\n\n".repeat(4096);
    let (printed, _) = pour_into("events", "", piece.as_bytes(), 32 * MIB, 1);
    assert_eq!(printed.lines().count(), 1, "{printed}");
}
