//! Framing, choices, text, errors and usage.

use super::{check, check_deltas, check_with};
use crate::fixture::Options;

#[test]
fn two_choices_are_separated() {
    check(
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"role\":\"assistant\",\"content\":\"b\"}}]}\r\n\r\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},{\"index\":1,\"delta\":{\"content\":\"B\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\r\r\
         data: {\"choices\":[],\"usage\":{\"total_tokens\":3,\"prompt_tokens\":null}}\n\ndata: [DONE]\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"}}]}\n\n",
        &[
            "c0 text \"a\"",
            "c0 finish stop",
            "c1 text \"bB\"",
            "usage {\"total_tokens\":3}",
            "done",
        ],
    );
}

#[test]
fn an_index_is_a_number_a_string_or_a_position() {
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}},{\"index\":null,\"text\":\"b\"}]}\n\n\
         data: {\"choices\":[{\"index\":\"1\",\"text\":\"c\"},{\"index\":-1,\"text\":\"x\"},{\"index\":1.0,\"text\":\"x\"}]}\n\n\
         data: {\"choices\":[{\"index\":4294967296,\"text\":\"x\"}]}\n\n",
        &["c0 text \"a\"", "c1 text \"bc\""],
    );
}

#[test]
fn one_expected_choice_folds_every_index() {
    let options = Options {
        expect_choices: Some(1),
        ..Options::default()
    };
    let stream = "data: {\"choices\":[{\"index\":7,\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"index\":8,\"text\":\"b\"}]}\n\n";
    check_with(&options, stream, &["c0 text \"ab\""]);
}

#[test]
fn strict_mode_rejects_violations_of_the_format() {
    let options = Options {
        strict: true,
        ..Options::default()
    };
    check_with(
        &options,
        "data: {\"choices\":[{\"text\":\"a\"}]}\n\n: yes\n \n\nno\n\n",
        &["c0 text \"a\"", "refused"],
    );
    check_with(
        &options,
        "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\n\n",
        &["c0 text \"a\"", "refused"],
    );
    check_with(
        &options,
        "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n",
        &["c0 text \"a\"", "done"],
    );
}

#[test]
fn damaged_frames_are_read_as_far_as_possible() {
    let a = "{\"choices\":[{\"text\":\"a\"}]}";
    check(
        &format!("data: {a}\ndata: null\ndata: {a}\n\n"),
        &["c0 text \"aa\""],
    );
    check(&format!("data: {a}{a}\n\n"), &["c0 text \"aa\""]);
    check(
        &format!("data: {{\"chodata: {a}\n\n"),
        &["c0 text \"a\"", "lost 1"],
    );
    check(&format!("{a}\n{a}\n"), &["c0 text \"aa\""]);
    check(&format!("[{a},\n{a}]"), &["c0 text \"aa\""]);
    check(
        &format!("data: {a}\ndata: [DONE]"),
        &["c0 text \"a\"", "done"],
    );
    check(&format!("data: {a}\n\ndata: {{\"choi"), &["c0 text \"a\""]);
    check(
        "data: : busy\n\ndata: ping\n\ndata: \"\"\n\ndata:\n\n[DONE]\n",
        &["done"],
    );
    check("event: ping\ndata: {\"detail\":1}\n\n", &[]);
    check(
        "event: ping\ndata: {\"error\":1}\n\n",
        &["error {\"error\":1}"],
    );
    check("event: ping\ndata: [DONE]\n\n", &["done"]);
}

#[test]
fn surrogate_halves_of_a_field_are_joined() {
    check_deltas(
        &[
            r#"{"content":"a\ud83d","thinking":"\ud83c"}"#,
            r#"{"content":"\ude42\ude42","thinking":"\udf88\ud83d"}"#,
        ],
        &["c0 text \"a🙂\u{fffd}\"", "c0 reasoning \"🎈\u{fffd}\""],
    );
}

#[test]
fn invalid_json_is_repaired() {
    check_deltas(
        &["{\"content\":\"a\tb\\\\\",\"x\":NaN,\"y\":[-Infinity]}"],
        &["c0 text \"a\\tb\\\\\""],
    );
}

