mod closes;
mod counted;
mod errors;
mod state;

use crate::{
    ChoiceEnd, ChoiceIndex, Config, Demux, Event, FinishPolicy, StreamError, TransportError,
};

/// The state of choice 0 when the input arrives. Choice 1 is open.
#[derive(Debug, Clone, Copy)]
enum At {
    Open,
    Finished,
    Ended,
    /// Ended by the caller.
    Discarding,
}

#[derive(Debug, Clone, Copy)]
enum Input {
    Delta,
    Finish,
    ErrorOfChoice,
    ErrorOfStream,
    Transport,
    Cancel,
    Idle,
    Sibling,
    Done,
    Eof,
}

const CHOICE: ChoiceIndex = ChoiceIndex(0);

fn chunk(index: u32, fields: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":{index},{fields}}}]}}\n\n")
}

fn demux(at: At, policy: FinishPolicy) -> Demux {
    let mut demux = Demux::new(Config {
        finish_policy: policy,
        ..Config::default()
    });
    demux.feed(chunk(1, "\"delta\":{\"content\":\"x\"}").as_bytes());
    demux.feed(chunk(0, "\"delta\":{\"content\":\"a\"}").as_bytes());
    match at {
        At::Open => {}
        At::Finished => give(&mut demux, "\"finish_reason\":\"stop\""),
        At::Ended => {
            give(&mut demux, "\"finish_reason\":\"stop\"");
            apply(&mut demux, Input::Sibling);
        }
        At::Discarding => demux.cancel(CHOICE),
    }
    while demux.next_event().is_some() {}
    demux
}

fn give(demux: &mut Demux, fields: &str) {
    demux.feed(chunk(0, fields).as_bytes());
}

fn apply(demux: &mut Demux, input: Input) {
    match input {
        Input::Delta => give(demux, "\"delta\":{\"content\":\"b\"}"),
        Input::Finish => give(demux, "\"delta\":{},\"finish_reason\":\"length\""),
        Input::ErrorOfChoice => give(demux, "\"delta\":{},\"error\":{\"code\":9}"),
        Input::ErrorOfStream => demux.feed(b"data: {\"error\":\"boom\"}\n\n"),
        Input::Transport => {
            demux.abort(StreamError::Transport(
                TransportError::new(9, "reset").into(),
            ));
        }
        Input::Cancel => demux.cancel(CHOICE),
        Input::Idle => demux.handle_idle(),
        Input::Sibling => demux.feed(chunk(1, "\"delta\":{\"content\":\"y\"}").as_bytes()),
        Input::Done => demux.feed(b"data: [DONE]\n\n"),
        Input::Eof => demux.finish(),
    }
}

/// The new events of choice 0 and of the stream, then the choice's text, finish reason and end.
fn summary(demux: &mut Demux) -> String {
    let mut words = Vec::new();
    while let Some(event) = demux.next_event() {
        match (event.choice, event.event) {
            (Some(CHOICE), Event::Warning(warning)) => words.push(warning.code.to_owned()),
            (Some(CHOICE), Event::End(end)) => words.push(format!("end:{}", end.as_str())),
            (Some(CHOICE), event) => words.push(event.as_str().to_owned()),
            (None, Event::Warning(warning)) => words.push(format!("-{}", warning.code)),
            (None, event) => words.push(format!("-{}", event.as_str())),
            (Some(_), _) => {}
        }
    }
    let choice = demux.choice(CHOICE).expect("it was opened");
    let reason = choice.finish_reason().map_or("-", |reason| reason.as_str());
    let end = choice.end().map_or("-", ChoiceEnd::as_str);
    format!(
        "{} | {} {reason} {end}",
        words.join(" "),
        choice.message().content
    )
}

#[track_caller]
fn check(at: At, input: Input, expected: &str) {
    check_with(FinishPolicy::NextEvent, at, input, expected);
}

#[track_caller]
fn check_with(policy: FinishPolicy, at: At, input: Input, expected: &str) {
    let mut demux = demux(at, policy);
    apply(&mut demux, input);
    assert_eq!(summary(&mut demux), expected, "{policy:?} {at:?} {input:?}");
}

