//! Cursors, starts and ids.

use unbraid_log::{End, Event, Meta, Seq};

use super::script::{Script, choice, data, drain, kept, two_choices};
use crate::{
    decoding::Decoding,
    view::{Opened, Start, StreamView, Target, ViewError, ViewRequest},
};

#[test]
fn retry_is_part_of_the_first_event_and_every_event_has_an_id() {
    let (a, b, c) = (data(0, "a"), data(1, "b"), data(0, "c"));
    two_choices().check(
        Target::Combined,
        Start::Beginning,
        &format!("retry: 1000\nid: 1\n{a}id: 2\n{b}id: 3\n{c}.."),
    );
}

#[test]
fn one_choice_has_its_own_events_as_index_0() {
    let script = two_choices();
    let b = data(0, "b");
    script.check(
        choice(1),
        Start::Beginning,
        &format!("retry: 1000\nid: 2\n{b}.."),
    );
    let kept_b = data(1, "b");
    script.check(
        kept(1),
        Start::Beginning,
        &format!("retry: 1000\nid: 2\n{kept_b}.."),
    );
}

#[test]
fn a_cursor_of_one_view_is_valid_in_every_other() {
    let script = two_choices();
    let c = data(0, "c");
    for target in [Target::Combined, choice(0)] {
        script.check(
            target,
            Start::After(Seq(2)),
            &format!("retry: 1000\nid: 3\n{c}.."),
        );
    }
    script.check(choice(1), Start::After(Seq(2)), "..");
}

/// MCP SDK 2499: a cursor that is lost when the resumed stream drops before its first event.
#[test]
fn a_reader_without_events_keeps_the_cursor_of_its_request() {
    let script = two_choices();
    assert_eq!(
        script.reader(choice(1), Start::After(Seq(2))).cursor(),
        Seq(2)
    );
    let mut reader = script.reader(Target::Combined, Start::After(Seq(1)));
    assert_eq!(reader.cursor(), Seq(1));
    drain(&mut reader);
    assert_eq!(reader.cursor(), Seq(3));
}

#[test]
fn a_cursor_at_the_last_id_is_complete_and_a_higher_one_gets_only_the_terminal_event() {
    let mut script = two_choices();
    script.choice_end(0, End::Finished);
    let done = "retry: 1000\nid: 4\ndata: [DONE]\n\n";
    assert!(matches!(
        script.open(choice(0), Start::After(Seq(4))),
        Opened::Complete
    ));
    script.check(choice(0), Start::After(Seq(3)), done);
    script.check(choice(0), Start::After(Seq(9)), done);
    script.check(choice(1), Start::After(Seq(9)), "..");
    script.choice_end(1, End::Finished);
    script.seal(End::Finished);
    let done = "retry: 1000\nid: 6\ndata: [DONE]\n\n";
    assert!(matches!(
        script.open(Target::Combined, Start::After(Seq(6))),
        Opened::Complete
    ));
    script.check(Target::Combined, Start::After(Seq(5)), done);
    script.check(Target::Combined, Start::After(Seq::MAX), done);
    script.check(
        choice(1),
        Start::After(Seq(6)),
        "retry: 1000\nid: 5\ndata: [DONE]\n\n",
    );
}

/// The producer of a shared log may have shown its readers more than the log has: after it is repaired, a reader elsewhere
/// gets nothing twice.
#[test]
fn a_reader_that_waits_at_the_last_id_gets_nothing_more() {
    let mut script = two_choices();
    let mut of_choice = script.reader(choice(0), Start::After(Seq(4)));
    let mut combined = script.reader(Target::Combined, Start::After(Seq(6)));
    let mut failed = script.reader(choice(1), Start::After(Seq(5)));
    for reader in [&mut of_choice, &mut combined, &mut failed] {
        assert_eq!(drain(reader), (String::new(), false));
    }
    script.choice_end(0, End::Finished);
    script.choice_end(1, End::Interrupted);
    script.seal(End::Interrupted);
    for reader in [&mut of_choice, &mut combined, &mut failed] {
        assert_eq!(drain(reader), (String::new(), true));
    }
}

/// It has read another event with this number, which the log does not have.
#[test]
fn a_reader_that_waits_for_a_lost_producer_gets_the_end() {
    let script = two_choices();
    let mut readers = [Target::Combined, choice(1)].map(|target| {
        let mut reader = script.reader(target, Start::After(Seq(4)));
        assert_eq!(drain(&mut reader), (String::new(), false));
        reader
    });
    script.seal(End::ProducerLost);
    for reader in &mut readers {
        let (text, has_ended) = drain(reader);
        assert!(
            has_ended && text.contains("id: 4\ndata: {\"error\"") && text.contains("producer_lost"),
            "{text}"
        );
    }
}

