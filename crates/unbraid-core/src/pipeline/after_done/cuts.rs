//! The limit after `[DONE]` counts from the same byte, however the stream is split into reads.

use crate::{Config, Demux, limits::MAX_BYTES_AFTER_DONE};

const ANSWER: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}";

/// The tokens, whether the stream is closed, and the events, for a stream that is split at these offsets.
fn read(stream: &str, cuts: &[usize]) -> (Option<u64>, bool, Vec<String>) {
    let mut demux = Demux::new(Config {
        usage_after_done: true,
        ..Config::default()
    });
    let (mut left, mut at) = (stream.as_bytes(), 0);
    for cut in cuts {
        let (read, behind) = left.split_at(cut - at);
        demux.feed(read);
        (left, at) = (behind, *cut);
    }
    demux.feed(left);
    let closed = demux.closed().is_some();
    let mut events = Vec::new();
    while let Some(event) = demux.next_event() {
        events.push(event.to_string());
    }
    (demux.usage().completion_tokens, closed, events)
}

/// Checks that splits around the start and the end of the limited bytes do not change the result.
#[track_caller]
fn check(head: &str, tail: &str) -> Option<u64> {
    let stream = [head, tail].concat();
    let expected = read(&stream, &[]);
    let bound: Vec<usize> = (stream.len() - 12..stream.len()).collect();
    for first in head.len() - 8..head.len() + 16 {
        assert_eq!(read(&stream, &[first]), expected, "cut at {first}");
        let twice = [first, first + 1];
        assert_eq!(read(&stream, &twice), expected, "cut at {twice:?}");
        for second in bound.iter().step_by(5) {
            let cuts = [first, *second];
            assert_eq!(read(&stream, &cuts), expected, "cut at {cuts:?}");
        }
    }
    for cut in bound {
        assert_eq!(read(&stream, &[cut]), expected, "cut at {cut}");
    }
    expected.0
}

/// Checks streams in which the usage ends up to three bytes before or after the limit, and returns how often it counts.
#[track_caller]
fn check_around(head: &str, tail: impl Fn(usize) -> String) -> usize {
    let count = |more: usize| check(head, &tail(MAX_BYTES_AFTER_DONE - 3 + more));
    (0..8).filter(|more| count(*more).is_some()).count()
}

/// A comment of this length.
fn comment(bytes: usize, end: &str) -> String {
    format!(":{}{end}", " ".repeat(bytes - 1 - end.len()))
}

#[test]
fn u13_splitting_line_ends_does_not_move_the_limit() {
    for end in ["\n", "\r\n", "\r"] {
        let blank = end.repeat(2);
        // S9: a mark without a field name has no blank line of its own.
        for done in [["data: [DONE]", &blank], ["[DONE]", end]] {
            let head = [ANSWER, &blank, &done.concat()].concat();
            let usage = [USAGE, &blank].concat();
            let tail = |bytes: usize| [&*comment(bytes - usage.len(), end), &usage].concat();
            assert!((4..=5).contains(&check_around(&head, tail)), "{head:?}");
        }
    }
}

#[test]
fn u13_splitting_the_line_after_done_does_not_move_the_limit() {
    for end in ["\n", "\r\n", "\r"] {
        let head = [ANSWER, end, end, "data: [DONE]", end].concat();
        let tail = |bytes: usize| {
            let length = bytes - USAGE.len() - "'x':'',".len() - end.len();
            let field = format!("{{\"x\":\"{}\",", "x".repeat(length));
            [&*USAGE.replacen('{', &field, 1), end].concat()
        };
        assert!((4..=5).contains(&check_around(&head, tail)), "{end:?}");
    }
}

#[test]
fn u13_splitting_json_lines_does_not_move_the_limit() {
    for end in ["\n", "\r\n", "\r"] {
        let line = |line: &str| [line.trim_start_matches("data: "), end].concat();
        let head = [line(ANSWER), line("[DONE]")].concat();
        let usage = line(USAGE);
        let tail = |bytes: usize| [&*" ".repeat(bytes - usage.len()), &usage].concat();
        let counted = check_around(&head, tail);
        assert!(counted >= 4, "{end:?}: {counted}");
    }
}