#[test]
fn an_open_choice_accepts_everything() {
    check(At::Open, Input::Delta, "content.delta | ab - -");
    check(At::Open, Input::Finish, "finish | a length -");
    check(
        At::Open,
        Input::ErrorOfChoice,
        "content.done end:server_error | a - server_error",
    );
    check(
        At::Open,
        Input::ErrorOfStream,
        "content.done end:server_error -error | a - server_error",
    );
    check(
        At::Open,
        Input::Transport,
        "content.done end:transport -error | a - transport",
    );
    check(
        At::Open,
        Input::Cancel,
        "content.done end:cancelled | a - cancelled",
    );
    check(At::Open, Input::Idle, " | a - -");
    check(At::Open, Input::Sibling, " | a - -");
    check(
        At::Open,
        Input::Done,
        "content.done end:done_without_finish | a - done_without_finish",
    );
    check(
        At::Open,
        Input::Eof,
        "content.done end:interrupted | a - interrupted",
    );
}

#[test]
fn a_finished_choice_waits_for_the_next_event() {
    check(At::Finished, Input::Delta, "F6 content.delta | ab stop -");
    check(
        At::Finished,
        Input::Finish,
        "F5 content.done end:finished | a stop finished",
    );
    check(
        At::Finished,
        Input::ErrorOfChoice,
        "content.done end:server_error | a stop server_error",
    );
    check(
        At::Finished,
        Input::ErrorOfStream,
        "content.done end:finished -error | a stop finished",
    );
    check(
        At::Finished,
        Input::Transport,
        "content.done end:finished -error | a stop finished",
    );
    check(
        At::Finished,
        Input::Cancel,
        "content.done end:finished | a stop finished",
    );
    check(
        At::Finished,
        Input::Idle,
        "content.done end:finished | a stop finished",
    );
    check(
        At::Finished,
        Input::Sibling,
        "content.done end:finished | a stop finished",
    );
    check(
        At::Finished,
        Input::Done,
        "content.done end:finished | a stop finished",
    );
    check(
        At::Finished,
        Input::Eof,
        "content.done end:finished | a stop finished",
    );
}

#[test]
fn an_ended_choice_keeps_late_updates_only() {
    check(At::Ended, Input::Delta, "-F6 | ab stop finished");
    check(At::Ended, Input::Finish, "-F5 | a stop finished");
    check(At::Ended, Input::ErrorOfChoice, " | a stop finished");
    check(At::Ended, Input::ErrorOfStream, "-error | a stop finished");
    check(At::Ended, Input::Transport, "-error | a stop finished");
    check(At::Ended, Input::Cancel, " | a stop finished");
    check(At::Ended, Input::Idle, " | a stop finished");
    check(At::Ended, Input::Sibling, " | a stop finished");
    check(At::Ended, Input::Done, " | a stop finished");
    check(At::Ended, Input::Eof, " | a stop finished");
}

#[test]
fn a_cancelled_choice_keeps_nothing() {
    check(At::Discarding, Input::Delta, " | a - cancelled");
    check(At::Discarding, Input::Finish, " | a - cancelled");
    check(At::Discarding, Input::ErrorOfChoice, " | a - cancelled");
    check(
        At::Discarding,
        Input::ErrorOfStream,
        "-error | a - cancelled",
    );
    check(At::Discarding, Input::Transport, "-error | a - cancelled");
    check(At::Discarding, Input::Cancel, " | a - cancelled");
    check(At::Discarding, Input::Idle, " | a - cancelled");
    check(At::Discarding, Input::Sibling, " | a - cancelled");
    check(At::Discarding, Input::Done, " | a - cancelled");
    check(At::Discarding, Input::Eof, " | a - cancelled");
}

#[test]
fn at_finish_ends_a_choice_with_its_reason() {
    let check = |input, expected| check_with(FinishPolicy::AtFinish, At::Open, input, expected);
    check(Input::Delta, "content.delta | ab - -");
    check(
        Input::Finish,
        "finish content.done end:finished | a length finished",
    );
    check(
        Input::ErrorOfChoice,
        "content.done end:server_error | a - server_error",
    );
    check(Input::Sibling, " | a - -");
    let check = |input, expected| check_with(FinishPolicy::AtFinish, At::Finished, input, expected);
    check(Input::Delta, "-F6 | ab stop finished");
    check(Input::Finish, "-F5 | a stop finished");
    check(Input::ErrorOfStream, "-error | a stop finished");
    check(Input::Eof, " | a stop finished");
}

