//! The text of an answer in a pipe: bare, as it arrives, and cancelled when nobody reads it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::json;

use super::{chunk, complete, replying, server::Server, stream};
use crate::{TIMEOUT, UNBRAID, pipes::watchdog};

const DONE: &str = "data: [DONE]\n\n";

fn delta(index: u32, text: &str) -> String {
    chunk(&json!({ "index": index, "delta": { "content": text } }))
}

fn answering(body: String) -> Server {
    replying(move || stream(&body))
}

/// Starts `unbraid chat` with its output in a pipe.
fn spawn(server: &str, args: &[&str]) -> Child {
    Command::new(UNBRAID)
        .args(["chat", "--base-url", server, "-m", "m"])
        .args(args)
        .arg("Well?")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn one_answer_in_a_pipe_is_its_text_and_nothing_else() {
    let long = "word ".repeat(60);
    let server = answering(delta(0, &long) + &complete(0, "end") + DONE);
    for args in [&[][..], &["-n", "1"], &["--text"], &["--text", "-n", "1"]] {
        let run = server.chat(&[args, &["-m", "m", "Well?"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
        assert_eq!(run.stdout, format!("{long}end\n"), "{args:?}");
    }
}

#[test]
fn lines_in_a_pipe_are_not_wrapped() {
    let long = "word ".repeat(60);
    let body = delta(0, &long) + &complete(0, "end") + &complete(1, "short");
    let server = answering(body + DONE);
    for args in [&["--plain"][..], &["-n", "2"]] {
        let run = server.chat(&[args, &["-m", "m", "Well?"]].concat());
        let line = format!("[0] {long}end\n");
        assert!(run.stdout.contains(&line), "{args:?}: {}", run.stdout);
    }
}

#[test]
fn several_texts_have_headers_in_the_order_of_their_indices() {
    let body = complete(1, "One.") + &complete(0, "Zero.\n") + DONE;
    let server = answering(body);
    let run = server.chat(&["-n", "2", "--text", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let expected = "==> choice 0 <==\nZero.\n\n==> choice 1 <==\nOne.\n";
    assert_eq!(run.stdout, expected);
    // One was requested: the first is bare, and the other has a header.
    let run = server.chat(&["--text", "-m", "m", "Well?"]);
    assert_eq!(run.stdout, "One.\n\n==> choice 0 <==\nZero.\n");
}

#[test]
fn only_the_taken_texts_are_printed() {
    let body = delta(0, "lost") + &complete(1, "Won.");
    let server = replying(move || stream(&body).keep_open());
    let run = server.chat(&["-n", "2", "--take", "1", "--text", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout, "Won.\n");
    // Too few finish: everything is printed.
    let cut = answering(delta(0, "half") + &complete(1, "Won."));
    let run = cut.chat(&["-n", "2", "--take", "2", "--text", "-m", "m", "Well?"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    let expected = "==> choice 0 <==\nhalf\n\n==> choice 1 <==\nWon.\n";
    assert_eq!(run.stdout, expected);
}

#[test]
fn refusals_and_calls_are_reported_beside_the_text() {
    let delta = json!({ "index": 0, "delta": { "refusal": "No." }, "finish_reason": "stop" });
    let server = answering(chunk(&delta) + DONE);
    let run = server.chat(&["-m", "m", "Well?"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(run.stderr, "unbraid: answer: choice 0 refused: No.\n");
    let calls = json!([{ "index": 0, "id": "c", "function": { "name": "f", "arguments": "{}" } }]);
    let delta =
        json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" });
    let server = answering(chunk(&delta) + DONE);
    let run = server.chat(&["-m", "m", "Well?"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert!(
        run.stderr.contains("choice 0 has a tool call"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_lost_connection_keeps_the_text() {
    let server = answering(delta(0, "Hel"));
    let run = server.chat(&["-m", "m", "Well?"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, "Hel\n"));
    assert!(run.stderr.contains("choice 0"), "{}", run.stderr);
}

#[test]
fn each_delta_is_printed_as_it_arrives() {
    let body = delta(0, "Hel");
    let server = replying(move || stream(&body).keep_open());
    let mut child = spawn(&server.base_url(), &[]);
    let watchdog = watchdog(&child);
    let mut printed = [0; 3];
    // The server sends no more, so that only a flush can bring these bytes.
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut printed)
        .unwrap();
    assert_eq!(&printed, b"Hel");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(watchdog);
}

/// A server that writes deltas until its client closes the connection. The receiver gets a message then.
fn endless() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, closed) = mpsc::channel();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut input = BufReader::new(socket.try_clone().unwrap());
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(input.read_line(&mut line).unwrap(), 0);
        }
        let head = "HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        while socket.write_all(delta(0, "on and on\n").as_bytes()).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        sender.send(()).unwrap();
    });
    (url, closed)
}

#[test]
fn a_reader_that_goes_away_cancels_the_request() {
    let (url, closed) = endless();
    let mut child = spawn(&url, &[]);
    let watchdog = watchdog(&child);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "on and on\n");
    drop(stdout); // as `head` does
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(stderr, "");
    closed
        .recv_timeout(TIMEOUT)
        .expect("the connection is closed");
    drop(watchdog);
}

#[cfg(unix)]
#[test]
fn a_terminal_gets_escaped_text_and_wrapped_lines() {
    use unbraid_testkit::terminal::Terminal;

    let long = "word ".repeat(20);
    let body = delta(0, "\u{1b}[31mred\u{202e}\n") + &complete(0, &long) + DONE;
    let server = answering(body);
    let url = server.base_url();
    let run = |format: &str| {
        let args = ["chat", "--base-url", &url, "-m", "m", format, "Well?"];
        let left = Terminal::run(UNBRAID, args, (20, 200)).end();
        assert_eq!(left.code, Some(0), "{}", left.contents);
        left.contents
    };
    let text = run("--text");
    assert!(text.contains("\\u{1b}[31mred\\u{202e}"), "{text}");
    assert!(text.contains(long.trim_end()), "{text}");
    let lines = run("--plain");
    assert!(!lines.contains(long.trim_end()), "{lines}");
    assert!(
        lines.contains(&format!("[0] {}", "word ".repeat(14).trim_end())),
        "{lines}"
    );
}
