//! A lost connection: the data before it and the cause are printed.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

use super::{chat, chunk, complete, server::Server, stream};
use crate::Run;

/// Runs `chat` against a server that sends this part of a body in one chunk, and closes the connection.
fn run_cut(body: &str, args: &[&str]) -> Run {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let head =
        "HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = match body.len() {
        0 => head.to_owned(),
        length => format!("{head}{length:x}\r\n{body}\r\n"),
    };
    let server = thread::spawn(move || {
        for socket in listener.incoming().take(1) {
            let mut socket = socket.unwrap();
            let mut input = BufReader::new(socket.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                assert_ne!(input.read_line(&mut head).unwrap(), 0);
                let line = head[start..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
            }
            input.read_exact(&mut vec![0; length]).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    let args = [&["--base-url", &url, "-m", "m", "Well?"], args].concat();
    let run = chat(&args, &[], "");
    server.join().unwrap();
    run
}

fn delta(index: u32, text: &str) -> String {
    chunk(&json!({ "index": index, "delta": { "content": text } }))
}

#[test]
fn x14_every_received_delta_is_printed() {
    let first = delta(0, "One ") + &delta(1, "Two ");
    let last = delta(0, "three.");
    // The last event arrives with its blank line, without it, and without its line end.
    for last in [&*last, last.trim_end(), &last[..last.len() - 1]] {
        let body = first.clone() + last;
        let run = run_cut(&body, &["-n", "2"]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert!(run.stdout.contains("[0] One three.\n"), "{}", run.stdout);
        assert!(run.stdout.contains("[1] Two \n"), "{}", run.stdout);
        let message = format!("connection lost after {} bytes: ", body.len());
        assert!(run.stderr.contains(&message), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);

        let run = run_cut(&body, &["-n", "2", "--json"]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert_eq!(run.json()["choices"][0]["message"]["content"], "One three.");
        assert_eq!(run.json()["unbraid"]["end"], "transport");

        let run = run_cut(&body, &["-n", "2", "--events"]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        let lines = run.lines();
        let text = lines.iter().filter(|line| line["choice"] == 0);
        let text: String = text.filter_map(|line| line["delta"].as_str()).collect();
        assert_eq!(text, "One three.");
        assert_eq!(lines.last().unwrap()["error"]["type"], "transport");
    }
}

#[test]
fn all_causes_of_a_lost_connection_are_printed() {
    let run = run_cut(&delta(0, "One "), &[]);
    let message = " bytes: the server closed it within its answer: ";
    let (_, causes) = run.stderr.split_once(message).unwrap();
    assert!(causes.matches(": ").count() >= 1, "{}", run.stderr);
    assert!(causes.to_ascii_lowercase().contains("eof"), "{causes}");
    let run = run_cut(&delta(0, "One "), &["--json"]);
    assert_eq!(run.json()["unbraid"]["error"]["source"], causes.trim_end());
}

#[test]
fn a_lost_connection_without_a_choice_exits_with_1() {
    for body in ["", ": wait\n\n"] {
        let run = run_cut(body, &[]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        let message = format!(
            "unbraid: answer: connection lost after {} bytes: ",
            body.len()
        );
        assert!(run.stderr.starts_with(&message), "{}", run.stderr);
    }
}

#[test]
fn the_error_body_of_a_failed_request_is_in_the_json() {
    let error_reply = || {
        let body = r#"{"error":{"message":"Out of memory"}}"#;
        super::Reply::new(500, "application/json", body.as_bytes())
    };
    let check = |error: &Value| {
        assert_eq!(
            (&error["type"], &error["status"]),
            (&json!("status"), &json!(500))
        );
        assert_eq!(error["request_id"], "req-7");
        assert_eq!(error["body"]["error"]["message"], "Out of memory");
    };
    let args = ["--retries", "0", "-m", "m", "Well?"];
    let server = super::replying(error_reply);
    let run = server.chat(&[&["--json"], &args[..]].concat());
    assert_eq!(run.code, 1, "{}", run.stderr);
    let response = run.json();
    assert_eq!(
        (&response["choices"], &response["object"]),
        (&json!([]), &json!("chat.completion"))
    );
    assert_eq!(response["unbraid"]["end"], "status");
    check(&response["unbraid"]["error"]);
    let run = server.chat(&[&["--events"], &args[..]].concat());
    let [line] = run.lines().try_into().unwrap();
    assert_eq!((run.code, &line["type"]), (1, &json!("error")));
    check(&line["error"]);

    // One of two requests fails: its error is the error of its choice.
    let server = Server::start(move |number, _| match number {
        0 => stream(&complete(0, "alone")),
        _ => error_reply(),
    });
    let run = server.chat(&[&["--json", "-n", "2", "--fan-out"], &args[..]].concat());
    assert_eq!(run.code, 3, "{}", run.stderr);
    let choices = run.json()["unbraid"]["choices"].clone();
    let failed = |choice: &&Value| choice["end"] == "transport";
    let failed = choices.as_array().unwrap().iter().find(failed).unwrap();
    assert_eq!(failed["error"]["type"], "transport");
    check(&failed["error"]["cause"]);
}

#[test]
fn an_envelope_and_an_empty_delta_are_an_answer_with_and_without_fan_out() {
    let envelope = r#"data: {"id":"one","choices":[]}"#.to_owned() + "\n\n";
    let empty = chunk(&json!({ "index": 0, "delta": {} }));
    let both = envelope.clone() + &empty;
    let args = ["-m", "m", "Well?"];
    let single = super::replying(move || stream(&both)).chat(&args);
    assert_eq!(single.code, 3, "{}", single.stderr);
    let answers = [envelope, empty];
    for order in [[0, 1], [1, 0]] {
        let answers = answers.clone();
        let server = Server::start(move |number, _| stream(&answers[order[number % 2]]));
        let run = server.chat(&[&["-n", "2", "--fan-out"], &args[..]].concat());
        assert_eq!(run.code, 3, "{}", run.stderr);
    }
    let neither = super::replying(|| stream(": wait\n\n"));
    for args in [&args[..], &[&["-n", "2", "--fan-out"], &args[..]].concat()] {
        assert_eq!(neither.chat(args).code, 1, "{args:?}");
    }
}
