//! The table of the state machine: (kind, policy, inputs) to the input at which the call is ready, or late.

use super::*;

/// `{"a":1}` is arguments, `>` the next call, `!` a finish, `%` a finish that means a cut, `.` the end.
fn inputs(script: &str) -> Vec<Input<'_>> {
    let input = |part| match part {
        ">" => Input::NextCall,
        "!" => Input::Finish { cut: false },
        "%" => Input::Finish { cut: true },
        "." => Input::End,
        "_" => Input::Arguments(" \n"),
        text => Input::Arguments(text),
    };
    script.split(' ').map(input).collect()
}

/// Checks at which input each policy, from the strictest on, makes the call ready (`3`), and at which it is late (`3-5`).
#[track_caller]
fn check(kind: CallKind, script: &str, expected: [&str; 3]) {
    let policies = [
        ReadyPolicy::AtEnd,
        ReadyPolicy::NextCall,
        ReadyPolicy::ValidJson,
    ];
    let moments = policies.map(|policy| {
        let mut machine = ReadyMachine::new(policy, kind);
        let (mut moments, mut last) = (Vec::new(), ReadyState::Waiting);
        for (at, input) in inputs(script).into_iter().enumerate() {
            machine.apply(input);
            if machine.state() != last {
                last = machine.state();
                moments.push(at.to_string());
            }
        }
        moments.join("-")
    });
    assert_eq!(moments, expected, "{script}");
}

#[track_caller]
fn function(script: &str, expected: [&str; 3]) {
    check(CallKind::Function, script, expected);
    check(CallKind::LegacyFunction, script, expected);
}

#[test]
fn each_policy_includes_the_moments_of_the_one_before() {
    function(r#"{"a": 1} > ! ."#, ["4", "2", "1"]);
    function(r#"{"a": 1} ! ."#, ["3", "2", "1"]);
    function(r#"{"a": 1} ."#, ["2", "2", "1"]);
}

#[test]
fn t28_a_moment_counts_only_if_the_arguments_are_whole() {
    function(r#"{"a": > 1} ! ."#, ["4", "3", "2"]);
    function(r#"{"a": > 1} > ! ."#, ["5", "3", "2"]);
    function(r#"{"a": ! 1} ."#, ["3", "3", "2"]);
    function(r#"{"a": % ."#, ["2", "2", "2"]);
    function(r#"{"a":1}{ > ! ."#, ["3", "3", "3"]);
    function("oops > ! .", ["3", "3", "3"]);
}

#[test]
fn t23_a_call_without_arguments_waits_for_a_finish_that_does_not_mean_a_cut() {
    function("> ! .", ["2", "1", "1"]);
    function("> % .", ["2", "2", "2"]);
    function("_ > ! .", ["3", "2", "2"]);
    function("> .", ["1", "1", "1"]);
}

#[test]
fn t22_an_empty_object_may_be_a_placeholder() {
    function(r#"{} {"a":1} > ! ."#, ["4", "2", "1"]);
    function("{ } > ! .", ["4", "2", "2"]);
    function(r#"{} > {"a":1} ! ."#, ["4", "1-2", "1-2"]);
}

#[test]
fn t27_text_after_whole_arguments_is_late() {
    function(r#"{"a":1} {"b":2} > ! ."#, ["4", "4", "0-1"]);
    function(r#"{"a":1} > 0} ! ."#, ["4", "1-2", "0-2"]);
    function(r#"{"a":1} ! 0} ."#, ["3", "1-2", "0-2"]);
    function(r#"{"a":1} > ! . 0}"#, ["3-4", "1-4", "0-4"]);
    function(r#"! {"a":1} ."#, ["2", "0-1", "0-1"]);
}

#[test]
fn white_space_after_whole_json_is_not_late() {
    function(r#"{"a":1} _ > _ ! _ . _"#, ["6", "2", "0"]);
    function("! _ .", ["2", "0", "0"]);
    function("{\"a\":1} > \u{a0} .", ["3", "1-2", "0-2"]);
}

#[test]
fn only_an_object_is_valid_json_of_a_call() {
    function("[1] > .", ["2", "1", "1"]);
    function("null > .", ["2", "1", "1"]);
    function("\"a\" > .", ["2", "1", "1"]);
}

#[test]
fn j07_a_number_at_the_end_may_go_on() {
    function("12 > ! .", ["3", "2", "2"]);
    function("12 > 3 ! .", ["4", "3", "3"]);
    function("12 % .", ["2", "2", "2"]);
}

#[test]
fn t31_the_text_of_a_custom_tool_is_whole_at_the_next_call() {
    let custom = |script, expected| check(CallKind::Custom, script, expected);
    custom("ls > ! .", ["3", "1", "1"]);
    custom("ls ! .", ["2", "1", "1"]);
    custom("ls % .", ["2", "2", "2"]);
    custom("> ! .", ["2", "1", "1"]);
    custom("ls > _ .", ["3", "1-2", "1-2"]);
    custom(r#"{"a":1} ! ."#, ["2", "1", "1"]);
}

#[test]
fn a_call_counts_its_bytes_until_it_is_ready() {
    let mut machine = ReadyMachine::new(ReadyPolicy::NextCall, CallKind::Function);
    inputs(r#"{"a": 1} > 23"#)
        .into_iter()
        .for_each(|input| machine.apply(input));
    assert_eq!((machine.state(), machine.bytes()), (ReadyState::Late, 7));
}
