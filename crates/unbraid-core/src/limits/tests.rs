use super::*;
use crate::{ChoiceEnd, Config, Demux, StreamError};

/// Checks the result of a stream under these limits: its own limit error, then the end and text of each choice.
#[track_caller]
fn check(limits: &Limits, stream: &str, expected: &str) {
    let mut demux = Demux::new(Config {
        limits: limits.clone(),
        ..Config::default()
    });
    demux.feed(stream.as_bytes());
    demux.finish();
    let mut summary = vec![match demux.closed() {
        Some(Err(StreamError::Limit(error))) => error.to_string(),
        Some(Ok(())) => "ok".to_owned(),
        other => format!("{other:?}"),
    }];
    for choice in demux.choices() {
        let message = choice.message();
        let end = match choice.end() {
            Some(ChoiceEnd::LimitExceeded(error)) => error.to_string(),
            end => end.map_or("-", ChoiceEnd::as_str).to_owned(),
        };
        let (index, calls) = (choice.index(), message.tool_calls.len());
        summary.push(format!(
            "c{index} {:?} {calls} calls, {end}",
            message.content
        ));
    }
    summary.extend(
        demux
            .warnings()
            .iter()
            .map(|warning| warning.code.to_owned()),
    );
    assert_eq!(summary.join("; "), expected);
}

fn text(index: u32, text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

fn call(index: u32) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"i{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"1\"}}}}]}}}}]}}\n\n"
    )
}

const DONE: &str = "data: [DONE]\n\n";

#[test]
fn s31_a_line_at_its_limit_and_one_byte_longer() {
    let stream = text(0, "a");
    let limits = |line_bytes| Limits {
        line_bytes,
        ..Limits::default()
    };
    let length = stream.trim_end().len();
    check(
        &limits(length),
        &stream,
        "ok; c0 \"a\" 0 calls, interrupted",
    );
    check(
        &limits(length - 1),
        &stream,
        &format!("more than {} bytes of one line", length - 1),
    );
}

#[test]
fn s31_an_event_at_its_limit_and_one_byte_longer() {
    let stream = "data: {\"choices\":[\ndata: {\"index\":0}]}\n\n";
    let length = "{\"choices\":[\n{\"index\":0}]}".len();
    let limits = |event_bytes| Limits {
        event_bytes,
        ..Limits::default()
    };
    check(&limits(length), stream, "ok; c0 \"\" 0 calls, interrupted");
    check(
        &limits(length - 1),
        stream,
        &format!("more than {} bytes of one event", length - 1),
    );
}

#[test]
fn e11_a_choice_beyond_the_limit_is_refused_and_the_others_continue() {
    let limits = Limits {
        choices: 2,
        ..Limits::default()
    };
    let two = text(7, "a") + &text(3, "b");
    check(
        &limits,
        &(two.clone() + DONE),
        "ok; c7 \"a\" 0 calls, done_without_finish; c3 \"b\" 0 calls, done_without_finish",
    );
    check(
        &limits,
        &(two + &text(9, "x") + &text(3, "c") + DONE),
        "more than 2 choices of a completion; c7 \"a\" 0 calls, done_without_finish; c3 \"bc\" 0 calls, done_without_finish; E11",
    );
}

#[test]
fn t45_a_call_beyond_the_limit_ends_only_its_choice() {
    let limits = Limits {
        tool_calls: 2,
        ..Limits::default()
    };
    let two = text(1, "a") + &call(0) + &call(5);
    check(
        &limits,
        &(two.clone() + &call(0) + DONE),
        "ok; c1 \"a\" 0 calls, done_without_finish; c0 \"\" 2 calls, done_without_finish",
    );
    check(
        &limits,
        &(two + &call(6) + &text(1, "b") + &text(0, "x") + DONE),
        "ok; c1 \"ab\" 0 calls, done_without_finish; c0 \"\" 2 calls, more than 2 tool calls of a choice",
    );
}

#[test]
fn t45_a_choice_beyond_its_byte_limit_ends_alone() {
    let limits = Limits {
        choice_bytes: 2 * DELTA_COST + 5,
        ..Limits::default()
    };
    check(
        &limits,
        &(text(0, "abc") + &text(0, "de") + DONE),
        "ok; c0 \"abcde\" 0 calls, done_without_finish",
    );
    check(
        &limits,
        &(text(1, "a") + &text(0, "abc") + &text(0, "def") + &text(0, "g") + &text(1, "b") + DONE),
        "ok; c1 \"ab\" 0 calls, done_without_finish; c0 \"abc\" 0 calls, more than 133 bytes of one choice",
    );
}

#[test]
fn t45_a_completion_beyond_its_byte_limit_ends_all_unfinished_choices() {
    let finish = "data: {\"choices\":[{\"index\":2,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let limits = Limits {
        completion_bytes: 3 * DELTA_COST + 4 + 5,
        ..Limits::default()
    };
    let within = finish.to_owned() + &text(0, "abc") + &text(1, "de");
    check(
        &limits,
        &(within + DONE),
        "ok; c2 \"\" 0 calls, finished; c0 \"abc\" 0 calls, done_without_finish; c1 \"de\" 0 calls, done_without_finish",
    );
    check(
        &limits,
        &(text(0, "abc") + &text(1, "de") + finish + &text(1, "f")),
        "more than 201 bytes of a completion; c0 \"abc\" 0 calls, more than 201 bytes of a completion; \
         c1 \"de\" 0 calls, more than 201 bytes of a completion; c2 \"\" 0 calls, finished",
    );
}

