//! Pipes: lines as they happen, readers that go away, and endless input.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
};

use serde_json::{Value, json};

use crate::{TIMEOUT, UNBRAID};

pub(crate) fn spawn(command: &str) -> Child {
    Command::new(UNBRAID)
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the process after a timeout, unless the sender is dropped before. This also ends all reads and writes that block on
/// the process.
pub(crate) fn watchdog(child: &Child) -> Sender<()> {
    let (sender, cancelled) = mpsc::channel();
    let id = child.id().to_string();
    thread::spawn(move || {
        if cancelled.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            let killed = Command::new("kill").args(["-9", &id]).status();
            assert!(killed.is_ok_and(|status| status.success()));
        }
    });
    sender
}

fn delta_event(choice: u32, delta: &Value) -> String {
    let chunk = json!({ "choices": [{ "index": choice, "delta": delta }] });
    format!("data: {chunk}\n\n")
}

#[test]
fn each_line_is_printed_before_the_next_chunk_is_sent() {
    let mut child = spawn("events");
    let watchdog = watchdog(&child);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut exchange = |choice: u32, delta: Value, kind: &str| {
        stdin
            .write_all(delta_event(choice, &delta).as_bytes())
            .unwrap();
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
    drop(watchdog);
}

/// Writes a chunk repeatedly, until the reader is gone or `len` bytes are written. Returns the number of written bytes.
fn write_repeatedly(
    stdin: &mut ChildStdin,
    chunk: &[u8],
    len: usize,
    mut after_chunk: impl FnMut(),
) -> usize {
    let mut written = 0;
    while written < len && stdin.write_all(chunk).is_ok() {
        written += chunk.len();
        after_chunk();
    }
    written
}

pub(crate) fn stderr(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    text
}

/// Runs a command whose output pipe is closed before it prints anything.
#[track_caller]
pub(crate) fn run_without_reader(command: &str, chunk: &[u8], len: usize, code: i32) {
    let mut child = spawn(command);
    let watchdog = watchdog(&child);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    write_repeatedly(&mut stdin, chunk, len, || ());
    drop(stdin);
    assert_eq!(stderr(&mut child), "");
    assert_eq!(child.wait().unwrap().code(), Some(code));
    drop(watchdog);
}

/// Runs a command without input whose output pipe is closed before it prints anything.
#[track_caller]
pub(crate) fn run_without_reader_with(args: &[&str], code: i32) {
    let mut child = Command::new(UNBRAID)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(stderr(&mut child), "");
    assert_eq!(child.wait().unwrap().code(), Some(code));
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let event = delta_event(0, &json!({ "content": "on and on " }));
    run_without_reader("events", event.as_bytes(), usize::MAX, 0);
    let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let finished = format!("{event}data: {finish}\n\ndata: [DONE]\n\n");
    run_without_reader("collect", finished.as_bytes(), 1, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_output_device_is_an_error() {
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
            .write_all(delta_event(0, &json!({ "content": "Hi" })).as_bytes())
            .unwrap();
        drop(stdin);
        assert!(stderr(&mut child).contains("unbraid: standard output: "));
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

/// The peak memory of a process in KiB, or 0 on a system without `/proc`.
fn peak_memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0)
}

const MIB: usize = 1 << 20;

/// Feeds endless input to a command. Returns its output, and how many bytes it read.
pub(crate) fn run_endless(
    command: &str,
    head: &str,
    chunk: &[u8],
    len: usize,
    code: i32,
) -> (String, usize) {
    let mut child = spawn(command);
    let watchdog = watchdog(&child);
    let mut stdout = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut printed = String::new();
        stdout.read_to_string(&mut printed).map(|_| printed)
    });
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(head.as_bytes()).unwrap();
    let id = child.id();
    let mut peak = 0;
    let written = write_repeatedly(&mut stdin, chunk, len, || peak = peak.max(peak_memory(id)));
    drop(stdin);
    let printed = reader.join().unwrap().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{printed}");
    assert!(peak < 160 * 1024, "{peak} KiB");
    assert!(peak > 0 || !cfg!(target_os = "linux"), "nothing measured");
    drop(watchdog);
    (printed, written)
}

#[test]
fn a_line_of_a_gibibyte_is_refused_in_bounded_memory() {
    let chunk = vec![b'x'; MIB];
    let (printed, written) = run_endless("collect", "data: ", &chunk, 1024 * MIB, 1);
    assert!(written < 64 * MIB, "{written}");
    let response: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(response["unbraid"]["end"], "limit_exceeded");
    assert_eq!(response["choices"], json!([]));
}

#[test]
fn data_before_the_long_line_is_kept() {
    let chunk = vec![b'x'; MIB];
    let head = format!("{}data: ", delta_event(0, &json!({ "content": "Hi" })));
    let (printed, _) = run_endless("collect", &head, &chunk, 1024 * MIB, 3);
    let response: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(response["choices"][0]["message"]["content"], "Hi");
    assert_eq!(response["unbraid"]["choices"][0]["end"], "limit_exceeded");
}

#[test]
fn endless_comments_use_bounded_memory() {
    let chunk = ": keep-alive\n\n".repeat(4096);
    let (printed, _) = run_endless("events", "", chunk.as_bytes(), 32 * MIB, 1);
    assert_eq!(printed.lines().count(), 1, "{printed}");
}
