//! The table "How a view ends" of the gateway's contract: each end, in each view.

use unbraid_log::{End, Seq};

use super::script::{Script, choice, part};
use crate::view::{Opened, Part, Start, Target};

const ERRORS: [End; 6] = [
    End::Interrupted,
    End::Transport,
    End::ServerError,
    End::TimedOut,
    End::LimitExceeded,
    End::ProducerLost,
];

/// Choice 0 has a finish reason, choice 1 has not. The stream has this end.
fn script(end: End, of_open_choice: Option<End>) -> Script {
    let mut script = Script::new(2);
    script.text(0, "a");
    script.text(1, "b");
    script.choice_end(0, End::Finished);
    if let Some(end) = of_open_choice {
        script.choice_end(1, end);
    }
    script.seal(end);
    script
}

/// The last event of a view.
fn last(script: &Script, target: Target) -> String {
    let (text, has_ended) = script.read(target, Start::Beginning);
    assert!(has_ended);
    let events: Vec<&str> = text.trim_end().split("\n\n").collect();
    events.last().copied().unwrap_or_default().to_owned()
}

fn error(id: u64, code: &str) -> String {
    format!("id: {id}\ndata: {{\"error\":{{\"message\":")
        + &format!("|\"type\":\"stream_error\",\"param\":null,\"code\":\"{code}\"}}}}")
}

#[track_caller]
fn check(given: &str, expected: &str) {
    match expected.split_once('|') {
        Some((start, end)) => {
            assert!(given.starts_with(start), "{given}");
            assert!(given.ends_with(end), "{given}");
        }
        None => assert_eq!(given, expected),
    }
}

#[test]
fn finished_and_done_without_finish_end_with_done_in_every_view() {
    for end in [End::Finished, End::DoneWithoutFinish] {
        let script = script(end, Some(end));
        check(&last(&script, Target::Combined), "id: 5\ndata: [DONE]");
        check(&last(&script, choice(0)), "id: 3\ndata: [DONE]");
        check(&last(&script, choice(1)), "id: 4\ndata: [DONE]");
        check(
            &last(&script, part(1, Part::Content)),
            "id: 4\ndata: [DONE]",
        );
    }
}

#[test]
fn every_error_ends_the_open_choices_and_the_combined_view_with_that_error() {
    for end in ERRORS {
        let logged = script(end, Some(end));
        check(&last(&logged, Target::Combined), &error(5, end.as_str()));
        check(&last(&logged, choice(0)), "id: 3\ndata: [DONE]");
        check(&last(&logged, choice(1)), &error(4, end.as_str()));

        // Another gateway has sealed the log, so the end of the choice is not in it.
        let sealed = script(end, None);
        check(&last(&sealed, Target::Combined), &error(4, end.as_str()));
        check(&last(&sealed, choice(0)), "id: 3\ndata: [DONE]");
        check(&last(&sealed, choice(1)), &error(4, end.as_str()));
    }
}

/// Bifrost 5546: a dead upstream became a clean end.
#[test]
fn a_truncated_answer_never_ends_with_done() {
    for end in ERRORS {
        for target in [Target::Combined, choice(1), part(1, Part::Content)] {
            let text = script(end, None).read(target, Start::Beginning).0;
            assert!(!text.contains("[DONE]"), "{end}: {text}");
        }
    }
}

#[test]
fn a_cancelled_choice_ends_with_its_chunk_and_done_while_the_stream_continues() {
    let mut script = Script::new(2);
    script.text(0, "a");
    script.text(1, "b");
    let cancelled = r#"{"choices":[{"index":1,"delta":{},"finish_reason":"cancelled"}]}"#;
    script.synthetic(1, cancelled);
    script.choice_end(1, End::Cancelled);
    script.text(0, "c");
    script.check(
        choice(1),
        Start::After(Seq(2)),
        "retry: 1000\nid: 3\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"cancelled\"}]}\n\nid: 4\ndata: [DONE]\n\n",
    );
    script.check(
        Target::Combined,
        Start::After(Seq(2)),
        &format!(
            "retry: 1000\nid: 3\ndata: {cancelled}\n\nid: 5\ndata: {}\n\n..",
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"c"}}]}"#
        ),
    );
    script.seal(End::Cancelled);
    check(&last(&script, Target::Combined), "id: 6\ndata: [DONE]");
}

