//! `unbraid chat`: its requests, and its output for the answers.

mod choice_count;
mod connection_lost;
mod failed_request;
mod fan_out;
mod key;
mod providers;
mod question;
#[cfg(unix)]
mod run_tool;
pub(crate) mod server;
mod text;
mod timeouts;
mod without_n;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use assert_cmd::Command;
use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use self::server::{Reply, Server};
use crate::{Run, TIMEOUT, UNBRAID, flags, run_fixture, unbraid};

/// A fixture with two complete choices.
const TWO: &str = "openai_chat/openai-t28-t43-parallel-tools-two-choices";

/// Runs `unbraid chat` with these arguments, only these variables, and this standard input.
pub(crate) fn chat(args: &[&str], variables: &[(&str, &str)], stdin: &str) -> Run {
    let mut command = Command::new(UNBRAID);
    command
        .arg("chat")
        .args(args)
        .env_clear()
        .envs(variables.iter().copied())
        .write_stdin(stdin)
        .timeout(TIMEOUT);
    command.output().unwrap().into()
}

/// A chunk with one choice.
fn chunk(choice: &Value) -> String {
    let chunk = json!({ "choices": [choice] });
    format!("data: {chunk}\n\n")
}

/// A chunk with a complete choice.
fn complete(index: u32, text: &str) -> String {
    chunk(&json!({ "index": index, "delta": { "content": text }, "finish_reason": "stop" }))
}

fn stream(body: &str) -> Reply {
    Reply::new(200, "text/event-stream", body.as_bytes())
}

/// A server that answers every request with this reply.
fn replying(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |_, _| reply())
}

#[test]
fn an_answer_is_shown_like_in_watch() {
    let server = replying(|| stream(&(complete(0, "Seven.") + "data: [DONE]\n\n")));
    let run = server.chat(&["--plain", "-m", "m", "Name a prime number."]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(&lines[..2], ["[0] Seven.", ""]);
    assert!(lines[2].starts_with("[0] finished (stop)"), "{lines:?}");
    assert!(lines[3].starts_with("stream closed"), "{lines:?}");
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /v1/chat/completions "));
    let body = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "Name a prime number." }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(request.body, body);
}

