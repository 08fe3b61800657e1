use super::Demux;
use crate::{CallKind, ChoiceEnd, ChoiceIndex, Config, StreamError, Transcript};

mod cancelled;
mod events;
mod first_cut;
mod halves;
mod lines;
mod reasons;
mod values;

/// What a stream adds up to: its choices, then the codes of its warnings, then its error.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    let mut demux = Demux::new(Config::default());
    demux.feed(stream.as_bytes());
    demux.finish();
    let mut summary: Vec<String> = demux.choices().map(summary).collect();
    summary.extend(
        demux
            .warnings()
            .iter()
            .map(|warning| warning.code.to_owned()),
    );
    summary.extend(
        demux
            .closed()
            .and_then(|closed| Some(closed.as_ref().err()?.as_str().to_owned())),
    );
    assert_eq!(summary, expected);
}

fn summary(choice: &Transcript) -> String {
    let message = choice.message();
    let calls = message.tool_calls.iter().map(|call| {
        let legacy = if call.kind == CallKind::LegacyFunction {
            "!"
        } else {
            ""
        };
        let id = call.id.as_deref().unwrap_or("-");
        format!(" {legacy}{}#{id}({})", call.name, call.arguments)
    });
    let calls: String = calls.collect();
    let end = choice.end().map_or("-", |end| end.as_str());
    format!("c{} {:?}{calls} {end}", choice.index(), message.content)
}

/// A chunk of choice 0 with these fields.
fn chunk(fields: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,{fields}}}]}}\n\n")
}

fn calls(entries: &str) -> String {
    chunk(&format!("\"delta\":{{\"tool_calls\":[{entries}]}}"))
}

const DONE: &str = "data: [DONE]\n\n";

/// With a copy of the arguments for each message, this would copy 400 GB.
#[test]
fn e21_messages_that_name_no_call_do_not_copy_the_arguments() {
    let message = |entry: &str| chunk(&format!("\"message\":{{\"tool_calls\":[{entry}]}}"));
    let arguments = "x".repeat(8 << 20);
    let mut demux = Demux::new(Config::default());
    let function = format!("\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}");
    demux.feed(message(&format!("{{\"index\":0,\"id\":\"a\",{function}}}")).as_bytes());
    let empty = message("{\"index\":7}").repeat(1_000);
    (0..50).for_each(|_| demux.feed(empty.as_bytes()));
    demux.feed(message("{\"index\":0,\"function\":{\"arguments\":\"y\"}}").as_bytes());
    let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    assert_eq!(message.tool_calls.len(), 1);
    assert!(message.tool_calls[0].arguments == arguments + "y");
}

#[test]
fn e21_a_full_message_counts_beside_its_log_probabilities() {
    let logprobs = "\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-1}]}";
    let whole = chunk(&format!(
        "{logprobs},\"message\":{{\"role\":\"assistant\",\"content\":\"ab\"}}"
    ));
    check(&(whole.clone() + DONE), &["c0 \"ab\" done_without_finish"]);
    check(
        &(chunk("\"delta\":{\"content\":\"ab\"}") + &whole + DONE),
        &["c0 \"ab\" done_without_finish"],
    );
    let only_logprobs = chunk(&format!("\"delta\":{{}},{logprobs}"));
    check(
        &(only_logprobs + &whole + DONE),
        &["c0 \"ab\" done_without_finish"],
    );
}

#[test]
fn t33_an_empty_entry_opens_no_call() {
    let header =
        calls("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"1\"}}");
    let nothing = calls("{\"index\":5,\"id\":\"\",\"function\":{\"arguments\":null}}");
    check(&(nothing.clone() + DONE), &["c0 \"\" done_without_finish"]);
    check(
        &(header + &nothing + DONE),
        &["c0 \"\" f#a(1) done_without_finish"],
    );
}

#[test]
fn t03_entries_without_index_count_by_position_beside_others() {
    let entry = |index: &str, id: &str| {
        format!("{{{index}\"id\":\"{id}\",\"function\":{{\"name\":\"f\",\"arguments\":\"1\"}}}}")
    };
    let mixed = [entry("\"index\":0,", "a"), entry("", "b"), entry("", "c")].join(",");
    check(
        &(calls(&mixed) + DONE),
        &["c0 \"\" f#a(1) f#b(1) f#c(1) done_without_finish"],
    );
    let fragments = "{\"function\":{\"arguments\":\"2\"}},{\"function\":{\"arguments\":\"3\"}}";
    let two = [entry("", "a"), entry("", "b")].join(",");
    check(
        &(calls(&two) + &calls(fragments) + DONE),
        &["c0 \"\" f#a(12) f#b(13) done_without_finish"],
    );
}

