//! How choices end, the status of their calls, and the warnings about indices.

use crate::fixture::Options;
use crate::reference::accumulate;

/// A chunk of one choice.
fn chunk(index: u32, fields: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":{index},{fields}}}]}}\n\n")
}

fn finish(index: u32, reason: &str) -> String {
    chunk(index, &format!("\"finish_reason\":\"{reason}\""))
}

fn call(arguments: &str) -> String {
    chunk(
        0,
        &format!(
            "\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}}}]}}"
        ),
    )
}

/// `end status` of each choice with a call, and the end of the others.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    let outcome = accumulate(stream.as_bytes(), &Options::default());
    let ends = outcome.choices.values().map(|choice| {
        let call = choice.tool_calls.first();
        let status = call.map_or("-", |call| call.status.unwrap_or("?"));
        format!("{} {status}", choice.end)
    });
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

const DONE: &str = "data: [DONE]\n\n";

#[test]
fn a_call_without_arguments_is_complete_only_if_the_choice_finished() {
    check(
        &(call("") + &finish(0, "stop")),
        &["finished empty_as_object"],
    );
    check(
        &(call("") + &finish(0, "eos")),
        &["finished empty_as_object"],
    );
    check(&(call("") + &finish(0, "length")), &["finished truncated"]);
    check(&(call(" ") + DONE), &["done_without_finish truncated"]);
    check(&call(""), &["interrupted truncated"]);
    check(
        &(call("") + "data: {\"error\":1}\n\n"),
        &["server_error truncated"],
    );
    check(&(call("{}") + &finish(0, "length")), &["finished complete"]);
    check(&(call("[1") + &finish(0, "stop")), &["finished truncated"]);
    check(
        &(call("12") + &finish(0, "length")),
        &["finished truncated"],
    );
    check(
        &(call("[\\\"\\\\ud83d\\\"]") + &finish(0, "stop")),
        &["finished repaired"],
    );
    check(&(call("[1]x") + &finish(0, "stop")), &["finished ?"]);
}

#[test]
fn a_choice_that_finishes_in_the_chunk_of_an_error_fails() {
    let failing = "data: {\"error\":1,\"choices\":[{\"index\":0,\"finish_reason\":\"error\"},{\"index\":1,\"text\":\"a\"}]}\n\n";
    check(failing, &["server_error -", "server_error -"]);
    check(
        &(finish(0, "stop") + failing),
        &["finished -", "server_error -"],
    );
    check(
        &(finish(2, "stop") + failing),
        &["server_error -", "server_error -", "finished -"],
    );
}

#[track_caller]
fn check_codes(expect_choices: Option<u32>, stream: &str, expected: &[&str]) {
    let options = Options {
        expect_choices,
        ..Options::default()
    };
    let outcome = accumulate(stream.as_bytes(), &options);
    let codes: Vec<&str> = outcome.codes.into_iter().collect();
    assert_eq!(codes, expected);
}

#[test]
fn indices_that_count_tokens_or_interleave_are_reported() {
    let texts = |indices: &[u32]| -> String {
        indices
            .iter()
            .map(|index| chunk(*index, "\"text\":\"a\""))
            .collect()
    };
    check_codes(
        None,
        &(texts(&[1, 2, 3, 4, 5]) + &finish(5, "eos")),
        &["E12"],
    );
    check_codes(None, &texts(&[1, 2, 3, 4, 5]), &["E12"]);
    check_codes(None, &texts(&[1, 2, 3, 5, 4]), &[]);
    check_codes(None, &texts(&[1, 2, 3, 4, 5, 1]), &[]);
    check_codes(Some(1), &texts(&[1, 2, 3, 4, 5]), &[]);
    check_codes(Some(1), &(texts(&[0, 1]) + &finish(0, "stop")), &["E13"]);
    check_codes(Some(1), &(texts(&[0, 1]) + &finish(1, "stop")), &[]);
    check_codes(Some(3), &texts(&[0, 1]), &["E30"]);
    check_codes(Some(2), &texts(&[0, 1]), &[]);
    check_codes(Some(2), DONE, &[]);
}
