//! Streams of every provider, on the command line.

use serde_json::json;
use unbraid_testkit::fixture::Fixture;

use crate::{run_fixture, unbraid};

/// Checks what `collect` prints of a fixture: its dialect, its text, its reason, and how many calls it has.
#[track_caller]
fn check(name: &str, dialect: &str, text: &str, reason: &str, calls: usize) {
    let run = run_fixture("collect", &Fixture::named(name));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
    let response = run.json();
    assert_eq!(response["unbraid"]["dialect"], dialect, "{name}");
    assert_eq!(response["object"], "chat.completion", "{name}");
    let choice = &response["choices"][0];
    assert_eq!(
        choice["message"]["content"].as_str().unwrap_or_default(),
        text,
        "{name}"
    );
    assert_eq!(choice["finish_reason"], reason, "{name}");
    let own = choice["message"]["tool_calls"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(own, calls, "{name}");
}

#[test]
fn collect_reads_the_stream_of_every_provider() {
    check(
        "anthropic/anthropic-a02-a05-a15-thinking-text-call",
        "anthropic",
        "It rains here.",
        "tool_use",
        1,
    );
    check(
        "responses/openai-p09-p16-text",
        "responses",
        "Hello",
        "completed",
        0,
    );
    check("gemini/gemini-g02-array", "gemini", "ab", "STOP", 0);
    check(
        "ollama/ollama-o04-o05-o06-parallel-calls",
        "ollama",
        "",
        "stop",
        4,
    );
    check(
        "cohere/cohere-citations",
        "cohere",
        "It is green.",
        "COMPLETE",
        0,
    );
    check(
        "bedrock/bedrock-b01-b08-b09-converse",
        "bedrock",
        "Hello",
        "tool_use",
        2,
    );
}

#[test]
fn collect_reads_bodies_that_are_not_streamed() {
    check("anthropic/anthropic-body", "anthropic", "Hi", "tool_use", 2);
    check("bedrock/bedrock-body", "bedrock", "Hi!", "tool_use", 1);
}

#[test]
fn collect_normalizes_the_usage() {
    let usage = |name: &str| {
        run_fixture("collect", &Fixture::named(name)).json()["unbraid"]["usage"].clone()
    };
    let anthropic = usage("anthropic/anthropic-a02-a05-a15-thinking-text-call");
    assert_eq!(
        anthropic["prompt_tokens"], 14,
        "with what was read from the cache"
    );
    assert_eq!(
        (&anthropic["cached_tokens"], &anthropic["completion_tokens"]),
        (&json!(4), &json!(42))
    );
    let gemini = usage("gemini/gemini-body");
    assert_eq!(
        (&gemini["completion_tokens"], &gemini["reasoning_tokens"]),
        (&json!(5), &json!(3))
    );
}

#[test]
fn d05_the_dialect_can_be_selected() {
    let fixture = Fixture::named("ollama/ollama-o10-cut");
    let run = unbraid("collect --dialect ollama", &fixture.bytes);
    assert_eq!(run.json()["unbraid"]["dialect"], "ollama");
    let run = unbraid("collect --dialect gemini", &fixture.bytes);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(run.json()["choices"], json!([]));
    let run = unbraid("collect --dialect claude", &fixture.bytes);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("expected chat, text, responses"),
        "{}",
        run.stderr
    );
}

#[test]
fn every_view_reads_an_answer_of_another_provider() {
    let fixture = Fixture::named("bedrock/bedrock-b13-two-generations");
    let lines = unbraid("events", &fixture.bytes).lines();
    assert!(
        lines
            .iter()
            .any(|line| line["choice"] == 1 && line["type"] == "content.delta")
    );
    let watched = unbraid("watch --plain", &fixture.bytes);
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    assert!(watched.stdout.contains("ac"), "{}", watched.stdout);
}
