//! The warnings that need the whole stream: E12, E13 for folded indices, E30.

use super::chunk;
use unbraid_testkit::cut::Rng;

use crate::{
    ChoiceIndex, Config, Demux, Limits, StreamError, TransportError, Update,
    limits::MAX_CHOICES,
    route::folded::FoldedIndices,
    text_delta::{DeltaKind, TextDelta},
};

const DONE: &str = "data: [DONE]\n\n";

fn text(index: u32) -> String {
    chunk(index, "\"delta\":{\"content\":\"a\"}")
}

fn role(index: u32) -> String {
    chunk(index, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}")
}

fn finish(index: u32) -> String {
    chunk(index, "\"delta\":{},\"finish_reason\":\"stop\"")
}

fn texts(indices: impl IntoIterator<Item = u32>) -> String {
    indices.into_iter().map(text).collect()
}

fn read(config: Config, stream: &str) -> Demux {
    let mut demux = Demux::new(config);
    demux.feed(stream.as_bytes());
    demux.finish();
    demux
}

/// `code message` of the warnings that concern the whole stream.
fn warnings(demux: &Demux) -> Vec<String> {
    let of_stream = demux.warnings().into_iter().filter(|w| w.choice.is_none());
    of_stream
        .filter(|w| matches!(w.code, "E12" | "E13" | "E30"))
        .map(|w| format!("{} {}", w.code, w.message))
        .collect()
}

#[track_caller]
fn check(expect_choices: Option<u32>, stream: &str, expected: &[&str]) {
    let options = Config {
        expect_choices,
        ..Config::default()
    };
    assert_eq!(warnings(&read(options, stream)), expected);
}

const COUNTED: &str =
    "E12 the index seems to count tokens, not choices: with --expect-choices 1 they are one answer";

#[test]
fn e12_rising_indices_with_one_delta_each_count_tokens() {
    let ended = |indices: &[u32]| {
        let last = indices.last().copied().unwrap_or_default();
        texts(indices.iter().copied()) + &finish(last) + DONE
    };
    check(None, &ended(&[0, 1, 2, 3, 4, 5]), &[COUNTED]);
    check(None, &ended(&[1, 2, 3, 4, 5]), &[COUNTED]);
    check(None, &ended(&[7, 9, 12, 13, 40]), &[COUNTED]);
    check(
        None,
        &(role(0) + &texts(0..5) + &finish(5) + DONE),
        &[COUNTED],
    );
    check(None, &(role(0) + &texts(1..6) + &finish(6)), &[COUNTED]);
    check(None, &(texts(1..9) + DONE), &[COUNTED]);
}

#[test]
fn e12_token_counts_beyond_the_limit_on_choices_are_reported_despite_the_refusals() {
    for end in [DONE, ""] {
        let stream = texts(1..201) + &finish(200) + end;
        let demux = read(Config::default(), &stream);
        assert_eq!(warnings(&demux), [COUNTED]);
        assert!(matches!(demux.closed(), Some(Err(StreamError::Limit(_)))));
        assert_eq!(demux.warnings().len(), Limits::default().warnings);
    }
    let few = Config {
        limits: Limits {
            choices: 2,
            ..Limits::default()
        },
        ..Config::default()
    };
    assert_eq!(warnings(&read(few, &(texts(1..7) + DONE))), [COUNTED]);
    check(Some(3), &(texts(1..201) + DONE), &[COUNTED]);
    let cut = {
        let mut demux = Demux::new(Config::default());
        demux.feed(texts(1..201).as_bytes());
        demux.abort(StreamError::Transport(
            TransportError::new(9, "reset").into(),
        ));
        demux
    };
    assert_eq!(warnings(&cut), [COUNTED]);
}

#[test]
fn e12_interleaved_answers_are_not_a_count_of_tokens() {
    let each = |one: fn(u32) -> String| (0..6).map(one).collect::<String>();
    check(None, &(texts(0..4) + DONE), &[]);
    check(None, &(texts([3, 1, 0, 2, 4]) + DONE), &[]);
    check(None, &(texts([0, 1, 2, 3, 4, 0]) + DONE), &[]);
    check(None, &(texts(0..6) + &each(finish) + DONE), &[]);
    check(None, &(texts(0..6) + &finish(0) + DONE), &[]);
    check(None, &(each(role) + &texts(0..6) + DONE), &[]);
    check(Some(6), &(texts(0..6) + DONE), &[]);
    check(Some(1), &(texts(0..6) + DONE), &[]);
    check(None, &(texts(1..200) + &text(150) + DONE), &[]);
    check(
        None,
        &(texts(1..200) + &finish(199) + &text(200) + DONE),
        &[],
    );
    let mut cut = Demux::new(Config::default());
    cut.feed(texts(0..8).as_bytes());
    cut.abort(StreamError::Cancelled);
    assert_eq!(warnings(&cut), [""; 0]);
}

