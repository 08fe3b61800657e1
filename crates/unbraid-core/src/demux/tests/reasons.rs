//! Second answers and contradicting finish reasons, before and after the end of a choice.

use super::{DONE, calls, check, chunk};

#[test]
fn e13_two_answers_under_one_index_cause_a_warning_and_repeated_roles_do_not() {
    let role = chunk("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
    let text = chunk("\"delta\":{\"content\":\"a\"}");
    let both = chunk("\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}");
    let finish = chunk("\"delta\":{},\"finish_reason\":\"stop\"");
    check(
        &(role.clone() + &role + &text + &finish + &finish + DONE),
        &["c0 \"a\" finished", "E13"],
    );
    check(
        &(both.clone() + &both + &finish + &finish + DONE),
        &["c0 \"aa\" finished"],
    );
    check(
        &(role + &text + &finish + &finish + DONE),
        &["c0 \"a\" finished"],
    );
}

#[test]
fn e13_f05_late_roles_and_reasons_cause_the_same_warnings() {
    let role = chunk("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
    let text = chunk("\"delta\":{\"content\":\"a\"}");
    let stop = chunk("\"delta\":{},\"finish_reason\":\"stop\"");
    let length = chunk("\"delta\":{},\"finish_reason\":\"length\"");
    let answer = role + &text + &stop;
    let shared = ["c0 \"aa\" finished", "F6", "E13"];
    check(&(answer.clone() + &answer + DONE), &shared);
    let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n";
    let ended = answer.clone() + usage;
    check(&(ended.clone() + &answer + DONE), &shared);
    let differs = ["c0 \"a\" finished", "F5"];
    check(&(ended.clone() + &length + DONE), &differs);
    check(&(ended + &stop + DONE), &["c0 \"a\" finished"]);
}

#[test]
fn f09_t22_contradicting_reasons_and_arguments_cause_warnings() {
    let finish = chunk("\"delta\":{},\"finish_reason\":\"tool_calls\"");
    check(&(finish.clone() + DONE), &["c0 \"\" finished", "F9"]);
    let call = calls(
        "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}{\\\"b\\\":1}\"}}",
    );
    check(
        &(call + &finish + DONE),
        &["c0 \"\" f#a({}{\"b\":1}) finished", "T22"],
    );
}