/// resumable-stream 44, 42 and 45: a late resume needs neither the producer nor a handshake with it.
#[test]
fn an_ended_stream_is_read_from_every_cursor_without_its_producer() {
    let mut script = two_choices();
    script.choice_end(0, End::Finished);
    script.seal(End::ProducerLost);
    let (journal, meta) = (script.view.journal().clone(), script.view.meta().clone());
    let view = StreamView::new(journal, meta, Decoding::default());
    drop(script);
    for after in 0..4 {
        let request = ViewRequest::of_post(Some(Seq(after)));
        let Ok(Opened::Events(mut reader)) = view.open(&request) else {
            panic!("the stream is kept");
        };
        let (text, has_ended) = drain(&mut reader);
        assert!(has_ended);
        let events = 3_usize.saturating_sub(after as usize) + 1;
        assert_eq!(
            text.matches("\nid: ").count(),
            events,
            "after {after}: {text}"
        );
    }
}

#[test]
fn a_cursor_beyond_a_running_stream_waits_for_greater_numbers_and_still_ends() {
    let mut script = two_choices();
    let mut reader = script.reader(Target::Combined, Start::After(Seq(4)));
    assert_eq!(drain(&mut reader), (String::new(), false));
    script.text(0, "d");
    assert_eq!(
        drain(&mut reader),
        (String::new(), false),
        "4 was seen before"
    );
    script.text(0, "e");
    assert_eq!(
        drain(&mut reader).0,
        format!("retry: 1000\nid: 5\n{}", data(0, "e"))
    );
    let mut far = script.reader(Target::Combined, Start::After(Seq(1000)));
    script.seal(End::Finished);
    assert_eq!(
        drain(&mut far),
        ("retry: 1000\nid: 6\ndata: [DONE]\n\n".to_owned(), true)
    );
}

#[test]
fn an_unknown_choice_is_not_found_and_an_expected_one_is_waited_for() {
    let mut script = Script::new(2);
    let open = |script: &Script, index| {
        let request = ViewRequest {
            target: choice(index),
            ..ViewRequest::of_post(None)
        };
        script.view.open(&request).map(drop)
    };
    assert_eq!(open(&script, 1), Ok(()));
    assert_eq!(open(&script, 2), Err(ViewError::ChoiceNotFound));
    assert_eq!(
        script.view.json(choice(2), true),
        Err(ViewError::ChoiceNotFound)
    );
    script.text(7, "a");
    assert_eq!(open(&script, 7), Ok(()));
    let mut waiting = script.reader(choice(1), Start::Beginning);
    assert_eq!(drain(&mut waiting), (String::new(), false));
    script.text(1, "b");
    assert!(drain(&mut waiting).0.starts_with("retry: 1000\nid: 2\n"));
}

#[test]
fn a_request_without_n_expects_one_choice() {
    let script = Script::of(Meta::new("/v1/chat/completions", 7));
    let open = |index| {
        let request = ViewRequest {
            target: choice(index),
            ..ViewRequest::of_post(None)
        };
        script.view.open(&request).map(drop)
    };
    assert_eq!((open(0), open(1)), (Ok(()), Err(ViewError::ChoiceNotFound)));
}