#[test]
fn at_stream_end_leaves_a_finished_choice_open() {
    let check =
        |input, expected| check_with(FinishPolicy::AtStreamEnd, At::Finished, input, expected);
    check(Input::Delta, "F6 content.delta | ab stop -");
    check(Input::Finish, "F5 | a stop -");
    check(
        Input::ErrorOfChoice,
        "content.done end:server_error | a stop server_error",
    );
    check(
        Input::ErrorOfStream,
        "content.done end:finished -error | a stop finished",
    );
    check(
        Input::Transport,
        "content.done end:finished -error | a stop finished",
    );
    check(Input::Cancel, "content.done end:finished | a stop finished");
    check(Input::Idle, " | a stop -");
    check(Input::Sibling, " | a stop -");
    check(Input::Done, "content.done end:finished | a stop finished");
    check(Input::Eof, "content.done end:finished | a stop finished");
}

#[test]
fn e29_e12_more_choices_than_requested_and_indices_that_count_tokens_are_reported() {
    let codes = |expect_choices, indices: &[u32]| {
        let mut demux = Demux::new(Config {
            expect_choices,
            ..Config::default()
        });
        for index in indices {
            demux.feed(chunk(*index, "\"delta\":{\"content\":\"a\"}").as_bytes());
        }
        let last = indices.last().copied().unwrap_or_default();
        demux.feed(chunk(last, "\"delta\":{},\"finish_reason\":\"eos\"").as_bytes());
        demux.finish();
        demux.warnings().iter().map(|w| w.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(None, &[0, 1, 2, 3, 4, 5]), ["E12"]);
    assert_eq!(codes(None, &[0, 1, 2, 3]), [""; 0]);
    assert_eq!(codes(None, &[0, 1, 2, 3, 4, 5, 0]), [""; 0]);
    assert_eq!(codes(None, &[3, 1, 0, 2, 4]), [""; 0]);
    assert_eq!(codes(Some(1), &[0, 1, 2, 3, 4, 5]), [""; 0]);
    assert_eq!(codes(Some(2), &[0, 1, 2]), ["E29"]);
    assert_eq!(codes(Some(8), &[0, 1, 2, 3, 4, 5]), ["E30"]);
}

#[test]
fn u01_bare_usage_is_summed_only_directly_after_each_finish() {
    let usage = |tokens: u32| {
        format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{tokens},\"total_tokens\":{}}}}}\n\n",
            tokens + 5
        )
    };
    let finish = |index| chunk(index, "\"delta\":{},\"finish_reason\":\"stop\"");
    let text = |index| chunk(index, "\"delta\":{\"content\":\"a\"}");
    let total = |events: &[String]| {
        let mut demux = Demux::new(Config::default());
        demux.feed(events.concat().as_bytes());
        let usage = demux.usage();
        (
            usage.completion_tokens,
            usage.total_tokens,
            usage.per_choice.len(),
        )
    };
    assert_eq!(
        total(&[finish(0), usage(2), finish(1), usage(3)]),
        (Some(5), Some(10), 2)
    );
    assert_eq!(
        total(&[finish(0), finish(1), usage(5)]),
        (Some(5), Some(10), 0)
    );
    assert_eq!(
        total(&[finish(0), usage(2), finish(1), usage(3), usage(6)]),
        (Some(6), Some(11), 0)
    );
    assert_eq!(
        total(&[finish(0), text(1), usage(2), finish(1), usage(4)]),
        (Some(4), Some(9), 0)
    );
}

#[test]
fn u03_usage_is_summed_only_beside_each_finish() {
    let usage = |tokens: u32| {
        format!(
            "\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{tokens},\"total_tokens\":{}}}",
            tokens + 5
        )
    };
    let event = |index: u32, finish: &str, usage: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":{index},\"text\":\"a\",\"finish_reason\":{finish}}}],{usage}}}\n\n"
        )
    };
    let text = |index, tokens| event(index, "null", &usage(tokens));
    let finish = |index, tokens| event(index, "\"stop\"", &usage(tokens));
    let silent = |index| event(index, "\"stop\"", "\"usage\":null");
    let bare = |tokens| format!("data: {{\"choices\":[],{}}}\n\n", usage(tokens));
    let total = |events: &[String]| {
        let mut demux = Demux::new(Config::default());
        demux.feed(events.concat().as_bytes());
        let usage = demux.usage();
        (
            usage.completion_tokens,
            usage.total_tokens,
            usage.per_choice.len(),
        )
    };
    let each = (Some(5), Some(10), 2);
    assert_eq!(total(&[finish(0, 2), finish(1, 3)]), each);
    let all = (Some(5), Some(10), 0);
    assert_eq!(total(&[silent(0), finish(1, 5)]), all);
    assert_eq!(total(&[text(1, 1), finish(0, 2), finish(1, 5)]), all);
    assert_eq!(total(&[finish(0, 2), finish(1, 3), bare(5)]), all);
}