#[test]
fn e13_folded_answers_are_counted() {
    let two = |n| format!("E13 --expect-choices 1 folded {n} interleaved choices");
    let begin: String = (0..4).map(role).collect();
    let end: String = (0..4).map(finish).collect();
    let whole = begin.clone() + &texts([0, 1, 2, 3, 0, 2]) + &end + DONE;
    check(Some(1), &whole, &[&two(4)]);
    check(None, &whole, &[]);
    // Each of these alone shows it: a finish reason after another index, a role after one, roles of several.
    check(Some(1), &(texts([0, 1]) + &finish(0) + DONE), &[&two(2)]);
    check(Some(1), &(texts([0, 1]) + &role(0) + DONE), &[&two(2)]);
    check(Some(1), &(begin + &texts([2, 0, 1])), &[&two(4)]);
    let together =
        "data: {\"choices\":[{\"index\":0,\"text\":\"a\"},{\"index\":1,\"text\":\"b\"}]}\n\n";
    check(Some(1), &(together.to_owned() + &finish(0)), &[&two(2)]);
}

#[test]
fn e13_an_index_that_counts_tokens_is_folded_without_a_warning() {
    let role_each = |index| {
        chunk(
            index,
            "\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}",
        )
    };
    let roles: String = (0..300).map(role_each).collect();
    check(Some(1), &(roles + &finish(299) + DONE), &[]);
    check(Some(1), &(role(0) + &texts(0..9) + &finish(9) + DONE), &[]);
    check(
        Some(1),
        &(role(3) + &text(3) + &text(3) + &finish(3) + DONE),
        &[],
    );
    check(Some(1), &(texts([0, 1, 0, 1]) + DONE), &[]);
    check(Some(1), &(role(0) + &texts([1, 2, 0]) + DONE), &[]);
}

#[test]
fn e30_fewer_choices_than_requested_cause_a_warning_at_the_end() {
    let one = text(0) + &finish(0);
    check(
        Some(5),
        &(one.clone() + DONE),
        &["E30 expected 5 choices, got 1"],
    );
    check(Some(5), &one, &["E30 expected 5 choices, got 1"]);
    check(
        Some(3),
        &(texts([0, 2]) + DONE),
        &["E30 expected 3 choices, got 2"],
    );
    check(Some(2), &(texts([0, 1]) + DONE), &[]);
    check(Some(1), &(one.clone() + DONE), &[]);
    check(None, &(one.clone() + DONE), &[]);
    let error = "data: {\"error\":\"boom\"}\n\n";
    check(Some(2), &(one + error), &["E30 expected 2 choices, got 1"]);
    check(Some(2), error, &[]);
    check(Some(2), DONE, &[]);
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n";
    check(
        Some(1),
        &(usage.to_owned() + DONE),
        &["E30 expected 1 choice, got 0"],
    );
}

#[test]
fn e30_does_not_apply_to_a_stream_that_was_cut() {
    for error in [
        StreamError::Cancelled,
        StreamError::Transport(TransportError::new(9, "reset").into()),
    ] {
        let mut demux = Demux::new(Config {
            expect_choices: Some(5),
            ..Config::default()
        });
        demux.feed(text(0).as_bytes());
        demux.abort(error);
        assert_eq!(warnings(&demux), [""; 0]);
    }
}

#[test]
fn a_warning_about_the_whole_stream_is_kept_unless_no_warnings_are() {
    let limits = |warnings| Limits {
        warnings,
        ..Limits::default()
    };
    for (warnings, expected) in [(0, [""; 0].as_slice()), (1, &["E12"]), (2, &["X13", "E12"])] {
        let options = Config {
            limits: limits(warnings),
            ..Config::default()
        };
        let stream = "data: {oops}\n\n".repeat(3) + &texts(0..6) + DONE;
        let demux = read(options, &stream);
        let codes: Vec<&str> = demux.warnings().iter().map(|w| w.code).collect();
        assert_eq!(codes, expected);
        assert_eq!(demux.warnings_dropped() as usize, 4 - expected.len());
    }
}

#[test]
fn folded_indices_are_kept_up_to_the_limit_on_choices() {
    let mut folded = FoldedIndices::default();
    let update = Update {
        role: Some("assistant".into()),
        ..Update::default()
    };
    let limit = MAX_CHOICES as u32;
    for index in (0..limit + 2).chain([0]) {
        folded.record(ChoiceIndex(index), &update);
    }
    assert_eq!(folded.interleaved(), Some(MAX_CHOICES));
}

/// The promise of `continues`: taken as an update, such a delta would change nothing.
#[test]
fn a_text_delta_that_continues_a_choice_changes_nothing_in_the_folded_indices() {
    let (mut continuing, mut other) = (0, 0);
    for seed in 0..500 {
        let rng = &mut Rng::new(seed);
        let mut folded = FoldedIndices::default();
        for event in 0..12 {
            let choice = ChoiceIndex(rng.below(3) as u32);
            let delta = TextDelta::new(event.into(), choice, DeltaKind::Content, "a")
                .with_role([None, Some(""), Some("assistant")][rng.below(3)]);
            let (continues, before) = (folded.continues(&delta), format!("{folded:?}"));
            folded.record(delta.choice, &delta.to_update());
            if continues {
                continuing += 1;
                assert_eq!(format!("{folded:?}"), before, "seed {seed}, event {event}");
            } else {
                other += 1;
            }
        }
    }
    assert!(
        continuing > 1000 && other > 1000,
        "{continuing} continue, {other} do not"
    );
}

#[test]
fn e12_a_refused_index_counts_once() {
    let counted = |last| {
        let config = Config::default().with_limits(Limits::default().with_choices(3));
        let stream = texts(0..last + 1) + &finish(last) + DONE;
        warnings(&read(config, &stream)).contains(&COUNTED.to_owned())
    };
    assert!(counted(4), "five indices");
    assert!(!counted(3), "four, the last of them twice");
}
