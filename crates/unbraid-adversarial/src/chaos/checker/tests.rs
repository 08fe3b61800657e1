//! Each kind of violation is detected, and nothing that the contract permits is one.

use std::time::Duration;

use super::*;
use crate::chaos::answer::Chunk;

/// Two choices of three chunks each, in turn.
fn answer() -> Answer {
    let chunk = |(position, choice): (usize, u32)| {
        let finish = if position == 2 { r#""stop""# } else { "null" };
        Chunk {
            choice,
            data: format!(
                r#"{{"choices":[{{"index":{choice},"delta":{{"content":"{position}"}},"finish_reason":{finish}}}]}}"#
            ),
            pause: Duration::ZERO,
        }
    };
    let order = (0..3).flat_map(|position| [(position, 0), (position, 1)]);
    Answer {
        number: 1,
        choices: 2,
        chunks: order.map(chunk).collect(),
    }
}

const LOST: &str =
    r#"{"error":{"message":"m","type":"stream_error","param":null,"code":"producer_lost"}}"#;
const CANCELLED_1: &str = r#"{"choices":[{"index":1,"delta":{},"finish_reason":"cancelled"}]}"#;
const CANCELLED_0: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"cancelled"}]}"#;

/// The complete answer. Numbers have gaps, because the log numbers more than a view shows.
fn complete(view: View) -> Vec<Got> {
    let events = answer()
        .projection(view)
        .into_iter()
        .map(|event| event.data);
    got(events.chain(["[DONE]".to_owned()]))
}

fn got(data: impl IntoIterator<Item = impl Into<String>>) -> Vec<Got> {
    let events = data.into_iter().enumerate();
    let event = |(at, data): (usize, _)| Got {
        connection: at / 3,
        gateway: 0,
        id: Some(2 * at as u64 + 1),
        data: Into::into(data),
    };
    events.map(event).collect()
}

/// The first events of the combined view, and others after them.
fn prefix(length: usize, last: &[&str]) -> Vec<Got> {
    let events = answer().projection(View::Combined).into_iter().take(length);
    got(events
        .map(|event| event.data)
        .chain(last.iter().map(|&data| data.to_owned())))
}

fn cancelled(choices: &[u32]) -> Allowed {
    Allowed {
        cancelled: choices.iter().copied().collect(),
        ..Allowed::default()
    }
}

fn lost_producer() -> Allowed {
    Allowed {
        producer_lost: true,
        ..Allowed::default()
    }
}

#[track_caller]
fn verify(got: &[Got], allowed: &Allowed, expected: &[Kind]) {
    verify_view(View::Combined, got, Finish::Ended, allowed, expected);
}

#[track_caller]
fn verify_view(view: View, got: &[Got], finish: Finish, allowed: &Allowed, expected: &[Kind]) {
    let verdict = check(&answer(), view, got, finish, allowed);
    let kinds: Vec<_> = verdict
        .violations
        .iter()
        .map(|violation| violation.kind)
        .collect();
    assert_eq!(kinds, expected, "{:?}", verdict.violations);
}

#[test]
fn a_complete_answer_breaks_no_rule() {
    verify(&complete(View::Combined), &Allowed::default(), &[]);
    for choice in 0..2 {
        let view = View::Choice(choice);
        verify_view(
            view,
            &complete(view),
            Finish::Ended,
            &Allowed::default(),
            &[],
        );
    }
}

#[test]
fn bytes_that_are_missing_are_lost() {
    for missing in 0..6 {
        let mut events = complete(View::Combined);
        events.remove(missing);
        // The last one of all is missing before `[DONE]`.
        let kind = if missing == 5 {
            Kind::TruncatedDone
        } else {
            Kind::Lost
        };
        let verdict = check(
            &answer(),
            View::Combined,
            &events,
            Finish::Ended,
            &Allowed::default(),
        );
        assert_eq!(verdict.violations.len(), 1);
        assert_eq!(verdict.violations[0].kind, kind);
        assert_eq!(
            verdict.violations[0].bytes,
            answer().chunks[missing].data.len()
        );
    }
}

#[test]
fn an_event_that_is_delivered_again_is_twice() {
    let mut events = complete(View::Combined);
    let mut again = events[1].clone();
    again.id = Some(6);
    events.insert(3, again);
    verify(&events, &Allowed::default(), &[Kind::Twice]);
}

#[test]
fn events_in_another_order_are_lost_and_twice() {
    let mut events = complete(View::Combined);
    let (first, second) = (events[1].data.clone(), events[2].data.clone());
    events[1].data = second;
    events[2].data = first;
    verify(&events, &Allowed::default(), &[Kind::Lost, Kind::Twice]);
}

#[test]
fn changed_bytes_are_foreign() {
    let mut events = complete(View::Combined);
    events[2].data = events[2].data.replace('1', "x");
    verify(&events, &Allowed::default(), &[Kind::Foreign, Kind::Lost]);
}

#[test]
fn ids_are_present_and_increase() {
    let mut events = complete(View::Combined);
    events[2].id = None;
    verify(&events, &Allowed::default(), &[Kind::NoId]);
    let mut events = complete(View::Combined);
    events[2].id = events[1].id;
    verify(&events, &Allowed::default(), &[Kind::IdNotGreater]);
    let mut events = complete(View::Combined);
    events.last_mut().unwrap().id = Some(1);
    verify(&events, &Allowed::default(), &[Kind::IdNotGreater]);
}

#[test]
fn a_truncated_answer_has_no_clean_done() {
    verify(
        &prefix(4, &["[DONE]"]),
        &Allowed::default(),
        &[Kind::TruncatedDone],
    );
    verify(
        &prefix(4, &["[DONE]"]),
        &lost_producer(),
        &[Kind::TruncatedDone],
    );
    verify(
        &prefix(0, &["[DONE]"]),
        &Allowed::default(),
        &[Kind::TruncatedDone],
    );
}

