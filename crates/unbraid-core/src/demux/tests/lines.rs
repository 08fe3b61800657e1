//! Streams without blank lines, and events that hold more than one chunk (S10, S21, S28).

use super::{DONE, check};
use crate::{Config, Demux, Event, limits::MAX_ENTRIES};

/// A chunk of choice 0, without `data:`.
fn text(text: &str) -> String {
    format!("{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}")
}

fn line(data: &str) -> String {
    format!("data: {data}\n")
}

fn lines(data: &[&str]) -> String {
    data.iter().map(|data| line(data)).collect()
}

#[test]
fn s10_s21_a_cut_last_line_does_not_affect_other_lines() {
    let stream = lines(&[&text("a"), &text("b")]) + "data: {\"choi";
    check(&stream, &["c0 \"ab\" interrupted", "S10", "S21"]);
}

#[test]
fn s10_a_bad_line_is_one_lost_chunk() {
    let stream = lines(&[&text("a"), "{\"broken", &text("b"), "[DONE]"]) + "\n";
    check(&stream, &["c0 \"ab\" done_without_finish", "S10", "X13"]);
    for bad in [
        "{\"choices\":[",
        "{\"a\":",
        "{\"a\":1,",
        "<p>",
        "}",
        "\"",
        "{\"a\":\"b\\",
    ] {
        for end in ["\n", ""] {
            let stream = lines(&[&text("a"), bad, &text("b"), &text("c"), "[DONE]"]);
            check(
                &(stream + end),
                &["c0 \"abc\" done_without_finish", "S10", "X13"],
            );
            let stream = lines(&[bad, &text("a"), &text("b"), "[DONE]"]);
            check(
                &(stream + end),
                &["c0 \"ab\" done_without_finish", "S10", "X13"],
            );
        }
    }
}

#[test]
fn s28_two_objects_on_one_line_beside_keep_alives_or_the_end() {
    let both = text("a") + &text("b");
    for around in ["ping", ": keep-alive", "null", ""] {
        for stream in [
            lines(&[&both, around]) + "\n",
            lines(&[around, &both]) + "\n",
            lines(&[around, &both]),
            lines(&[around]) + "data: " + &both,
        ] {
            let mut demux = Demux::new(Config::default());
            demux.feed(stream.as_bytes());
            demux.finish();
            let text = demux.choices().next().unwrap().message().content;
            assert_eq!(text, "ab", "{stream}");
            assert!(demux.warnings().iter().all(|w| w.code != "X13"), "{stream}");
        }
    }
    check(&format!("data: {both}"), &["c0 \"ab\" interrupted", "S28"]);
    check(
        &format!("data: {both}{{\"choi"),
        &["c0 \"ab\" interrupted", "S28", "S21"],
    );
}

#[test]
fn s10_complete_values_are_delivered_before_the_blank_line() {
    let mut demux = Demux::new(Config::default());
    let mut new_text = |line: &str| {
        demux.feed(line.as_bytes());
        let mut texts = String::new();
        while let Some(event) = demux.next_event() {
            if let Event::Content(text) = event.event {
                texts.push_str(text);
            }
        }
        texts
    };
    assert_eq!(new_text(&line(&text("a"))), "", "more of it may follow");
    assert_eq!(new_text(&line(&text("b"))), "ab");
    assert_eq!(new_text(&line(&text("c"))), "c");
    assert_eq!(new_text(&line("{\"broken")), "");
    assert_eq!(new_text(&line(&text("d"))), "d");
}

