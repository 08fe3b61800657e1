//! The status of a call, by how its choice ended: in the events, in the message, by ordinal, and for `parse`.

use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::{
    CallIndex, CallStatus, ChoiceIndex, CompletionKind, Demux, Event, Limit, ServerError, TimedOut,
    Timeout, ToolCallUpdate, TransportError,
};

/// How a choice may end: by itself, or cut.
fn ends() -> [(Option<&'static str>, ChoiceEnd, bool); 18] {
    let cut = |end| (None, end, true);
    let reason = |reason, cut| (Some(reason), ChoiceEnd::DoneWithoutFinish, cut);
    let limit = LimitExceeded {
        limit: Limit::CompletionBytes,
        max: 1,
    };
    let timeout = TimedOut {
        timeout: Timeout::Idle,
        after: std::time::Duration::from_secs(1),
    };
    [
        reason("stop", false),
        reason("tool_calls", false),
        reason("function_call", false),
        reason("eos_token", false),
        reason("end_turn", false),
        reason("128008", false),
        reason("length", true),
        reason("content_filter", true),
        reason("max_tokens", true),
        cut(ChoiceEnd::DoneWithoutFinish),
        cut(ChoiceEnd::Interrupted),
        cut(ChoiceEnd::ServerError(Arc::new(ServerError::new("{}", 0)))),
        cut(ChoiceEnd::Transport(Arc::new(TransportError::new(
            0, "reset",
        )))),
        cut(ChoiceEnd::Cancelled),
        cut(ChoiceEnd::TimedOut(timeout)),
        cut(ChoiceEnd::LimitExceeded(limit)),
        cut(ChoiceEnd::Lost),
        // A finish reason does not hide that the choice itself failed (F12).
        (
            Some("stop"),
            ChoiceEnd::ServerError(Arc::new(ServerError::new("{}", 0))),
            true,
        ),
    ]
}

/// A choice with one call, ended like this.
fn ended(
    kind: &'static str,
    arguments: &'static str,
    reason: Option<&'static str>,
    end: ChoiceEnd,
) -> Choice {
    let mut choice = Choice::new(ThinkTags::Off);
    let position = Position::default();
    let call = ToolCallUpdate {
        wire_index: Some(0),
        id: Some("c1".into()),
        kind: Some(kind.into()),
        name: Some("f".into()),
        arguments: Some(arguments.into()),
        ..ToolCallUpdate::default()
    };
    let update = Update {
        tool_calls: vec![call],
        finish_reason: reason.map(Into::into),
        ..Update::default()
    };
    choice
        .machine
        .apply(Delta::Update(&update), position, &mut choice.transcript);
    if reason.is_some() && end.is_error() {
        choice
            .machine
            .finish_with_error(end, position, &mut choice.transcript);
    } else {
        choice.machine.finish(end, position, &mut choice.transcript);
    }
    choice
}

/// The status of the call, which is the same in the event, the message and by ordinal.
#[track_caller]
fn status(choice: &Choice) -> CallStatus {
    let emitted =
        (0..choice.transcript.event_count()).filter_map(|seq| choice.transcript.event(seq));
    let emitted: Vec<CallStatus> = emitted
        .filter_map(|event| match event.event {
            Event::ToolCallDone { status, .. } => Some(status),
            _ => None,
        })
        .collect();
    let finished = choice.transcript.outcome().expect("it has ended").message;
    let message = choice.transcript.message();
    let statuses = [
        message.tool_calls[0].status,
        finished.tool_calls[0].status,
        choice
            .transcript
            .call(CallIndex(0))
            .expect("the call")
            .status,
    ];
    assert_eq!(
        statuses.map(|status| vec![status.expect("it has ended")]),
        [&emitted, &emitted, &emitted].map(Vec::clone)
    );
    emitted[0]
}

#[track_caller]
fn check(kind: &'static str, arguments: &'static str, whole: CallStatus, cut: CallStatus) {
    for (reason, end, is_cut) in ends() {
        let name = end.as_str();
        let choice = ended(kind, arguments, reason, end);
        let expected = if is_cut { cut } else { whole };
        assert_eq!(status(&choice), expected, "{arguments:?} {reason:?} {name}");
        let call = choice.transcript.call(CallIndex(0)).expect("the call");
        let usable = matches!(expected, CallStatus::Complete | CallStatus::EmptyAsObject);
        if kind == "function" {
            assert_eq!(
                call.parse::<Value>().is_ok(),
                usable,
                "{arguments:?} {reason:?} {name}"
            );
            assert_eq!(call.value().is_some(), usable);
        }
        if expected == CallStatus::Truncated {
            let problem = call.problem().expect("it was cut");
            assert_eq!(problem.offset, Some(arguments.len()));
        }
    }
}

#[test]
fn t23_j06_missing_arguments_are_an_empty_object_only_if_the_choice_was_not_cut() {
    check(
        "function",
        "",
        CallStatus::EmptyAsObject,
        CallStatus::Truncated,
    );
    check(
        "function",
        " \n",
        CallStatus::EmptyAsObject,
        CallStatus::Truncated,
    );
}

#[test]
fn j06_arguments_that_show_their_own_end_are_checked_by_their_text() {
    for whole in ["{\"a\":1}", "{}", "[1]", "\"a\"", "null", "12 "] {
        check(
            "function",
            whole,
            CallStatus::Complete,
            CallStatus::Complete,
        );
    }
    check(
        "function",
        "{\"a\":",
        CallStatus::Truncated,
        CallStatus::Truncated,
    );
    check(
        "function",
        "{\"a\":\"x\ny\"}",
        CallStatus::Repaired,
        CallStatus::Repaired,
    );
    check(
        "function",
        "{}{\"a\":1}",
        CallStatus::Repaired,
        CallStatus::Repaired,
    );
    check(
        "function",
        "{\"a\":1}{\"b\":2}",
        CallStatus::Concatenated,
        CallStatus::Concatenated,
    );
    check(
        "function",
        "{\"a\":1}<b>",
        CallStatus::Invalid,
        CallStatus::Invalid,
    );
}

#[test]
fn j06_a_number_and_a_text_do_not_show_their_end() {
    check(
        "function",
        "12",
        CallStatus::Complete,
        CallStatus::Truncated,
    );
    check(
        "function",
        "{} 12",
        CallStatus::Repaired,
        CallStatus::Truncated,
    );
    check(
        "custom",
        "free text",
        CallStatus::Complete,
        CallStatus::Truncated,
    );
    check("custom", "", CallStatus::Complete, CallStatus::Truncated);
}

/// What follows a call without arguments in a chat stream, by the end of the choice, and whether the call is then cut.
#[test]
fn d14_a_call_before_the_last_text_or_call_is_complete_at_the_token_limit() {
    let other =
        r#"{"tool_calls":[{"index":1,"id":"d","function":{"name":"g","arguments":"{\"a\":"}}]}"#;
    let own = r#"{"tool_calls":[{"index":0,"function":{"arguments":" "}}]}"#;
    let cases: [(&[&str], &str, CallStatus); 8] = [
        (&[other], "length", CallStatus::EmptyAsObject),
        (
            &[r#"{"content":"And"}"#],
            "MAX_TOKENS",
            CallStatus::EmptyAsObject,
        ),
        (
            &[r#"{"reasoning":"Hm"}"#],
            "length",
            CallStatus::EmptyAsObject,
        ),
        (&[r#"{"content":"\n"}"#], "length", CallStatus::Truncated),
        (&[], "length", CallStatus::Truncated),
        (&[other, own], "length", CallStatus::Truncated),
        // What a filter or a failure left out may be of any call.
        (&[other], "content_filter", CallStatus::Truncated),
        (&[other], "error", CallStatus::Truncated),
    ];
    for (follow, reason, expected) in cases {
        let mut demux = Demux::new(Config::default());
        let first =
            r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#;
        for delta in [first].iter().chain(follow) {
            let chunk = format!("{{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}");
            demux.feed(format!("data: {chunk}\n\n").as_bytes());
        }
        let chunk =
            format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        demux.feed(format!("data: {chunk}\n\ndata: [DONE]\n\n").as_bytes());
        let choice = demux.choice(ChoiceIndex(0)).expect("it has begun");
        let calls = choice.message().tool_calls;
        assert_eq!(calls[0].status, Some(expected), "{follow:?} {reason}");
        let is_usable = calls[0].parse::<Value>().is_ok();
        assert_eq!(is_usable, expected == CallStatus::EmptyAsObject);
        let mut ready = crate::ReadyCursor::new(CallIndex(0), crate::ReadyPolicy::NextCall);
        let ready = ready.poll(choice).expect("the choice has ended");
        assert_eq!(ready.is_ok(), is_usable, "{follow:?} {reason}");
        let other = calls.get(1).map(|call| call.status);
        assert!(matches!(other, None | Some(Some(CallStatus::Truncated))));
    }
}

#[test]
fn a_call_of_an_open_choice_has_no_arguments_yet_and_cannot_be_parsed() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n");
    let call = demux
        .choice(ChoiceIndex(0))
        .and_then(|choice| choice.call(CallIndex(0)));
    let call = call.expect("the call");
    assert_eq!((call.status, call.problem()), (None, None));
    let fault = call.parse::<Value>().unwrap_err();
    assert!(
        matches!(fault, crate::JsonErrorKind::Truncated { bytes: 0 }),
        "{fault}"
    );
}

#[test]
fn a_late_call_is_checked_with_the_end_before_it() {
    for (reason, expected) in [
        ("stop", CallStatus::EmptyAsObject),
        ("length", CallStatus::Truncated),
    ] {
        let mut choice = ended("function", "", Some(reason), ChoiceEnd::DoneWithoutFinish);
        let late = Update {
            tool_calls: vec![ToolCallUpdate {
                wire_index: Some(1),
                id: Some("c2".into()),
                name: Some("g".into()),
                ..ToolCallUpdate::default()
            }],
            ..Update::default()
        };
        choice
            .machine
            .apply_late(&late, Position::default(), &mut choice.transcript);
        let message = choice.transcript.message();
        assert_eq!(message.tool_calls[1].status, Some(expected), "{reason}");
    }
}

#[test]
fn a_call_of_a_lost_choice_has_a_status_too() {
    let mut transcript = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
    let mut machine = ChoiceMachine::new(Config::default());
    let update = Update {
        tool_calls: vec![ToolCallUpdate {
            id: Some("c1".into()),
            name: Some("f".into()),
            ..ToolCallUpdate::default()
        }],
        ..Update::default()
    };
    machine.apply(Delta::Update(&update), Position::default(), &mut transcript);
    transcript.lose(Position::default());
    let call = transcript.call(CallIndex(0)).expect("the call");
    assert_eq!(call.status, Some(CallStatus::Truncated));
    assert!(call.parse::<Value>().is_err());
}

#[test]
fn a_problem_names_what_cut_the_call() {
    let problem = |kind, arguments| {
        let choice = ended(
            kind,
            arguments,
            Some("length"),
            ChoiceEnd::DoneWithoutFinish,
        );
        let call = choice.transcript.call(CallIndex(0)).expect("the call");
        call.problem().expect("it was cut").to_string()
    };
    assert_eq!(
        problem("function", ""),
        "tool call 0: the choice was cut before any arguments arrived (at byte 0)"
    );
    assert_eq!(
        problem("function", "12"),
        "tool call 0: the choice was cut, so the arguments may be incomplete (at byte 2)"
    );
    assert_eq!(
        problem("custom", "text"),
        "tool call 0: the choice was cut, so the input may be incomplete (at byte 4)"
    );
    assert_eq!(
        problem("function", "{\"a\""),
        "tool call 0: the arguments end inside their JSON (at byte 4)"
    );
}
