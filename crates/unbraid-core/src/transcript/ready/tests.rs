//! The cursor on whole streams: late and early cursors agree, and lateness is a warning.

use super::*;
use crate::{CallStatus, ChoiceIndex, Config, Demux};

const POLICIES: [ReadyPolicy; 3] = [
    ReadyPolicy::AtEnd,
    ReadyPolicy::NextCall,
    ReadyPolicy::ValidJson,
];

fn chunk(delta: &str, finish: &str) -> String {
    let finish = if finish.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{finish}\"")
    };
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// `0+f` is the header of call `f` with index 0, `0 text` a fragment, `=stop` a finish reason, `done` the end mark.
fn event(step: &str) -> String {
    if step == "done" {
        return "data: [DONE]\n\n".to_owned();
    }
    if let Some(reason) = step.strip_prefix('=') {
        return chunk("{}", reason);
    }
    let (index, rest) = step.split_at(1);
    let call = match rest.split_at(1) {
        ("+", name) => {
            serde_json::json!({ "id": format!("c{index}"), "function": { "name": name } })
        }
        ("*", name) => serde_json::json!({ "function": { "name": name } }),
        (_, text) => serde_json::json!({ "function": { "arguments": text } }),
    };
    let mut call = call;
    call["index"] = index.parse::<i64>().expect("a digit").into();
    chunk(&serde_json::json!({ "tool_calls": [call] }).to_string(), "")
}

fn show(result: &Result<ToolCall, JsonErrorKind>) -> String {
    match result {
        Ok(call) => {
            let status = call.status.map_or("-", CallStatus::as_str);
            format!("{} {} {status}", call.name, call.arguments)
        }
        Err(JsonErrorKind::Choice(error)) => format!("!{}", error.end().as_str()),
        Err(JsonErrorKind::LateFragment { bytes, event_index }) => {
            format!("!late {bytes} in {event_index}")
        }
        Err(error) => format!("!{error}"),
    }
}

/// What a cursor of call 0 returns that is polled after each event, with the event; and what a late one returns.
fn results(steps: &[&str], policy: ReadyPolicy) -> (Vec<String>, String) {
    let mut demux = Demux::new(Config::default());
    let mut cursor = ReadyCursor::new(CallIndex(0), policy);
    let mut seen = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        demux.feed(event(step).as_bytes());
        let choice = demux.choice(ChoiceIndex(0)).expect("a choice");
        seen.extend(
            cursor
                .poll(choice)
                .map(|result| format!("{at}: {}", show(&result))),
        );
    }
    demux.finish();
    let choice = demux.choice(ChoiceIndex(0)).expect("a choice");
    seen.extend(
        cursor
            .poll(choice)
            .map(|result| format!("$: {}", show(&result))),
    );
    assert!(cursor.poll(choice).is_none(), "everything was returned");
    let late = ReadyCursor::new(CallIndex(0), policy)
        .poll(choice)
        .expect("a result");
    (seen, show(&late))
}

#[track_caller]
fn check(steps: &[&str], expected: [&[&str]; 3], warnings: &[&str]) {
    for (policy, expected) in POLICIES.into_iter().zip(expected) {
        let (seen, late) = results(steps, policy);
        assert_eq!(seen, expected, "{policy:?}");
        // A late cursor returns the last of it: the call, or what became of it.
        let last = seen.last().and_then(|last| last.split_once(": "));
        assert_eq!(last.map(|(_, last)| last), Some(&*late), "{policy:?}");
    }
    let mut demux = Demux::new(Config::default());
    steps
        .iter()
        .for_each(|step| demux.feed(event(step).as_bytes()));
    demux.finish();
    let found = demux
        .warnings()
        .iter()
        .map(ToString::to_string)
        .filter(|w| w.contains("(T2"))
        .collect::<Vec<_>>();
    assert_eq!(found, warnings);
}

#[test]
fn each_policy_finds_its_moment() {
    check(
        &["0+f", "0 {\"a\":1}", "1+g", "1 {}", "=tool_calls", "done"],
        [
            &["5: f {\"a\":1} complete"],
            &["2: f {\"a\":1} complete"],
            &["1: f {\"a\":1} complete"],
        ],
        &[],
    );
}

#[test]
fn the_last_call_is_ready_at_the_finish() {
    check(
        &["0+f", "0 {\"a\":", "0 1}", "=tool_calls", "done"],
        [
            &["4: f {\"a\":1} complete"],
            &["3: f {\"a\":1} complete"],
            &["2: f {\"a\":1} complete"],
        ],
        &[],
    );
}

#[test]
fn t23_no_arguments_are_complete_at_the_finish() {
    check(
        &["0+f", "1+g", "1 {}", "=tool_calls", "done"],
        [
            &["4: f  empty_as_object"],
            &["3: f  empty_as_object"],
            &["3: f  empty_as_object"],
        ],
        &[],
    );
}

#[test]
fn t27_a_call_that_goes_on_after_whole_json_is_late() {
    check(
        &["0+f", "0 {\"a\":1}", "0 0}", "=tool_calls", "done"],
        [
            &["4: !no JSON at byte 8"],
            &["4: !no JSON at byte 8"],
            &["1: f {\"a\":1} complete", "2: !late 7 in 2"],
        ],
        &["event 2: choice 0: more of tool call 0 arrived after whole arguments (T27)"],
    );
}

#[test]
fn t28_a_fragment_after_the_next_call_is_late() {
    check(
        &[
            "0+f",
            "0 {\"a\":1}",
            "1+g",
            "1 {}",
            "0 {\"b\":2}",
            "=tool_calls",
            "done",
        ],
        [
            &["6: !several JSON values in a row, the first too many at byte 7"],
            &["2: f {\"a\":1} complete", "4: !late 7 in 4"],
            &["1: f {\"a\":1} complete", "4: !late 7 in 4"],
        ],
        &[
            "event 4: choice 0: more of tool call 0 arrived after the next call or the finish reason (T28)",
        ],
    );
}

