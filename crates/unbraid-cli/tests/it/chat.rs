//! `unbraid chat`: what it asks for, and what it makes of the answer.

mod key;
mod lost;
mod question;
mod refused;
mod requested;
mod server;
mod several;
mod timeouts;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use assert_cmd::Command;
use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use self::server::{Reply, Server};
use crate::{PATIENCE, Run, UNBRAID, flags, over, unbraid};

/// Two whole choices.
const TWO: &str = "openai_chat/openai-t28-t43-parallel-tools-two-choices";

/// Runs `unbraid chat` with these words and variables, none of the machine's own, and this standard input.
fn chat(words: &[&str], variables: &[(&str, &str)], stdin: &str) -> Run {
    let mut command = Command::new(UNBRAID);
    command
        .arg("chat")
        .args(words)
        .env_clear()
        .envs(variables.iter().copied())
        .write_stdin(stdin)
        .timeout(PATIENCE);
    command.output().unwrap().into()
}

/// A chunk with one choice.
fn chunk(choice: &Value) -> String {
    let chunk = json!({ "choices": [choice] });
    format!("data: {chunk}\n\n")
}

/// A choice that says this and stops.
fn whole(index: u32, text: &str) -> String {
    chunk(&json!({ "index": index, "delta": { "content": text }, "finish_reason": "stop" }))
}

fn stream(body: &str) -> Reply {
    Reply::of(200, "text/event-stream", body.as_bytes())
}

/// A server that gives every request this answer.
fn answering(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |_, _| reply())
}

#[test]
fn an_answer_is_shown_as_watch_shows_it() {
    let server = answering(|| stream(&(whole(0, "Seven.") + "data: [DONE]\n\n")));
    let run = server.chat(&["-m", "m", "Name a prime number."]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(&lines[..2], ["[0] Seven.", ""]);
    assert!(lines[2].starts_with("[0] finished (stop)"), "{lines:?}");
    assert!(lines[3].starts_with("stream closed"), "{lines:?}");
    let asked = &server.asked()[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions "));
    let body = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "Name a prime number." }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(asked.body, body);
}

#[test]
fn four_answers_are_asked_for_by_n() {
    let body: String = (0..4)
        .map(|index| whole(index, &format!("{index}!")))
        .collect();
    let server = answering(move || stream(&(body.clone() + "data: [DONE]\n\n")));
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
        (server.asked().len(), &server.asked()[0].body["n"]),
        (1, &json!(4))
    );
}

#[test]
fn c18_chat_separates_reasoning_in_tags() {
    let body = whole(0, "<think>Hm.</think>Yes.") + "data: [DONE]\n\n";
    let server = answering(move || stream(&body));
    let run = server.chat(&["--split-think", "-m", "m", "Well?"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(
        run.stdout.starts_with("[0] ~ Hm.\n[0] Yes.\n"),
        "{}",
        run.stdout
    );
}

/// A sample of the fixtures, each with how many choices it has: fewer than expected end `chat` alone with 3 (E30). That a
/// fixture expects one choice folds its indices, and stays.
fn sample() -> impl Iterator<Item = (Fixture, String)> {
    Fixture::all().into_iter().step_by(9).map(|mut fixture| {
        if fixture.options.expect_choices != Some(1) {
            let lines = over("events", &fixture).lines();
            let choices = lines.iter().filter_map(|line| line["choice"].as_u64());
            let choices: BTreeSet<u64> = choices.collect();
            fixture.options.expect_choices = Some(choices.len().max(1) as u32);
        }
        let flags = flags(&fixture);
        (fixture, flags)
    })
}

/// A server that sends the fixture which stands in place of the model.
fn fixtures() -> Server {
    Server::start(|_, asked| {
        let fixture = Fixture::named(asked.body["model"].as_str().unwrap());
        Reply::of(200, "text/event-stream", &fixture.bytes)
    })
}

#[test]
fn json_is_what_collect_prints() {
    let server = fixtures();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("request.json");
    let file = file.to_str().unwrap();
    for (fixture, flags) in sample() {
        let messages = [json!({ "role": "user", "content": "What is it?" })];
        let request = json!({ "model": fixture.name, "messages": messages });
        fs::write(file, request.to_string()).unwrap();
        let collected = unbraid(&format!("collect --request {file} {flags}"), &fixture.bytes);
        let words = ["--json", "--request", file];
        let words: Vec<&str> = words.into_iter().chain(flags.split_whitespace()).collect();
        let run = server.chat(&words);
        assert_eq!(run.stdout, collected.stdout, "{}", fixture.name);
        assert_eq!(run.code, collected.code, "{}: {}", fixture.name, run.stderr);
        assert_eq!(run.stderr.is_empty(), run.code == 0, "{}", run.stderr);
    }
}

/// The lines of each choice; those of two choices may come in another order.
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
fn events_are_what_events_prints() {
    let server = fixtures();
    for (fixture, flags) in sample() {
        let printed = unbraid(&format!("events {flags}"), &fixture.bytes);
        let words = ["--events", "-m", &fixture.name, "Well?"];
        let words: Vec<&str> = words.into_iter().chain(flags.split_whitespace()).collect();
        let run = server.chat(&words);
        assert_eq!(by_choice(&run), by_choice(&printed), "{}", fixture.name);
        assert_eq!(run.code, printed.code, "{}: {}", fixture.name, run.stderr);
    }
}

#[test]
fn a_record_is_the_body_byte_for_byte() {
    let server = fixtures();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("answer.sse");
    fs::write(&file, "what an earlier run left ".repeat(1 << 16)).unwrap();
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
    let refusing = answering(|| Reply::of(503, "text/plain", b"Later."));
    let words = [
        "-m",
        "m",
        "--retries",
        "0",
        "--record",
        file.to_str().unwrap(),
        "Well?",
    ];
    assert_eq!(refusing.chat(&words).code, 1);
    assert_ne!(
        fs::read(&file).unwrap(),
        b"",
        "a refusal is no answer to record"
    );
    let nowhere = dir.path().join("nowhere/answer.sse");
    let run = refusing.chat(&["-m", "m", "--record", nowhere.to_str().unwrap(), "Well?"]);
    assert_eq!(run.code, 1);
    assert_eq!(
        refusing.asked().len(),
        1,
        "nothing is asked that cannot be recorded"
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
    let server = answering(move || stream(&body).held());
    let url = server.base_url();
    let words = [
        "chat",
        "--base-url",
        &url,
        "-n",
        "2",
        "-m",
        "m",
        "Where\u{202e} to?\nTell me.",
    ];
    let terminal = unbraid_testkit::terminal::Terminal::run(UNBRAID, words, (20, 90));
    let screen = terminal.wait_for("To the right");
    assert!(screen.contains("To the left"), "{screen}");
    assert!(screen.contains("Where\\u{202e} to?"), "{screen}");
    terminal.press("q");
    let left = terminal.end();
    assert_eq!(left.code, Some(3), "{}", left.contents);
    assert!(
        left.restored && left.contents.contains("[1] cancelled"),
        "{}",
        left.contents
    );
}