#[test]
fn four_answers_are_requested_by_n() {
    let body: String = (0..4)
        .map(|index| complete(index, &format!("{index}!")))
        .collect();
    let server = replying(move || stream(&(body.clone() + "data: [DONE]\n\n")));
    let run = server.chat(&["-n", "4", "-m", "m", "Count."]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for index in 0..4 {
        assert!(
            run.stdout.contains(&format!("[{index}] {index}!\n")),
            "{}",
            run.stdout
        );
    }
    assert_eq!(
        (server.requests().len(), &server.requests()[0].body["n"]),
        (1, &json!(4))
    );
}

#[test]
fn c18_chat_separates_reasoning_in_tags() {
    let body = complete(0, "<think>Hm.</think>Yes.") + "data: [DONE]\n\n";
    let server = replying(move || stream(&body));
    let run = server.chat(&["--plain", "--split-think", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(
        run.stdout.starts_with("[0] ~ Hm.\n[0] Yes.\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_report_replaces_a_field_of_its_name() {
    let body = complete(0, "Hi").replace("\"choices\"", "\"unbraid\":{\"a\":1},\"choices\"");
    let server = replying(move || stream(&(body.clone() + "data: [DONE]\n\n")));
    let run = server.chat(&["--json", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(
        run.stdout.matches("\"unbraid\"").count(),
        1,
        "{}",
        run.stdout
    );
    assert_eq!(run.json()["unbraid"]["end"], "finished");
}

/// A sample of the fixtures, each with flags that expect its number of choices: only `chat` ends with 3 if fewer arrive
/// (E30). A fixture that expects one choice keeps its flag, which folds the indices.
fn sample() -> impl Iterator<Item = (Fixture, String)> {
    Fixture::all().into_iter().step_by(9).map(|mut fixture| {
        if fixture.options.expect_choices != Some(1) {
            let lines = run_fixture("events", &fixture).lines();
            let choices = lines.iter().filter_map(|line| line["choice"].as_u64());
            let choices: BTreeSet<u64> = choices.collect();
            fixture.options.expect_choices = Some(choices.len().max(1) as u32);
        }
        let flags = flags(&fixture);
        (fixture, flags)
    })
}

/// A server that sends the fixture that the request names as its model.
fn fixture_server() -> Server {
    Server::start(|_, request| {
        let fixture = Fixture::named(request.body["model"].as_str().unwrap());
        Reply::new(200, "text/event-stream", &fixture.bytes)
    })
}

#[test]
fn json_prints_the_same_as_collect() {
    let server = fixture_server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("request.json");
    let file = file.to_str().unwrap();
    for (fixture, flags) in sample() {
        let messages = [json!({ "role": "user", "content": "What is it?" })];
        let request = json!({ "model": fixture.name, "messages": messages });
        fs::write(file, request.to_string()).unwrap();
        let collected = unbraid(&format!("collect --request {file} {flags}"), &fixture.bytes);
        let args = ["--json", "--request", file];
        let args: Vec<&str> = args.into_iter().chain(flags.split_whitespace()).collect();
        let run = server.chat(&args);
        assert_eq!(run.stdout, collected.stdout, "{}", fixture.name);
        assert_eq!(run.code, collected.code, "{}: {}", fixture.name, run.stderr);
        assert_eq!(run.stderr.is_empty(), run.code == 0, "{}", run.stderr);
    }
}

/// The lines of each choice. The order between choices may differ from run to run.
fn by_choice(run: &Run) -> BTreeMap<Option<u64>, Vec<Value>> {
    let mut choices = BTreeMap::<_, Vec<Value>>::new();
    for line in run.lines() {
        choices
            .entry(line["choice"].as_u64())
            .or_default()
            .push(line);
    }
    choices
}

#[test]
fn events_prints_the_same_as_the_events_command() {
    let server = fixture_server();
    for (fixture, flags) in sample() {
        let printed = unbraid(&format!("events {flags}"), &fixture.bytes);
        let args = ["--events", "-m", &fixture.name, "Well?"];
        let args: Vec<&str> = args.into_iter().chain(flags.split_whitespace()).collect();
        let run = server.chat(&args);
        assert_eq!(by_choice(&run), by_choice(&printed), "{}", fixture.name);
        assert_eq!(run.code, printed.code, "{}: {}", fixture.name, run.stderr);
    }
}

#[test]
fn a_recording_equals_the_body_byte_for_byte() {
    let server = fixture_server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("answer.sse");
    fs::write(&file, "data of an earlier run ".repeat(1 << 16)).unwrap();
    for name in [
        TWO,
        "openai_chat/openai-c01-u01-one-choice",
        "broken/proxy-s29-json-lines",
    ] {
        let record = ["--record", file.to_str().unwrap()];
        let run = server.chat(&[&["-m", name, "-n", "9", "Well?"][..], &record].concat());
        assert_ne!(run.code, 1, "{name}: {}", run.stderr);
        assert_eq!(
            fs::read(&file).unwrap(),
            Fixture::named(name).bytes,
            "{name}"
        );
    }
    let failing = replying(|| Reply::new(503, "text/plain", b"Later."));
    let args = [
        "-m",
        "m",
        "--retries",
        "0",
        "--record",
        file.to_str().unwrap(),
        "Well?",
    ];
    assert_eq!(failing.chat(&args).code, 1);
    assert_ne!(
        fs::read(&file).unwrap(),
        b"",
        "an error response is not recorded"
    );
    let nowhere = dir.path().join("nowhere/answer.sse");
    let run = failing.chat(&["-m", "m", "--record", nowhere.to_str().unwrap(), "Well?"]);
    assert_eq!(run.code, 1);
    assert_eq!(
        failing.requests().len(),
        1,
        "no request is sent if it cannot be recorded"
    );
}

#[test]
fn a_recording_served_by_replay_is_read() {
    let replay = crate::replay::Replay::start("--cut 7");
    let url = format!("http://{}/v1", replay.address());
    let run = chat(
        &["--base-url", &url, "-m", "m", "-n", "2", "--json", "Well?"],
        &[],
        "",
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let expected = crate::collect(TWO).json();
    assert_eq!(run.json()["choices"], expected["choices"]);
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_the_answers_side_by_side() {
    let body = chunk(&json!({ "index": 0, "delta": { "content": "To the left" } }))
        + &chunk(&json!({ "index": 1, "delta": { "content": "To the right" } }));
    let server = replying(move || stream(&body).keep_open());
    let url = server.base_url();
    let args = [
        "chat",
        "--base-url",
        &url,
        "-n",
        "2",
        "-m",
        "m",
        "Where\u{202e} to?\nTell me.",
    ];
    let terminal = unbraid_testkit::terminal::Terminal::run(UNBRAID, args, (20, 90));
    let screen = terminal.wait_for("To the right");
    assert!(screen.contains("To the left"), "{screen}");
    assert!(screen.contains("Where\\u{202e} to?"), "{screen}");
    terminal.press("q");
    let left = terminal.end();
    assert_eq!(left.code, Some(3), "{}", left.contents);
    assert!(
        left.restored && left.contents.contains("[1] \u{2717} cancelled"),
        "{}",
        left.contents
    );
}