#[test]
fn t28_interleaved_calls_are_ready_once_they_are_whole() {
    check(
        &[
            "0+f",
            "0 {\"a\":",
            "1+g",
            "1 {\"b\":",
            "0 1}",
            "1 2}",
            "=tool_calls",
            "done",
        ],
        [
            &["7: f {\"a\":1} complete"],
            &["6: f {\"a\":1} complete"],
            &["4: f {\"a\":1} complete"],
        ],
        &[],
    );
}

#[test]
fn t35_a_fragment_after_the_finish_is_late() {
    check(
        &["0+f", "=tool_calls", "0 {\"a\":1}", "done"],
        [
            &["3: f {\"a\":1} complete"],
            &["1: f  empty_as_object", "2: !late 0 in 2"],
            &["1: f  empty_as_object", "2: !late 0 in 2"],
        ],
        &[
            "event 2: choice 0: more of tool call 0 arrived after the next call or the finish reason (T28)",
        ],
    );
}

#[test]
fn a_name_that_changes_after_the_call_was_ready_is_late() {
    check(
        &[
            "0+get",
            "0 {}",
            "1+g",
            "1 {}",
            "0*_all",
            "=tool_calls",
            "done",
        ],
        [
            &["6: get_all {} complete"],
            &["2: get {} complete", "4: !late 2 in 4"],
            &["2: get {} complete", "4: !late 2 in 4"],
        ],
        &[
            "event 4: choice 0: more of tool call 0 arrived after the next call or the finish reason (T28)",
        ],
    );
    // Before the moment it is the name of the call.
    check(
        &[
            "0+get",
            "0 {}",
            "0*_all",
            "1+g",
            "1 {}",
            "=tool_calls",
            "done",
        ],
        [
            &["6: get_all {} complete"],
            &["3: get_all {} complete"],
            &["3: get_all {} complete"],
        ],
        &[],
    );
}

#[test]
fn j06_a_cut_choice_makes_no_call_ready_that_is_not_whole() {
    check(
        &["0+f", "0 {\"a\":", "=length", "done"],
        [&["3: !the text ends inside its JSON, after 5 bytes"]; 3],
        &[],
    );
    check(&["0+f", "0 {\"a\":"], [&["$: !interrupted"]; 3], &[]);
    // What was whole before the cut stays ready.
    check(
        &["0+f", "0 {\"a\":1}", "1+g", "1 {"],
        [
            &["$: !interrupted"],
            &["2: f {\"a\":1} complete"],
            &["1: f {\"a\":1} complete"],
        ],
        &[],
    );
}

#[test]
fn f06_a_fragment_after_the_end_is_late_for_every_policy() {
    let steps = ["0+f", "0 {\"a\":1}", "=tool_calls", "done"];
    let mut demux = Demux::new(Config::default());
    steps[..3]
        .iter()
        .for_each(|step| demux.feed(event(step).as_bytes()));
    demux.feed(b"data: {\"choices\":[]}\n\n"); // an event that brings nothing for the choice, so it ends
    let choice = demux.choice(ChoiceIndex(0)).expect("a choice");
    assert!(choice.end().is_some());
    let mut cursors = POLICIES.map(|policy| ReadyCursor::new(CallIndex(0), policy));
    for cursor in &mut cursors {
        assert!(cursor.poll(choice).expect("ready").is_ok());
    }
    demux.feed(event("0 0}").as_bytes());
    let choice = demux.choice(ChoiceIndex(0)).expect("a choice");
    for cursor in &mut cursors {
        let error = cursor.poll(choice).expect("late").expect_err("late");
        assert_eq!(show(&Err(error)), "!late 7 in 4");
    }
    assert!(demux.warnings().iter().any(|warning| warning.code == "F6"));
}

#[test]
fn a_discarded_choice_is_an_error() {
    let mut demux = Demux::new(Config::default());
    demux.feed(event("0+f").as_bytes());
    let mut copy = demux.choice(ChoiceIndex(0)).expect("a choice").clone();
    let mut cursor = ReadyCursor::new(CallIndex(0), ReadyPolicy::NextCall);
    assert!(cursor.poll(&copy).is_none());
    copy.discard();
    assert!(cursor.poll(&copy).is_none(), "it is still open");
    copy.lose(crate::Position::default());
    assert!(matches!(
        cursor.poll(&copy),
        Some(Err(JsonErrorKind::Choice(_)))
    ));
    assert!(cursor.poll(&copy).is_none());
}

#[test]
fn t18_a_call_without_a_name_is_an_error_at_the_end() {
    check(
        &["0 {}", "=tool_calls", "done"],
        [&["2: !the call has no name"]; 3],
        &[],
    );
}

#[test]
fn a_large_call_is_read_in_portions() {
    let mut demux = Demux::new(Config::default());
    demux.feed(event("0+f").as_bytes());
    demux.feed(event("0 {\"a\":\"").as_bytes());
    (0..100).for_each(|_| demux.feed(event("0 0123456789").as_bytes()));
    demux.feed(event("0 \"}").as_bytes());
    let choice = demux.choice(ChoiceIndex(0)).expect("a choice");
    let mut cursor = ReadyCursor::new(CallIndex(0), ReadyPolicy::ValidJson);
    let mut portions = 1;
    while !cursor.advance(choice, 99) {
        portions += 1;
    }
    assert_eq!(portions, 11);
    assert_eq!(
        cursor
            .report(choice)
            .expect("ready")
            .expect("whole")
            .arguments
            .len(),
        1008
    );
}
