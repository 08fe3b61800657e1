//! Timeouts of `chat`: for the connection, the head, the first byte, and the next one.

use std::net::TcpListener;

use serde_json::json;

use super::{chat, chunk, replying, server::Server, stream};
use crate::unbraid;

#[test]
fn a_silent_answer_times_out() {
    let server = replying(|| {
        stream(&chunk(&json!({ "index": 0, "delta": { "content": "So" } }))).keep_open()
    });
    for timeout in ["--timeout", "--idle-timeout"] {
        let run = server.chat(&[timeout, "0.5", "-m", "m", "--json", "Well?"]);
        assert_eq!(run.code, 3, "{timeout}: {}", run.stderr);
        assert_eq!(run.json()["unbraid"]["end"], "timed_out", "{timeout}");
        assert_eq!(
            run.json()["choices"][0]["message"]["content"],
            "So",
            "{timeout}"
        );
    }
}

/// A server that never answers. The system accepts its connections, as for a stopped process.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn a_server_that_does_not_answer_times_out() {
    let (_listener, url) = silent_server();
    for (timeout, message) in [
        ("--idle-timeout", "idle timeout after 300ms"),
        ("--first-byte-timeout", "first-byte timeout after 300ms"),
    ] {
        for fan_out in ["native", "always", "auto"] {
            let fan_out = format!("--fan-out={fan_out}");
            let args = [
                "--base-url",
                &url,
                timeout,
                "0.3",
                &fan_out,
                "-n",
                "2",
                "-m",
                "m",
                "Well?",
            ];
            let run = chat(&args, &[], "");
            assert_eq!(run.code, 1, "{args:?}: {}", run.stderr);
            assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
        }
    }
}

#[test]
fn a_body_without_a_first_byte_times_out() {
    let server = replying(|| stream("").keep_open());
    for timeout in ["--idle-timeout", "--first-byte-timeout"] {
        for fan_out in ["--fan-out=native", "--fan-out=always", "--fan-out=auto"] {
            let args = [timeout, "0.3", fan_out, "-n", "2", "-m", "m", "Well?"];
            let run = server.chat(&args);
            assert_eq!(run.code, 1, "{args:?}: {}", run.stderr);
        }
    }
}

/// Requests two answers by fan-out, whose bodies stop after these bytes, and returns the exit code.
fn exit_code_of_two(bodies: [&'static str; 2]) -> i32 {
    let server = Server::start(move |number, _| stream(bodies[number % 2]).keep_open());
    let args = ["--idle-timeout", "0.5", "--fan-out=always", "-n", "2"];
    let run = server.chat(&[&args[..], &["-m", "m", "Well?"]].concat());
    assert!(run.stderr.contains("idle timeout"), "{}", run.stderr);
    run.code
}

#[test]
fn the_exit_code_after_a_timeout_depends_on_data_for_any_choice() {
    const ENVELOPE: &str = "data: {\"id\":\"c\",\"choices\":[]}\n\n";
    const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    const EMPTY: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n";
    assert_eq!(exit_code_of_two(["", ": still there\n\n"]), 1);
    assert_eq!(exit_code_of_two([ENVELOPE, ENVELOPE]), 1);
    assert_eq!(exit_code_of_two([ENVELOPE, ROLE]), 3);
    assert_eq!(exit_code_of_two(["", EMPTY]), 3);
}

#[test]
fn the_first_byte_has_its_own_timeout() {
    let server = Server::start(|_, _| {
        std::thread::sleep(std::time::Duration::from_millis(600));
        stream(&super::complete(0, "At last."))
    });
    let args = |timeouts: &'static [&'static str]| [timeouts, &["-m", "m", "Well?"]].concat();
    let run = server.chat(&args(&["--idle-timeout", "0.3"]));
    assert_eq!(run.code, 1, "{}", run.stdout);
    let both = ["--idle-timeout", "0.3", "--first-byte-timeout", "20"];
    let run = server.chat(&[&both[..], &["-m", "m", "Well?"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn the_help_names_the_timeouts_and_their_defaults() {
    let help = unbraid("chat --help", b"").stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("--first-byte-timeout <SECONDS> How long the first byte may take"));
    assert!(help.contains("else 600"), "{help}");
    assert!(
        help.contains(
            "--retries <N> How often a request without an answer is retried [default: 2]"
        )
    );
}
