//! `unbraid stats`: times, tokens, calls and sizes; damaged streams; memory.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use unbraid_testkit::fixture::{Fixture, workspace_root};

use crate::{Run, UNBRAID, has_late_text, pipes, run_fixture, unbraid};

const TIMED: &str = "crates/unbraid-cli/tests/data/timed.sse";

fn of_file(args: &str, file: &str) -> Run {
    let path = workspace_root().join(file);
    unbraid(&format!("stats {args} {}", path.display()), b"")
}

#[test]
fn a_recording_with_times_has_percentiles() {
    let run = of_file("--json", TIMED);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let stats = run.json();
    assert_eq!(stats["times"], "recorded");
    assert_eq!(stats["duration_ms"], 1250.0);
    assert_eq!(stats["bytes"], 1794);
    assert_eq!(stats["usage"]["completion_tokens"], 20);
    let [first, second] = &stats["choices"].as_array().unwrap()[..] else {
        panic!("{stats}");
    };
    // Its text arrived at 412, 470 and 480 ms. The call is announced with its first arguments, at 620 ms (T17).
    assert_eq!(first["first_delta_ms"], 412.0);
    let expected = json!({ "count": 3, "p50": 58.0, "p90": 140.0, "p99": 140.0, "max": 140.0 });
    assert_eq!(first["inter_delta_ms"], expected);
    assert_eq!(first["deltas"], 5);
    assert_eq!(first["content_bytes"], "The gate opens.".len());
    let call = json!({ "name": "sluice", "status": "complete", "arguments_bytes": 9 });
    assert_eq!(first["tool_calls"], json!([call]));
    assert_eq!(second["first_delta_ms"], 450.0);
    assert_eq!(second["inter_delta_ms"]["count"], 1);
    assert_eq!(second["finish_reason"], "stop");
}

#[test]
fn the_table_has_a_label_for_every_number() {
    let run = of_file("", TIMED);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].starts_with("choice  end "), "{}", run.stdout);
    for heading in [
        "deltas",
        "tokens",
        "text",
        "calls",
        "arguments",
        "first delta",
        "gap p50",
        "gap max",
    ] {
        assert!(lines[0].contains(heading), "{heading}: {}", run.stdout);
    }
    assert!(
        !lines[0].contains("refusal") && !lines[0].contains("reasoning"),
        "{}",
        run.stdout
    );
    assert!(
        lines[1].starts_with("0       finished (tool_calls)"),
        "{}",
        run.stdout
    );
    assert!(
        lines[1].contains("412.0 ms") && lines[1].ends_with("140.0 ms"),
        "{}",
        run.stdout
    );
    assert!(
        lines[3].starts_with("stream closed  1794 bytes"),
        "{}",
        run.stdout
    );
    let untimed = run_fixture(
        "stats",
        &Fixture::named("openai_chat/openai-five-choices-plan"),
    );
    assert_eq!(untimed.stdout.lines().count(), 8, "{}", untimed.stdout);
}

#[test]
fn a_file_without_times_has_none() {
    let run = of_file(
        "--json",
        "tests/fixtures/openai_chat/openai-five-choices-plan.sse",
    );
    let stats = run.json();
    assert_eq!(
        (&stats["times"], &stats["duration_ms"]),
        (&Value::Null, &Value::Null)
    );
    for choice in stats["choices"].as_array().unwrap() {
        assert_eq!(choice["first_delta_ms"], Value::Null);
        assert_eq!(choice["inter_delta_ms"], Value::Null);
    }
    // Redirected from a file, the standard input has no times of its own either.
    let file = std::fs::File::open(workspace_root().join(TIMED)).unwrap();
    let run = Command::new(UNBRAID)
        .args(["stats", "--json"])
        .stdin(file)
        .output()
        .unwrap();
    let run = Run::from(run);
    if cfg!(unix) {
        assert_eq!(run.json()["times"], Value::Null);
    }
}

