//! X4: an error in the event that brings a finish reason; and when all choices have ended.

use super::chunk;
use crate::EventIndex;
use crate::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Config, Demux, FinishPolicy, Sequenced, StreamError,
    Text, Update,
    event::Position,
    route::{ChoiceSink, Router},
    text_delta::Delta,
};

const POLICIES: [FinishPolicy; 3] = [
    FinishPolicy::NextEvent,
    FinishPolicy::AtFinish,
    FinishPolicy::AtStreamEnd,
];

/// An event with these entries of `choices` and an error.
fn failing(entries: &str) -> String {
    format!("data: {{\"error\":{{\"code\":502}},\"choices\":[{entries}]}}\n\n")
}

fn text(index: u32) -> String {
    chunk(index, "\"delta\":{\"content\":\"a\"}")
}

#[track_caller]
fn check(events: &[String], expected: &[(&str, &str)]) {
    for policy in POLICIES {
        let mut demux = Demux::new(Config {
            finish_policy: policy,
            ..Config::default()
        });
        demux.feed(events.concat().as_bytes());
        demux.feed(b"data: [DONE]\n\n");
        demux.finish();
        let choices = demux.choices();
        let ends: Vec<(&str, &str)> = choices
            .map(|choice| {
                let reason = choice.finish_reason().map_or("-", |reason| reason.as_str());
                (reason, choice.end().map_or("-", ChoiceEnd::as_str))
            })
            .collect();
        assert_eq!(ends, expected, "{policy:?}");
        assert!(matches!(demux.closed(), Some(Err(StreamError::Server(_)))));
    }
}

#[test]
fn x04_a_choice_that_finishes_in_the_event_of_an_error_ends_with_the_error() {
    let entry = |index, reason: &str| {
        format!(
            "{{\"index\":{index},\"delta\":{{\"content\":\"\"}},\"finish_reason\":\"{reason}\"}}"
        )
    };
    let stop = chunk(2, "\"delta\":{},\"finish_reason\":\"stop\"");
    let texts = [text(0), text(1), text(2)].concat();
    for reason in ["error", "stop", "length"] {
        check(
            &[texts.clone(), stop.clone(), failing(&entry(0, reason))],
            &[
                (reason, "server_error"),
                ("-", "server_error"),
                ("stop", "finished"),
            ],
        );
    }
    let both = format!("{},{}", entry(1, "error"), entry(0, "stop"));
    check(
        &[texts, stop, failing(&both)],
        &[
            ("stop", "server_error"),
            ("error", "server_error"),
            ("stop", "finished"),
        ],
    );
    check(&[failing(&entry(0, "error"))], &[("error", "server_error")]);
}

#[test]
fn x04_an_earlier_finish_reason_takes_precedence_over_the_error() {
    let again = "{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}";
    let stop = chunk(
        0,
        "\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"",
    );
    check(&[stop, failing(again)], &[("stop", "finished")]);
}

#[test]
fn x04_both_ends_contain_the_error_in_the_order_of_the_choices() {
    let mut demux = Demux::new(Config::default());
    demux.feed(text(1).as_bytes());
    demux.feed(failing("{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}").as_bytes());
    let mut events = Vec::new();
    while let Some(event) = demux.next_event() {
        events.push(event.map(Text::from));
    }
    let mut sorted = events.clone();
    sorted.sort_by_key(Sequenced::sort_key);
    let lines = |events: &[Sequenced]| events.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&events), lines(&sorted));
    for choice in demux.choices() {
        let Some(ChoiceEnd::ServerError(error)) = choice.end() else {
            panic!("{:?}", choice.end())
        };
        assert_eq!(
            (error.code().as_deref(), error.event_index()),
            (Some("502"), EventIndex(1))
        );
    }
}

#[test]
fn at_finish_ends_a_choice_with_its_event_even_without_a_marked_last_update() {
    let options = Config {
        finish_policy: FinishPolicy::AtFinish,
        ..Config::default()
    };
    let update = |at, finish: Option<&'static str>| Update {
        event_index: at,
        choice: Some(ChoiceIndex(0)),
        content: Some("a".into()),
        finish_reason: finish.map(Into::into),
        ..Update::default()
    };
    for ends in [
        (|demux, update| demux.feed_update(&update)) as fn(&mut Demux, Update<'_>),
        |demux, _| demux.handle_idle(),
    ] {
        let mut demux = Demux::new(options.clone());
        demux.feed_update(&update(EventIndex(0), Some("stop")));
        assert!(demux.result(ChoiceIndex(0)).is_none());
        ends(&mut demux, update(EventIndex(1), None));
        let finished = demux.result(ChoiceIndex(0)).unwrap().unwrap();
        assert_eq!(finished.end.as_str(), "finished");
    }
}

/// Keeps nothing.
struct Nowhere;

impl ChoiceSink for Nowhere {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _kind: CompletionKind) {}
    fn delta(&mut self, _slot: usize, _delta: Delta<'_>, _position: Position) {}
    fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _position: Position) {}
    fn finish(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
    fn finish_with_reason(&mut self, _slot: usize, _position: Position) {}
    fn finish_with_error(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
    fn stream_event(&mut self, _event: Sequenced<Text>) {}
}

#[test]
fn all_have_ended_only_once_the_requested_number_appeared() {
    let ended = |expect_choices: Option<u32>, choices: u32, cancelled: usize| {
        let mut router = Router::new(Config {
            expect_choices,
            ..Config::default()
        });
        for at in 0..choices {
            let update = Update {
                event_index: EventIndex(at.into()),
                last_of_event: true,
                choice: Some(ChoiceIndex(at)),
                content: Some("a".into()),
                ..Update::default()
            };
            router.update(&update, &mut Nowhere);
        }
        for slot in 0..cancelled {
            assert!(router.cancel(slot, &mut Nowhere));
        }
        router.all_ended()
    };
    assert!(!ended(None, 0, 0));
    assert!(!ended(None, 1, 0));
    assert!(ended(None, 1, 1));
    assert!(!ended(Some(2), 1, 1), "another one is to come");
    assert!(!ended(Some(2), 2, 1));
    assert!(ended(Some(2), 2, 2));
    assert!(ended(Some(2), 3, 3), "more than asked for");
    assert!(!ended(Some(0), 0, 0), "no choice has begun");
}