#[test]
fn a_choice_that_was_cancelled_before_it_appeared_has_its_chunk_and_done() {
    let mut script = Script::new(2);
    script.text(0, "a");
    script.choice_end(0, End::Cancelled);
    script.seal(End::Cancelled);
    let (text, _) = script.read(choice(1), Start::Beginning);
    assert!(
        text.contains(r#""choices":[{"index":0,"delta":{},"finish_reason":"cancelled"}]"#),
        "{text}"
    );
    assert!(text.starts_with("retry: 1000\nid: 2\ndata: {"), "{text}");
    assert!(text.ends_with("\n\nid: 3\ndata: [DONE]\n\n"), "{text}");
    // A client that has read this chunk, and not the end, loses nothing.
    let (resumed, has_ended) = script.read(choice(1), Start::After(Seq(2)));
    assert!(has_ended && resumed.ends_with("\n\nid: 3\ndata: [DONE]\n\n"));
}

#[test]
fn the_upstreams_error_is_passed_on_unchanged_and_is_the_last_event() {
    let mut script = Script::new(3);
    script.text(0, "a");
    script.text(1, "b");
    let body = r#"{"error":{"message":"overloaded","code":529}, "x":1}"#;
    let seq = script.error(Some("error"), body);
    script.choice_end(0, End::Finished);
    script.choice_end(1, End::ServerError);
    script.seal(End::ServerError);
    let passed = format!("id: {seq}\nevent: error\ndata: {body}");
    check(&last(&script, Target::Combined), &passed);
    check(&last(&script, choice(0)), "id: 4\ndata: [DONE]");
    check(&last(&script, choice(1)), &passed);
    check(&last(&script, choice(2)), &format!("retry: 1000\n{passed}"));
}

#[test]
fn the_upstreams_error_ends_a_live_combined_view_before_the_seal() {
    let mut script = Script::new(1);
    script.text(0, "a");
    script.error(None, r#"{"error":{}}"#);
    let (text, has_ended) = script.read(Target::Combined, Start::Beginning);
    assert!(
        has_ended && text.ends_with("id: 2\ndata: {\"error\":{}}\n\n"),
        "{text}"
    );
    let (_, has_ended) = script.read(choice(0), Start::Beginning);
    assert!(!has_ended, "the end of the choice is not known");
    assert!(matches!(
        script.open(Target::Combined, Start::After(Seq(2))),
        Opened::Complete
    ));
}

#[test]
fn an_upstream_error_of_several_parts_is_passed_on_complete() {
    let mut script = Script::new(1);
    script.text(0, "a");
    let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(1_200_000));
    let seq = script.error(None, &body);
    script.choice_end(0, End::ServerError);
    assert_eq!(seq, Seq(4));
    for target in [Target::Combined, choice(0)] {
        script.check(
            target,
            Start::After(Seq(1)),
            &format!("retry: 1000\nid: 4\ndata: {body}\n\n"),
        );
    }
}

#[test]
fn an_error_inside_a_choice_ends_only_its_view_with_an_error() {
    let mut script = Script::new(2);
    let payload =
        r#"{"choices":[{"index":1,"delta":{},"error":{"message":"m"},"finish_reason":"error"}]}"#;
    script.chunk(&[1], payload);
    script.choice_end(1, End::ServerError);
    check(&last(&script, choice(1)), &error(2, "server_error"));
    assert!(!script.read(Target::Combined, Start::Beginning).1);
}

/// The error of the stream has ended the other choice.
#[test]
fn a_choice_that_has_failed_keeps_its_end_when_the_stream_fails() {
    let mut script = Script::new(2);
    script.text(0, "a");
    script.text(1, "b");
    let end = script.choice_end(0, End::ServerError);
    script.text(1, "c");
    script.error(None, r#"{"error":{"message":"down"}}"#);
    script.choice_end(1, End::ServerError);
    script.seal(End::ServerError);
    assert!(matches!(
        script.open(choice(0), Start::After(end)),
        Opened::Complete
    ));
    let status = script.view.status(2048);
    assert_eq!(status.choices[0].seq, end);
    assert!(status.choices[1].seq > end);
}

#[test]
fn choices_that_fail_in_one_chunk_have_their_own_messages() {
    let mut script = Script::new(3);
    let entries = [0, 1, 2].map(|index| {
        format!(r#"{{"index":{index},"delta":{{}},"error":{{"message":"message {index}"}}}}"#)
    });
    script.chunk(
        &[0, 1, 2],
        &format!(r#"{{"choices":[{}]}}"#, entries.join(",")),
    );
    for index in 0..3 {
        script.choice_end(index, End::ServerError);
    }
    for index in 0..3 {
        let last = last(&script, choice(index));
        assert!(
            last.contains(&format!(r#"{{"error":{{"message":"message {index}","#)),
            "{last}"
        );
    }
}

#[test]
fn a_choice_that_never_appeared_ends_with_its_stream() {
    let mut never = Script::new(3);
    never.text(0, "a");
    never.choice_end(0, End::Finished);
    never.seal(End::Finished);
    never.check(
        choice(2),
        Start::Beginning,
        "retry: 1000\nid: 3\ndata: [DONE]\n\n",
    );
}

#[test]
fn a_finish_reason_stays_if_the_producer_is_lost_before_the_end_of_its_choice() {
    let mut script = Script::new(2);
    script.text(1, "b");
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    script.chunk(&[0], finish);
    let mut live = script.reader(choice(0), Start::After(Seq(2)));
    assert!(!super::script::drain(&mut live).1);
    script.seal(End::ProducerLost);
    assert_eq!(
        super::script::drain(&mut live).0,
        "retry: 1000\nid: 3\ndata: [DONE]\n\n"
    );
    check(&last(&script, choice(0)), "id: 3\ndata: [DONE]");
    check(&last(&script, choice(1)), &error(3, "producer_lost"));
    check(&last(&script, Target::Combined), &error(3, "producer_lost"));
    let ends: Vec<_> = script
        .view
        .status(2048)
        .choices
        .iter()
        .map(|choice| choice.end)
        .collect();
    assert_eq!(ends, [Some(End::Finished), Some(End::ProducerLost)]);
}

/// They may have read another event with this number, which the log does not have.
#[test]
fn readers_that_wait_with_the_number_of_a_lost_end_get_it() {
    let mut script = Script::new(2);
    script.text(1, "b");
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    script.chunk(&[0], finish);
    let targets = [choice(0), choice(1), Target::Combined];
    let mut readers = targets.map(|target| script.reader(target, Start::After(Seq(3))));
    for reader in &mut readers {
        assert!(!super::script::drain(reader).1);
    }
    script.seal(End::ProducerLost);
    let [done, lost, combined] = readers.each_mut().map(super::script::drain);
    let text = "retry: 1000\nid: 3\ndata: [DONE]\n\n".to_owned();
    assert_eq!(done, (text, true));
    assert!(lost.1 && lost.0.contains("producer_lost"), "{}", lost.0);
    assert_eq!(combined, lost);
}

/// Their end is the event that they have read.
#[test]
fn readers_that_wait_with_the_number_of_their_own_end_get_no_event() {
    let mut script = Script::new(1);
    script.text(0, "a");
    let mut reader = script.reader(choice(0), Start::After(Seq(2)));
    assert!(!super::script::drain(&mut reader).1);
    script.choice_end(0, End::Finished);
    script.seal(End::ProducerLost);
    assert_eq!(super::script::drain(&mut reader), (String::new(), true));
}

/// deer-flow 3932, resumable-stream 47: a reader that waits forever.
#[test]
fn every_waiting_view_ends_when_the_log_is_sealed() {
    let mut script = Script::new(2);
    script.text(0, "a");
    let targets = [
        Target::Combined,
        choice(0),
        choice(1),
        part(0, Part::Reasoning),
    ];
    let mut readers: Vec<_> = targets
        .into_iter()
        .map(|target| script.reader(target, Start::Beginning))
        .collect();
    for reader in &mut readers {
        assert!(!super::script::drain(reader).1);
    }
    script.seal(End::ProducerLost);
    for reader in &mut readers {
        let (text, has_ended) = super::script::drain(reader);
        assert!(has_ended && text.contains("producer_lost"), "{text}");
    }
}