/// upstash/realtime 23, agentscope 2123, scale-agentex 241: events between history and live reading.
#[test]
fn tail_begins_with_its_position_and_loses_nothing_after_it() {
    let mut script = two_choices();
    let mut reader = script.reader(Target::Combined, Start::Tail);
    script.text(1, "d"); // before the first poll
    let (text, _) = drain(&mut reader);
    assert!(text.starts_with("retry: 1000\nid: 3\ndata: {"), "{text}");
    assert!(
        text.contains(r#""choices":[],"unbraid":{"position":3}}"#),
        "{text}"
    );
    assert!(
        text.ends_with(&format!("\n\nid: 4\n{}", data(1, "d"))),
        "{text}"
    );
}

#[test]
fn tail_and_snapshot_of_an_ended_view_are_followed_by_its_terminal_event() {
    let mut script = two_choices();
    script.choice_end(1, End::Finished);
    script.text(0, "d");
    script.choice_end(0, End::Finished);
    script.seal(End::Finished);
    for start in [Start::Tail, Start::Snapshot] {
        for (target, position, end) in [(choice(1), 3, 4), (Target::Combined, 6, 7)] {
            let (text, has_ended) = script.read(target, start);
            assert!(
                has_ended && text.starts_with(&format!("retry: 1000\nid: {position}\n")),
                "{text}"
            );
            assert!(
                text.ends_with(&format!("\n\nid: {end}\ndata: [DONE]\n\n")),
                "{text}"
            );
            assert_eq!(text.matches("\n\n").count(), 2, "{text}");
        }
    }
}

/// vercel/ai 18457, cloudflare/agents 1951: a replay that is shown beside what was displayed.
#[test]
fn a_snapshot_holds_everything_so_far_and_is_followed_by_the_rest() {
    let mut script = two_choices();
    let mut reader = script.reader(choice(0), Start::Snapshot);
    script.text(0, "d");
    let (text, _) = drain(&mut reader);
    let (snapshot, rest) = text.split_once("\n\n").unwrap();
    let json: serde_json::Value =
        serde_json::from_str(snapshot.split_once("data: ").unwrap().1).unwrap();
    assert!(snapshot.starts_with("retry: 1000\nid: 3\n"));
    assert_eq!(
        json["unbraid"],
        serde_json::json!({ "snapshot": true, "seq": 3 })
    );
    assert_eq!(json["choices"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["choices"][0]["index"], 0);
    assert_eq!(json["choices"][0]["delta"]["content"], "ac");
    assert_eq!(json["choices"][0]["finish_reason"], serde_json::Value::Null);
    assert_eq!(json["object"], "chat.completion.chunk");
    assert_eq!(rest, format!("id: 4\n{}", data(0, "d")));
}

#[test]
fn names_and_data_that_is_not_a_chunk_pass_through_the_combined_view() {
    let mut script = Script::new(1);
    script.push(&Event::Chunk {
        choices: (&[][..]).into(),
        name: Some("ping"),
        payload: b"{\"type\": \"ping\"}",
    });
    script.chunk(&[], "not JSON");
    script.chunk(&[], r#"{"choices":[],"usage":{"total_tokens":3}}"#);
    script.check(
        Target::Combined,
        Start::Beginning,
        "retry: 1000\nid: 1\nevent: ping\ndata: {\"type\": \"ping\"}\n\nid: 2\ndata: not JSON\n\nid: 3\ndata: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\n..",
    );
    script.check(choice(0), Start::Beginning, "..");
}

#[test]
fn the_status_lists_all_requested_choices() {
    let mut script = two_choices();
    script.choice_end(1, End::Cancelled);
    let status = script.view.status(2048);
    assert_eq!((status.seq, status.end), (Seq(4), None));
    let choices: Vec<_> = status
        .choices
        .iter()
        .map(|choice| (choice.index.0, choice.seq.0, choice.end))
        .collect();
    assert_eq!(choices, [(0, 3, None), (1, 4, Some(End::Cancelled))]);
    script.choice_end(0, End::Finished);
    script.seal(End::Finished);
    let status = script.view.status(2048);
    assert_eq!(status.seq, Seq(6), "the end has a number, too");
    assert_eq!(status.choices[0].finish_reason.as_deref(), Some("stop"));
    assert_eq!(status.end.map(|end| end.end), Some(End::Finished));
    let listed = |n: u32, max: u32| Script::new(n).view.status(max).choices.len();
    assert_eq!((listed(2048, 2048), listed(u32::MAX, 2048)), (2048, 2048));
    let empty = Script::new(3).view.status(2048);
    assert!(
        empty.choices.len() == 3 && empty.choices.iter().all(|choice| choice.seq == Seq::START)
    );
}

#[test]
fn a_producer_folds_the_choices_of_a_request_for_one() {
    let folded = Meta::new("/v1/chat/completions", 7).with_n(1);
    assert_eq!(StreamView::core_config(&folded).expect_choices, Some(1));
    let open = Meta::new("/v1/chat/completions", 7);
    assert_eq!(StreamView::core_config(&open).expect_choices, None);
}

#[test]
fn the_cuts_of_an_ordinary_chunk_take_16_bytes() {
    assert!(size_of::<Option<crate::view::chunk::Cuts>>() <= 16);
    let ordinary = br#"{"choices":[{"index":10,"delta":{"content":"a"}}]}"#;
    let cuts = crate::view::chunk::Cuts::find(ordinary, false);
    assert!(
        matches!(cuts, crate::view::chunk::Cuts::Index { at: 21, len: 2 }),
        "{cuts:?}"
    );
}

#[test]
fn views_are_sent_between_threads() {
    fn check<T: Send + 'static>() {}
    check::<crate::view::ViewReader>();
    fn check_shared<T: Send + Sync + 'static>() {}
    check_shared::<StreamView>();
}
