use super::Demux;
use crate::{CallKind, Options, Transcript};

/// What a stream adds up to: its choices, then the codes of its warnings, then its error.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    let mut demux = Demux::new(Options::default());
    demux.feed(stream.as_bytes());
    demux.finish();
    let mut told: Vec<String> = demux.choices().map(told).collect();
    told.extend(
        demux
            .warnings()
            .iter()
            .map(|warning| warning.code.to_owned()),
    );
    told.extend(
        demux
            .closed()
            .and_then(|closed| Some(closed.as_ref().err()?.name().to_owned())),
    );
    assert_eq!(told, expected);
}

fn told(choice: &Transcript) -> String {
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
    let end = choice.end().map_or("-", |end| end.name());
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

#[test]
fn e21_a_whole_message_counts_beside_its_log_probabilities() {
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
fn t33_an_entry_that_says_nothing_opens_no_call() {
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
fn t02_t07_t10_t14_calls_are_told_apart() {
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
fn e13_two_answers_under_one_index_are_told_and_repeated_roles_are_not() {
    let role = chunk("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
    let text = chunk("\"delta\":{\"content\":\"a\"}");
    let both = chunk("\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}");
    let finish = chunk("\"delta\":{},\"finish_reason\":\"stop\"");
    check(
        &(role.clone() + &role + &text + &finish + &finish + DONE),
        &["c0 \"a\" finished", "E13"],
    );
    check(
        &(both.clone() + &both + &finish + &finish + DONE),
        &["c0 \"aa\" finished"],
    );
    check(
        &(role + &text + &finish + &finish + DONE),
        &["c0 \"a\" finished"],
    );
}

#[test]
fn f09_t22_reasons_and_arguments_that_do_not_fit_are_told() {
    let finish = chunk("\"delta\":{},\"finish_reason\":\"tool_calls\"");
    check(&(finish.clone() + DONE), &["c0 \"\" finished", "F9"]);
    let call = calls(
        "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}{\\\"b\\\":1}\"}}",
    );
    check(
        &(call + &finish + DONE),
        &["c0 \"\" f#a({}{\"b\":1}) finished", "T22"],
    );
}

#[test]
fn c14_every_half_that_found_no_partner_is_told() {
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
fn s10_nothing_behind_the_end_mark_counts_within_one_event_either() {
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
fn s21_a_last_event_counts_only_if_each_of_its_lines_is_whole() {
    let line = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n";
    check(&line.repeat(2), &["c0 \"aa\" interrupted", "S10"]);
    check(
        &(line.to_owned() + "data: {\"choi"),
        &["S21", "not_a_stream"],
    );
}

#[test]
fn u06_a_null_takes_back_no_usage_of_another_place() {
    let mut demux = Demux::new(Options::default());
    demux.feed(b"data: {\"choices\":[],\"x_groq\":{\"usage\":{\"prompt_tokens\":\"7.0\"}},\"usage\":null}\n\n");
    assert_eq!(demux.usage().prompt_tokens, Some(7));
    assert_eq!(demux.usage().raw["prompt_tokens"], 7);
}