#[test]
fn t02_t07_t10_t14_calls_are_kept_apart() {
    let header = |index: u32, id: &str, name: &str| {
        calls(&format!(
            "{{\"index\":{index},\"id\":\"{id}\",\"function\":{{\"name\":\"{name}\",\"arguments\":\"1\"}}}}"
        ))
    };
    let nameless = calls("{\"index\":0,\"id\":\"other\",\"function\":{\"arguments\":\"2\"}}");
    let t7 = header(0, "a", "f") + &header(0, "b", "f");
    check(&(t7 + DONE), &["c0 \"\" f#a(1) f#b(1) done_without_finish"]);
    check(
        &(header(0, "a", "f") + &nameless + DONE),
        &["c0 \"\" f#a(12) done_without_finish"],
    );
    let t14 = header(0, "a", "f") + &header(1, "a", "f");
    check(
        &(t14 + DONE),
        &["c0 \"\" f#a(1) f#a(1) done_without_finish"],
    );
    let bare = calls("{\"index\":9,\"function\":{\"arguments\":\"2\"}}");
    let no_index = calls("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"1\"}}");
    check(
        &(no_index + &bare + DONE),
        &["c0 \"\" f#a(12) done_without_finish"],
    );
}

#[test]
fn c14_every_lone_half_causes_a_warning() {
    let text = |text: &str| chunk(&format!("\"delta\":{{\"content\":\"{text}\"}}"));
    check(
        &(text("a\\ud83d") + &text("\\ude00b") + DONE),
        &["c0 \"a😀b\" done_without_finish"],
    );
    check(
        &(text("a\\ud83d") + &text("b") + DONE),
        &["c0 \"a\u{FFFD}b\" done_without_finish", "C14"],
    );
    check(
        &(text("a\\ud83db") + &text("\\ud83d") + DONE),
        &[
            "c0 \"a\u{FFFD}b\u{FFFD}\" done_without_finish",
            "C14",
            "C14",
        ],
    );
}

#[test]
fn e10_an_empty_index_is_missing() {
    let stream = "data: {\"choices\":[{\"index\":\"\",\"delta\":{\"content\":\"a\"}}]}\n\n";
    check(
        &(stream.to_owned() + DONE),
        &["c0 \"a\" done_without_finish", "E8"],
    );
}

#[test]
fn s10_nothing_after_the_end_mark_counts_within_one_event_either() {
    let line = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n")
    };
    check(
        &(line("a") + "data: [DONE]\n" + &line("b") + "\n"),
        &["c0 \"a\" done_without_finish", "S10"],
    );
}

#[test]
fn s15_s21_an_error_event_that_lacks_its_blank_line_is_an_error() {
    let text = chunk("\"delta\":{\"content\":\"a\"}");
    check(
        &(text.clone() + "event: error\ndata: {\"m\":1}"),
        &["c0 \"a\" server_error", "S15", "server_error"],
    );
    check(
        &(text + "event: error\ndata: {\"m\":"),
        &["c0 \"a\" interrupted", "S21"],
    );
}

#[test]
fn s21_every_complete_line_of_a_last_event_counts() {
    let line = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n";
    check(&line.repeat(2), &["c0 \"aa\" interrupted", "S10"]);
    check(
        &(line.to_owned() + "data: {\"choi"),
        &["c0 \"a\" interrupted", "S10", "S21"],
    );
}

#[test]
fn x14_an_event_that_lacks_only_its_blank_line_is_delivered_when_the_connection_dies() {
    let line = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n";
    let died = |stream: String| {
        let mut demux = Demux::new(Config::default());
        demux.feed(stream.as_bytes());
        demux.abort(StreamError::Transport(
            crate::TransportError::new(9, "reset").into(),
        ));
        demux
    };
    let first = chunk("\"delta\":{\"content\":\"a\"}");
    for (rest, text) in [(line, "ab"), (line.trim_end(), "ab"), (&line[..40], "a")] {
        let demux = died(first.clone() + rest);
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        assert_eq!(choice.message().content, text, "{rest}");
        assert!(
            matches!(choice.end(), Some(ChoiceEnd::Transport(_))),
            "{rest}"
        );
        assert!(matches!(
            demux.closed(),
            Some(Err(StreamError::Transport(_)))
        ));
    }
    // The answer was complete.
    let demux = died(first + "data: [DONE]\n");
    assert!(matches!(demux.closed(), Some(Ok(()))));
}

#[test]
fn e30_fewer_choices_than_requested_are_reported_at_the_end() {
    let codes = |expected, stream: String| {
        let mut demux = Demux::new(Config {
            expect_choices: Some(expected),
            ..Config::default()
        });
        demux.feed(stream.as_bytes());
        demux.finish();
        demux.warnings()
    };
    let one = chunk("\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"");
    let warnings = codes(5, one.clone() + "data: [DONE]\n\n");
    let [warning] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert_eq!(
        (warning.code, &*warning.message),
        ("E30", "expected 5 choices, got 1")
    );
    assert!(codes(1, one).is_empty());
}

#[test]
fn u06_a_null_does_not_clear_usage_from_another_place() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"choices\":[],\"x_groq\":{\"usage\":{\"prompt_tokens\":\"7.0\"}},\"usage\":null}\n\n");
    assert_eq!(demux.usage().prompt_tokens, Some(7));
    assert_eq!(demux.usage().raw["prompt_tokens"], 7);
}