#[test]
fn s10_later_lines_about_the_stream_count() {
    let stream = lines(&[
        &text("a"),
        "{\"id\":\"late\",\"model\":\"m\",\"choices\":[]}",
        "{\"choices\":[],\"usage\":{\"total_tokens\":7}}",
    ]);
    let fused = format!(
        "data: {}\n\n",
        stream.replace("data: ", "").replace('\n', "")
    );
    for stream in [stream, fused] {
        let mut demux = Demux::new(Config::default());
        demux.feed(stream.as_bytes());
        demux.finish();
        assert_eq!(demux.metadata().id.as_deref(), Some("late"), "{stream}");
        assert_eq!(demux.metadata().model.as_deref(), Some("m"), "{stream}");
        assert_eq!(demux.usage().total_tokens, Some(7), "{stream}");
    }
}

#[test]
fn s10_a_finished_choice_ends_at_the_next_line() {
    let finish = "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}";
    let other = "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}";
    let mut demux = Demux::new(Config::default());
    demux.feed(lines(&[&text("a"), finish]).as_bytes());
    assert!(demux.result(0.into()).is_none());
    demux.feed(line(other).as_bytes());
    assert!(demux.result(0.into()).is_some());
}

#[test]
fn s11_a_value_of_several_lines_is_one_chunk_beside_others() {
    let spread = text("a")
        .replace(',', ",\ndata: ")
        .replace('[', "[\ndata: ");
    check(
        &format!("data: {spread}\n\n{DONE}"),
        &["c0 \"a\" done_without_finish"],
    );
    check(
        &format!(
            "data: {spread}\ndata: {spread}\ndata: {}\n\n{DONE}",
            text("b")
        ),
        &["c0 \"aab\" done_without_finish", "S10"],
    );
}

#[test]
fn s10_strict_mode_does_not_split_events() {
    let options = Config {
        strict: true,
        ..Config::default()
    };
    let mut demux = Demux::new(options);
    demux.feed((lines(&[&text("a"), &text("b")]) + "\n").as_bytes());
    assert!(demux.choices().next().is_none());
    assert!(matches!(demux.closed(), Some(Err(error)) if error.as_str() == "malformed"));
}

/// An event's deltas of choice 0, and the codes of its warnings.
fn counted(stream: &str) -> (u64, Vec<&'static str>) {
    let mut demux = Demux::new(Config::default());
    demux.feed(stream.as_bytes());
    let mut deltas = 0;
    while let Some(event) = demux.next_event() {
        deltas += u64::from(matches!(event.event, Event::Content(_)));
    }
    let codes = demux.warnings().iter().map(|w| w.code).collect();
    (deltas, codes)
}

#[test]
fn max_entries_holds_for_the_whole_event() {
    const MOST: u64 = MAX_ENTRIES as u64;
    let fused = |count: usize| format!("data: {}\n\n", text("a").repeat(count));
    assert_eq!(counted(&fused(MAX_ENTRIES)), (MOST, vec!["S28"]));
    assert_eq!(counted(&fused(MAX_ENTRIES + 1)), (MOST, vec!["S28", "E11"]));
    let list = |count: usize| format!("data: [{}]\n\n", vec![text("a"); count].join(","));
    assert_eq!(counted(&list(MAX_ENTRIES)), (MOST, vec![]));
    assert_eq!(counted(&list(MAX_ENTRIES + 1)), (MOST, vec!["E11"]));
    // Lines are chunks of their own, and as many as come.
    let lines = line(&text("a")).repeat(MAX_ENTRIES + 1) + "\n";
    assert_eq!(counted(&lines), (MOST + 1, vec!["S10"]));
}

#[test]
fn x13_lost_lines_of_an_error_event_are_counted_in_one_warning() {
    let lost = 3 * MAX_ENTRIES;
    let stream = format!("event: error\n{}data: boom\n\n", "data: x\n".repeat(lost));
    let mut demux = Demux::new(Config::default());
    demux.feed(stream.as_bytes());
    let warnings = demux.warnings();
    let codes: Vec<_> = warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["S15", "X13"]);
    assert!(warnings[1].message.starts_with(&format!("{lost} chunks")));
    assert!(matches!(demux.closed(), Some(Err(error)) if error.as_str() == "server_error"));
}
