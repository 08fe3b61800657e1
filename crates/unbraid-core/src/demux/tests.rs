use super::Demux;
use crate::{CallKind, ChoiceEnd, ChoiceIndex, Config, StreamError, Transcript};

mod cancelled;
mod events;
mod halves;
mod lines;

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
fn e13_two_answers_under_one_index_cause_a_warning_and_repeated_roles_do_not() {
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
fn e13_f05_late_roles_and_reasons_cause_the_same_warnings() {
    let role = chunk("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
    let text = chunk("\"delta\":{\"content\":\"a\"}");
    let stop = chunk("\"delta\":{},\"finish_reason\":\"stop\"");
    let length = chunk("\"delta\":{},\"finish_reason\":\"length\"");
    let answer = role + &text + &stop;
    let shared = ["c0 \"aa\" finished", "F6", "E13"];
    check(&(answer.clone() + &answer + DONE), &shared);
    let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n";
    let ended = answer.clone() + usage;
    check(&(ended.clone() + &answer + DONE), &shared);
    let differs = ["c0 \"a\" finished", "F5"];
    check(&(ended.clone() + &length + DONE), &differs);
    check(&(ended + &stop + DONE), &["c0 \"a\" finished"]);
}

#[test]
fn f09_t22_contradicting_reasons_and_arguments_cause_warnings() {
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

/// The aggregate of a stream, and the codes of its warnings.
fn whole(stream: &str) -> (serde_json::Value, Vec<&'static str>) {
    let mut demux = Demux::new(Config::default());
    demux.feed(stream.as_bytes());
    demux.finish();
    let codes = demux
        .warnings()
        .iter()
        .map(|warning| warning.code)
        .collect();
    (demux.aggregate(), codes)
}

fn raw_chunk(rest: &str) -> String {
    format!("data: {{{rest}}}\n\n")
}

#[test]
fn e11_entries_beyond_a_bound_are_skipped_with_one_warning() {
    let entries = vec!["{}"; 5000].join(",");
    let (whole, codes) = whole(&raw_chunk(&format!("\"choices\":[{entries}]")));
    assert_eq!(
        whole["choices"].as_array().map(Vec::len),
        Some(crate::limits::MAX_CHOICES)
    );
    assert!(codes.contains(&"E11"), "{codes:?}");
    let calls = vec!["{\"function\":{\"name\":\"f\"}}"; 5000].join(",");
    let mut demux = Demux::new(Config::default());
    demux.feed(
        raw_chunk(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{calls}]}}}}]"
        ))
        .as_bytes(),
    );
    demux.finish();
    assert_eq!(
        demux
            .choices()
            .next()
            .unwrap()
            .end()
            .map(|end| end.as_str()),
        Some("limit_exceeded")
    );
}

#[test]
fn u10_usage_fields_are_bounded_and_merged_in_linear_time() {
    let stream: String = (0..20_000)
        .map(|key| raw_chunk(&format!("\"choices\":[],\"usage\":{{\"k{key}\":1}}")))
        .collect();
    let (whole, _) = whole(&stream);
    assert_eq!(
        whole["usage"].as_object().map(serde_json::Map::len),
        Some(crate::limits::MAX_FIELDS)
    );
}

#[test]
fn c14_u9_one_bad_value_does_not_affect_others() {
    let logprobs =
        r#"{"content":[{"token":"\ud83d","logprob":-1},{"token":"ok","logprob":1e999}]}"#;
    let usage = r#"{"prompt_tokens":5,"completion_tokens":7,"cost":1e999}"#;
    let stream = raw_chunk(&format!(
        r#""big":1e999,"choices":[{{"index":0,"delta":{{"content":"x"}},"logprobs":{logprobs},"finish_reason":"stop"}}],"usage":{usage}"#
    ));
    let (whole, codes) = whole(&stream);
    let tokens = &whole["choices"][0]["logprobs"]["content"];
    assert_eq!(tokens[0]["token"], "\u{FFFD}");
    assert_eq!(
        (&tokens[1]["token"], &tokens[1]["logprob"]),
        (&"ok".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&whole["usage"]["prompt_tokens"], &whole["usage"]["cost"]),
        (&5.into(), &serde_json::Value::Null)
    );
    assert_eq!(whole["big"], serde_json::Value::Null);
    for code in ["M8", "U9"] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
}

#[test]
fn c11_content_of_any_type_is_kept() {
    for (delta, kept) in [
        (r#"{"content":5}"#, "content_parts"),
        (r#"{"content":true}"#, "content_parts"),
        (
            r#"{"content":[{"type":"image_url","n":1},{"type":"image_url","n":2}]}"#,
            "content_parts",
        ),
        (r#""hey""#, "delta"),
    ] {
        let (whole, codes) = whole(&raw_chunk(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{delta}}}]"
        )));
        let choice = &whole["choices"][0];
        let kept = choice.get(kept).or_else(|| choice["message"].get(kept));
        assert!(kept.is_some(), "{delta}: {whole}");
        assert_eq!(
            codes.contains(&"C11"),
            !delta.contains("image_url"),
            "{delta}: {codes:?}"
        );
    }
    let (whole, codes) = whole(&raw_chunk(
        r#""choices":[{"index":0,"delta":{"content":{"text":"q"}}}]"#,
    ));
    assert_eq!(whole["choices"][0]["message"]["content"], "q");
    assert!(codes.is_empty());
}

#[test]
fn x03_an_error_of_zero_is_not_an_error() {
    let (whole, _) = whole(&raw_chunk(
        r#""error":0,"choices":[{"index":0,"delta":{"content":"x"}}]"#,
    ));
    assert_eq!(whole["choices"][0]["message"]["content"], "x");
}

#[test]
fn s19_padding_that_is_not_utf_8_causes_a_warning_in_every_chunk() {
    let chunk = |padding: &[u8]| {
        let head =
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"obfuscation\":\"";
        [&head[..], padding, b"\"}\n\n"].concat()
    };
    let mut demux = Demux::new(Config::default());
    for padding in [&b"xyz"[..], b"zyx", b"x\xFFz"] {
        demux.feed(&chunk(padding));
    }
    demux.finish();
    let codes: Vec<&str> = demux
        .warnings()
        .iter()
        .map(|warning| warning.code)
        .collect();
    assert_eq!(codes, ["S19"]);
}