#[test]
fn reasoning_counts_once() {
    check_deltas(
        &[
            r#"{"reasoning_details":[{"text":"a"},{"summary":"b"}]}"#,
            r#"{"reasoning_content":"","reasoning":"c","reasoning_details":[{"text":"c"}]}"#,
            r#"{"reasoning_details":[{"text":"d"}],"content":[{"type":"text","text":"e"}]}"#,
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"f"}]}],"refusal":"g"}"#,
        ],
        &["c0 text \"e\"", "c0 reasoning \"abcf\"", "c0 refusal \"g\""],
    );
}

#[test]
fn a_message_replaces_the_delta_only_while_the_choice_is_empty() {
    let chunk =
        "data: {\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    check(
        &format!("{chunk}{chunk}"),
        &["c0 text \"a\"", "c0 finish stop"],
    );
}

#[test]
fn an_error_follows_the_choices_of_its_chunk_and_ends_the_stream() {
    let text = "{\"choices\":[{\"text\":\"a\"}]";
    for error in [
        "\"error\":\"x\"",
        "\"object\":\"error\"",
        "\"base_resp\":{\"status_code\":2}",
    ] {
        check(
            &format!("data: {text},{error}}}\n\ndata: {text}}}\n\ndata: [DONE]\n\n"),
            &["c0 text \"a\"", &format!("error {text},{error}}}")],
        );
    }
    for alone in [
        "{\"detail\":\"x\"}",
        "{\"success\":false}",
        "{\"code\":5,\"msg\":\"x\"}",
        "{\"error_message\":\"x\"}",
    ] {
        check(
            &format!("data: [{alone}]\n\n"),
            &[&format!("error {alone}")],
        );
    }
    check(
        "data: {\"error\":null,\"code\":0,\"msg\":\"\",\"success\":true}\n\n",
        &[],
    );
    check("event: error\ndata: boom\n\n", &["error \"boom\""]);
    check(
        "data: {\"par\nevent: error\ndata: {\"m\":1}\n\n",
        &["error {\"m\":1}", "lost 1"],
    );
}

#[test]
fn usage_is_the_last_value_of_each_field_by_priority_of_place() {
    check(
        "data: {\"usage\":{\"prompt_tokens\":\"5\",\"d\":{\"a\":1}},\"x_groq\":{\"usage\":{\"prompt_tokens\":1}}}\n\n\
         data: {\"usage\":{\"completion_tokens\":2.0,\"total_tokens\":-7,\"d\":{\"a\":null,\"b\":2}}}\n\ndata: {\"usage\":null}\n\n",
        &["usage {\"prompt_tokens\":5,\"d\":{\"a\":1,\"b\":2},\"completion_tokens\":2}"],
    );
    check(
        "data: {\"x_groq\":{\"usage\":{\"prompt_tokens\":1}}}\n\n",
        &["usage {\"prompt_tokens\":1}"],
    );
}

#[test]
fn usage_of_each_choice_is_added_up_with_one_prompt() {
    let usage = |n| {
        format!(
            "\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{n},\"total_tokens\":{}}}",
            n + 5
        )
    };
    let all = "usage {\"prompt_tokens\":5,\"completion_tokens\":9,\"total_tokens\":14}";
    let fin = |i, more: &str| {
        format!("data: {{\"choices\":[{{\"index\":{i},\"finish_reason\":\"stop\"{more}}}]}}\n\n")
    };
    let alone = |n| format!("data: {{\"choices\":[],{}}}\n\n", usage(n));

    // Inside the choices, and in the form that llama.cpp sends.
    let finishes = [
        "c0 text \"\"",
        "c0 finish stop",
        "c1 text \"\"",
        "c1 finish stop",
    ];
    let inside = |n| format!(",{}", usage(n));
    check(
        &[fin(0, &inside(2)), fin(1, &inside(7))].concat(),
        &[&finishes[..], &[all]].concat(),
    );
    check(
        &[fin(1, ""), alone(2), fin(0, ""), alone(7)].concat(),
        &[&finishes[..], &[all]].concat(),
    );

    // The report of a choice that comes again changes nothing. Other usage that does not follow a finish means that each
    // report is a running total.
    let each = [fin(1, ""), alone(2), fin(0, ""), alone(7)].concat();
    check(
        &(each.clone() + &alone(7)),
        &[&finishes[..], &[all]].concat(),
    );
    let last = "usage {\"prompt_tokens\":5,\"completion_tokens\":8,\"total_tokens\":13}";
    check(&(each + &alone(8)), &[&finishes[..], &[last]].concat());
}