#[test]
fn nothing_follows_the_last_event() {
    verify(
        &prefix(6, &["[DONE]", "[DONE]"]),
        &Allowed::default(),
        &[Kind::AfterEnd],
    );
    verify(
        &prefix(3, &[LOST, "[DONE]"]),
        &lost_producer(),
        &[Kind::AfterEnd],
    );
}

#[test]
fn a_lost_producer_needs_a_reason() {
    verify(&prefix(3, &[LOST]), &lost_producer(), &[]);
    verify(
        &prefix(3, &[LOST]),
        &Allowed::default(),
        &[Kind::ProducerLost],
    );
    // The gateway may die after the last chunk and before the seal.
    verify(&prefix(6, &[LOST]), &lost_producer(), &[]);
}

#[test]
fn a_finished_choice_does_not_fail() {
    let view = View::Choice(1);
    let mut events = complete(view);
    events.last_mut().unwrap().data = LOST.into();
    verify_view(
        view,
        &events,
        Finish::Ended,
        &lost_producer(),
        &[Kind::ErrorAfterFinish],
    );
    let both = Allowed {
        beyond_log: true,
        ..lost_producer()
    };
    verify_view(view, &events, Finish::Ended, &both, &[]);
}

#[test]
fn other_errors_have_no_excuse() {
    let error = LOST.replace("producer_lost", "server_error");
    verify(&prefix(3, &[&error]), &lost_producer(), &[Kind::Error]);
}

#[test]
fn a_cancelled_choice_ends_with_its_chunk() {
    // After three chunks choice 1 is cancelled; the rest of choice 0 follows.
    let data: Vec<_> = answer()
        .chunks
        .iter()
        .map(|chunk| chunk.data.clone())
        .collect();
    let events = |cancelled: &str| {
        let data = [&data[0], &data[1], &data[2], cancelled, &data[4], "[DONE]"];
        got(data.map(str::to_owned))
    };
    verify(&events(CANCELLED_1), &cancelled(&[1]), &[]);
    verify(
        &events(CANCELLED_1),
        &Allowed::default(),
        &[Kind::Cancelled, Kind::Lost],
    );
    // Without the chunk, the choice has no end.
    let mut missing = events(CANCELLED_1);
    missing.remove(3);
    verify(&missing, &cancelled(&[1]), &[Kind::TruncatedDone]);
    // A cancelled choice does not continue.
    let mut more = events(CANCELLED_1);
    more.insert(
        5,
        Got {
            id: Some(10),
            data: data[5].clone(),
            ..more[4].clone()
        },
    );
    verify(&more, &cancelled(&[1]), &[Kind::AfterCancel]);
}

#[test]
fn a_cancelled_stream_ends_all_open_choices() {
    verify(
        &prefix(2, &[CANCELLED_0, CANCELLED_1, "[DONE]"]),
        &cancelled(&[0, 1]),
        &[],
    );
    verify(
        &prefix(2, &[CANCELLED_0, "[DONE]"]),
        &cancelled(&[0, 1]),
        &[Kind::TruncatedDone],
    );
    verify(
        &prefix(2, &[CANCELLED_0, CANCELLED_0, CANCELLED_1, "[DONE]"]),
        &cancelled(&[0, 1]),
        &[Kind::Twice],
    );
    let view = View::Choice(1);
    let first = answer().projection(view).remove(0).data;
    let events = got([&first, CANCELLED_0, "[DONE]"].map(str::to_owned));
    verify_view(view, &events, Finish::Ended, &cancelled(&[1]), &[]);
}

#[test]
fn a_reader_that_does_not_end_hangs() {
    verify_view(
        View::Combined,
        &prefix(3, &[]),
        Finish::Hung,
        &lost_producer(),
        &[Kind::Hung],
    );
    verify(&prefix(6, &[]), &Allowed::default(), &[Kind::NoEnd]);
    verify_view(
        View::Combined,
        &prefix(6, &[]),
        Finish::NothingLeft,
        &Allowed::default(),
        &[Kind::NoEnd],
    );
}

#[test]
fn a_stream_is_gone_only_for_a_reason() {
    let gone = |status, allowed: &Allowed, expected: &[Kind]| {
        verify_view(
            View::Combined,
            &prefix(3, &[]),
            Finish::Gone(status),
            allowed,
            expected,
        );
    };
    gone(404, &Allowed::default(), &[Kind::Gone]);
    gone(410, &Allowed::default(), &[Kind::Gone]);
    gone(
        404,
        &Allowed {
            log_lost: true,
            ..Allowed::default()
        },
        &[],
    );
    gone(
        410,
        &Allowed {
            erased: true,
            ..Allowed::default()
        },
        &[],
    );
}

#[test]
fn a_reader_may_have_more_than_the_log_only_if_log_and_producer_failed() {
    let mut events = prefix(4, &[LOST]);
    events.last_mut().unwrap().id = Some(3);
    verify(&events, &lost_producer(), &[Kind::IdNotGreater]);
    verify(
        &events,
        &Allowed {
            beyond_log: true,
            ..lost_producer()
        },
        &[],
    );
}

#[test]
fn an_id_is_the_same_event_for_all_readers() {
    let all = complete(View::Combined);
    let mut other = complete(View::Combined);
    let same = [(View::Combined, &all[..]), (View::Combined, &other[..3])];
    assert!(compare(same.into_iter(), &Allowed::default()).is_empty());
    other[2].data = other[1].data.clone();
    let different = [(View::Combined, &all[..]), (View::Combined, &other[..])];
    let violations = compare(different.into_iter(), &Allowed::default());
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].kind, Kind::Disagree);
}
