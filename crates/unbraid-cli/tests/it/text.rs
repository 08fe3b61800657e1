//! `--text` of `collect`: bare text, headers, and what the text leaves out.

use unbraid_testkit::fixture::Fixture;

use crate::{Run, run_fixture, unbraid};

fn delta(choice: u32, delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":{choice},\"delta\":{delta}}}]}}\n\n")
}

fn content(choice: u32, text: &str) -> String {
    delta(choice, &serde_json::json!({ "content": text }).to_string())
}

fn finish(choice: u32) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":{choice},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n"
    )
}

const DONE: &str = "data: [DONE]\n\n";

fn text(stream: &str) -> Run {
    unbraid("collect --text", stream.as_bytes())
}

#[track_caller]
fn check(run: &Run, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(run.stdout, stdout);
    assert_eq!(run.stderr, stderr);
    assert_eq!(run.code, code);
}

/// What arrives after an end belongs to the answer (F6).
#[test]
fn text_after_the_end_of_a_choice_is_printed() {
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":2}}\n\n";
    let late = |choice| content(choice, "a") + &finish(choice) + usage + &content(choice, "b");
    check(&text(&(late(0) + DONE)), 0, "ab\n", "");
}

#[test]
fn one_choice_is_its_text_and_nothing_else() {
    let stream = |text: &str| content(0, text) + &finish(0) + DONE;
    let long = "word ".repeat(100);
    check(&text(&stream(&long)), 0, &format!("{long}\n"), "");
    check(&text(&stream("a\r\n\tb\n")), 0, "a\r\n\tb\n", "");
    check(&text(&stream("a\n\n")), 0, "a\n\n", "");
    check(
        &text(&stream("\u{1b}[2J\u{202e}")),
        0,
        "\u{1b}[2J\u{202e}\n",
        "",
    );
    check(&text(&stream("")), 0, "", "");
}

#[test]
fn several_choices_have_headers_in_the_order_of_their_indices() {
    let stream = content(2, "two") + &content(0, "zero\n") + &finish(2) + &finish(0) + DONE;
    let expected = "==> choice 0 <==\nzero\n\n==> choice 2 <==\ntwo\n";
    check(&text(&stream), 0, expected, "");
}

#[test]
fn refusals_calls_and_reasoning_are_not_text() {
    let refused = delta(0, r#"{"refusal":"I cannot."}"#) + &finish(0) + DONE;
    let message = "unbraid: standard input: choice 0 refused: I cannot.\n";
    check(&text(&refused), 0, "", message);
    let call = r#"{"content":"Hi","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
    let called = delta(0, call) + &finish(0) + DONE;
    let message = "unbraid: standard input: choice 0 has a tool call, which --text leaves out\n";
    check(&text(&called), 0, "Hi\n", message);
    let reasoning = r#"{"reasoning_content":"Hm."}"#;
    let reasoned = delta(0, reasoning) + &content(0, "So.") + &finish(0) + DONE;
    check(&text(&reasoned), 0, "So.\n", "");
    let only = delta(0, reasoning) + &finish(0) + DONE;
    let message = "unbraid: standard input: choice 0 has reasoning but no text\n";
    check(&text(&only), 0, "", message);
}

#[test]
fn a_choice_that_did_not_finish_keeps_its_text() {
    let message = "unbraid: standard input: did not finish: choice 0 (interrupted)\n";
    check(&text(&content(0, "Hel")), 3, "Hel\n", message);
    let none = text("");
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
}

#[test]
fn every_fixture_has_the_text_of_its_response() {
    for fixture in Fixture::all().into_iter().step_by(19) {
        let collected = run_fixture("collect", &fixture).json();
        let choices = collected["choices"].as_array().unwrap();
        let texts: Vec<(u64, &str)> = choices
            .iter()
            .map(|choice| {
                let text = choice["message"]["content"].as_str();
                let text = text.or_else(|| choice["text"].as_str()).unwrap_or_default();
                (choice["index"].as_u64().unwrap(), text)
            })
            .collect();
        let with_newline = |text: &str| match text {
            "" => String::new(),
            text if text.ends_with('\n') => text.to_owned(),
            text => format!("{text}\n"),
        };
        let expected = match &texts[..] {
            [(_, text)] => with_newline(text),
            texts => {
                let parts = texts
                    .iter()
                    .map(|(index, text)| format!("==> choice {index} <==\n{}", with_newline(text)));
                parts.collect::<Vec<String>>().join("\n")
            }
        };
        assert_eq!(
            run_fixture("collect --text", &fixture).stdout,
            expected,
            "{}",
            fixture.name
        );
    }
}