#[test]
fn u05_endless_envelope_fields_are_bounded() {
    let usage = |key: u32| format!("data: {{\"choices\":[],\"usage\":{{\"k{key}\":1}}}}\n\n");
    let stream: String = (0..100).map(usage).collect();
    let limits = Limits {
        completion_bytes: 500,
        ..Limits::default()
    };
    check(&limits, &stream, "more than 500 bytes of a completion");
}

#[test]
fn x13_a_chunk_nested_too_deep_is_skipped() {
    let limits = Limits {
        json_depth: 6,
        ..Limits::default()
    };
    let nested = |depth: usize| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"x\":{}1{}}}]}}\n\n",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    check(
        &limits,
        &(nested(3) + DONE),
        "ok; c0 \"\" 0 calls, done_without_finish",
    );
    check(
        &limits,
        &(text(0, "a") + &nested(4) + DONE),
        "ok; c0 \"a\" 0 calls, done_without_finish; X13",
    );
}

#[test]
fn warnings_beyond_the_limit_are_only_counted() {
    let limits = Limits {
        warnings: 2,
        ..Limits::default()
    };
    let lost = "data: {oops\n\n";
    check(
        &limits,
        &(text(0, "a") + lost + lost + DONE),
        "ok; c0 \"a\" 0 calls, done_without_finish; X13; X13",
    );
    check(
        &limits,
        &(text(0, "a") + lost + lost + lost + DONE),
        "ok; c0 \"a\" 0 calls, done_without_finish; X13; X13",
    );
    let mut demux = Demux::new(Config {
        limits,
        ..Config::default()
    });
    demux.feed(lost.repeat(5).as_bytes());
    assert_eq!(demux.warnings_dropped(), 3);
}

#[test]
fn the_defaults_are_consistent() {
    let Limits {
        line_bytes,
        event_bytes,
        choices,
        tool_calls,
        choice_bytes,
        completion_bytes,
        json_depth,
        warnings,
    } = Limits::default();
    assert_eq!((line_bytes, event_bytes), (MAX_LINE_BYTES, MAX_EVENT_BYTES));
    assert_eq!(
        (choices, tool_calls, warnings),
        (MAX_CHOICES, MAX_TOOL_CALLS, MAX_WARNINGS)
    );
    assert_eq!(
        (choice_bytes, completion_bytes, json_depth),
        (MAX_CHOICE_BYTES, MAX_COMPLETION_BYTES, MAX_JSON_DEPTH)
    );
    assert!(
        line_bytes as u64 <= choice_bytes,
        "the longest line fits its choice"
    );
    assert!(
        choice_bytes < completion_bytes,
        "one choice cannot use up the completion"
    );
    assert!(
        serde_json::from_str::<serde_json::Value>(
            &("[".repeat(json_depth) + &"]".repeat(json_depth))
        )
        .is_ok()
    );
    let deeper = json_depth + 1;
    assert!(
        serde_json::from_str::<serde_json::Value>(&("[".repeat(deeper) + &"]".repeat(deeper)))
            .is_err()
    );
    assert!(
        completion_bytes < u64::from(u32::MAX),
        "a transcript's offsets are 32 bits wide"
    );
}

#[test]
fn e24_unknown_fields_beyond_the_limit_are_dropped() {
    let fields = |count: usize| {
        (0..count)
            .map(|at| format!(",\"k{at}\":1"))
            .collect::<String>()
    };
    let kept = |chunk: String| {
        let mut demux = Demux::new(Config::default());
        demux.feed(format!("data: {chunk}\n\ndata: {chunk}\n\n").as_bytes());
        let of_choices: usize = demux.choices().map(|choice| choice.extra().len()).sum();
        (demux.metadata().extra.len(), of_choices)
    };
    let envelope = |count| kept(format!("{{\"choices\":[]{}}}", fields(count)));
    assert_eq!(envelope(MAX_FIELDS), (MAX_FIELDS, 0));
    assert_eq!(envelope(MAX_FIELDS + 1), (MAX_FIELDS, 0));
    let choice = |count| {
        kept(format!(
            "{{\"choices\":[{{\"index\":0{}}}]}}",
            fields(count)
        ))
    };
    assert_eq!(choice(MAX_FIELDS), (0, MAX_FIELDS));
    assert_eq!(choice(MAX_FIELDS + 1), (0, MAX_FIELDS));
}

#[test]
fn the_error_of_a_limit_of_one_is_in_the_singular() {
    let message = |limit, max| LimitExceeded::new(limit, max).to_string();
    assert_eq!(
        message(Limit::Choices, 1),
        "more than 1 choice of a completion"
    );
    assert_eq!(
        message(Limit::ToolCalls, 1),
        "more than 1 tool call of a choice"
    );
    assert_eq!(
        message(Limit::ToolCalls, 2),
        "more than 2 tool calls of a choice"
    );
}