#[test]
fn a_pipe_is_measured_while_it_is_read() {
    const PAUSE: Duration = Duration::from_millis(60);
    let mut child = Command::new(UNBRAID)
        .args(["stats", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let watchdog = pipes::watchdog(&child);
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..4 {
        thread::sleep(PAUSE);
        stdin
            .write_all(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n")
            .unwrap();
    }
    drop(stdin);
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    child.wait().unwrap();
    drop(watchdog);
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(stats["times"], "live");
    let gaps = &stats["choices"][0]["inter_delta_ms"];
    assert_eq!(gaps["count"], 3, "{stats}");
    assert!(gaps["max"].as_f64().unwrap() >= 60.0, "{stats}");
}

#[test]
fn sizes_equal_those_of_the_collected_response() {
    for fixture in Fixture::all().into_iter().step_by(19) {
        let collected = run_fixture("collect", &fixture);
        let run = run_fixture("stats --json", &fixture);
        assert_eq!(
            (run.code, run.stderr.clone()),
            (collected.code, collected.stderr.clone()),
            "{}",
            fixture.name
        );
        let (stats, collected) = (run.json(), collected.json());
        // F6: what arrives after its choice has ended is in the message alone.
        if has_late_text(&collected) {
            continue;
        }
        let choices = collected["choices"].as_array().unwrap();
        assert_eq!(
            stats["choices"].as_array().unwrap().len(),
            choices.len(),
            "{}",
            fixture.name
        );
        assert_eq!(
            stats["error"], collected["unbraid"]["error"],
            "{}",
            fixture.name
        );
        let details = collected["unbraid"]["choices"].as_array().unwrap();
        for ((choice, details), stats) in choices
            .iter()
            .zip(details)
            .zip(stats["choices"].as_array().unwrap())
        {
            let text = choice["message"]["content"]
                .as_str()
                .or_else(|| choice["text"].as_str());
            assert_eq!(
                stats["content_bytes"],
                text.unwrap_or_default().len(),
                "{}",
                fixture.name
            );
            let reasoning = choice["message"]["reasoning"].as_str();
            assert_eq!(
                stats["reasoning_bytes"],
                reasoning.unwrap_or_default().len(),
                "{}",
                fixture.name
            );
            assert_eq!(
                (&stats["end"], &stats["error"]),
                (&details["end"], &details["error"]),
                "{}",
                fixture.name
            );
            let calls = details["tool_calls"].as_array().unwrap();
            assert_eq!(
                stats["tool_calls"].as_array().unwrap().len(),
                calls.len(),
                "{}",
                fixture.name
            );
        }
    }
}

#[test]
fn a_damaged_stream_is_reported_with_its_place() {
    let hi = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let cut = format!("{hi}{hi}data: {{\"choices\":[{{\"ind");
    let run = unbraid("stats", cut.as_bytes());
    assert_eq!(run.code, 3);
    let place = format!("interrupted after event 1, byte {}", 2 * hi.len());
    assert!(run.stdout.contains(&place), "{}", run.stdout);
    assert!(run.stdout.contains("warning: event 2: "), "{}", run.stdout);
    assert!(
        run.stderr
            .contains("did not finish: choice 0 (interrupted)"),
        "{}",
        run.stderr
    );
    let stats = unbraid("stats --json", cut.as_bytes()).json();
    assert_eq!(stats["choices"][0]["last_delta_event"], 1);
    assert_eq!(stats["choices"][0]["last_delta_byte"], 2 * hi.len());
    assert_eq!(stats["warnings"][0]["event"], 2);
    let strict = unbraid("stats --strict", format!("{hi}data: {{\n\n").as_bytes());
    assert!(strict.stderr.contains("event 1"), "{}", strict.stderr);
    let none = unbraid("stats", b"Hello");
    assert_eq!(none.code, 1);
}

#[test]
fn an_invalid_exchange_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sse");
    std::fs::write(&path, "data: [DONE]\n\n").unwrap();
    std::fs::write(dir.path().join("a.sse.exchange.json"), "{}").unwrap();
    let run = unbraid(&format!("stats {}", path.display()), b"");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains("a.sse.exchange.json: "),
        "{}",
        run.stderr
    );
}

#[test]
fn control_characters_of_a_server_do_not_reach_a_terminal() {
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": "x" }, "finish_reason": "st\u{1b}[2Jop\u{9b}" }] });
    let run = unbraid("stats", format!("data: {chunk}\n\n").as_bytes());
    assert!(run.stdout.contains("st\\u{1b}[2Jop"), "{}", run.stdout);
    assert!(!run.stdout.contains(['\u{1b}', '\u{9b}']));
}

#[test]
fn a_long_stream_uses_bounded_memory() {
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"on and on \"}}]}\n\n";
    let chunk = event.repeat(1000);
    let (printed, _) = pipes::run_endless("stats", "", chunk.as_bytes(), 96 << 20, 3);
    assert!(printed.contains("limit_exceeded after event "), "{printed}");
}
