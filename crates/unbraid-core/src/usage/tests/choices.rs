//! Reports of single choices, of several choices, and of several prompts.

use serde_json::{Value, json};

use super::{DONE, check, check_for, chunk, delta, finish, usage, warned, words};

#[test]
fn u15_usage_of_one_choice_where_several_finish_is_kept_beside_an_estimate() {
    // mistral.rs: all choices finish in one chunk, with the usage of the last one.
    let last = chunk(&json!([finish(0), finish(1), finish(2)]), &usage(5, 4));
    for end in [DONE, ""] {
        let demux = check(
            &(words(3) + &last + end),
            "5 4(~9) 9 [0:~3, 1:~3, 2:4] mixed",
        );
        assert!(warned(&demux));
        assert_eq!(demux.aggregate()["usage"], usage(5, 4));
    }
}

#[test]
fn u16_usage_in_the_chunks_of_several_finishes_is_added_up() {
    let stream = words(4)
        + &chunk(&json!([finish(0), finish(1)]), &usage(5, 4))
        + &chunk(&json!([finish(2), finish(3)]), &usage(5, 3));
    let demux = check(&stream, "5 7(~12) 12 [0:~3, 1:4, 2:~3, 3:3] mixed");
    assert!(warned(&demux));
    assert_eq!(demux.aggregate()["usage"], usage(5, 7));

    let one_each = words(2)
        + &chunk(&json!([delta(1, " b"), finish(0)]), &usage(5, 4))
        + &chunk(&json!([finish(1)]), &usage(5, 6));
    assert!(!warned(&check(&one_each, "5 10 15 [0:4, 1:6] reported")));
}

#[test]
fn u16_a_report_of_a_choice_that_comes_again_is_not_one_of_all() {
    let bare = |tokens| chunk(&json!([]), &usage(5, tokens));
    let ended = |index| chunk(&json!([finish(index)]), &Value::Null);
    let expected = "5 7 12 [0:3, 1:4] reported";
    let once = words(2) + &ended(0) + &bare(3) + &ended(1) + &bare(4);
    check(&once, expected);
    check(&(once + &bare(4) + &bare(3)), expected);
    let early = words(2) + &ended(0) + &bare(3) + &bare(3) + &ended(1) + &bare(4);
    check(&early, expected);
    let total = words(2) + &ended(0) + &bare(3) + &ended(1) + &bare(4) + &bare(7);
    check(&total, "5 7 12 [0:~3, 1:~3] mixed");
}

#[test]
fn u16_a_cut_stream_adds_the_counts_of_choices_without_a_report() {
    let stream = words(3) + &chunk(&json!([finish(0), finish(1)]), &usage(5, 4));
    let demux = check(&stream, "5 ~10 ~15 [0:~3, 1:4, 2:~3] mixed");
    assert!(!warned(&demux));
}

#[test]
fn usage_of_all_choices_where_several_finish_is_kept() {
    let stream = words(2) + &chunk(&json!([finish(0), finish(1)]), &usage(5, 6)) + DONE;
    assert!(!warned(&check(&stream, "5 6 11 [0:~3, 1:~3] mixed")));
}

/// llama.cpp: text completions of two prompts of equal length.
fn text(index: u32, tokens: &Value) -> String {
    let choice = |text, reason| json!([{ "index": index, "text": text, "finish_reason": reason }]);
    chunk(&choice(" a", Value::Null), &Value::Null) + &chunk(&choice("", "stop".into()), tokens)
}

#[test]
fn e15_each_prompt_of_a_list_is_counted_once() {
    let two = text(0, &usage(3, 2)) + &text(1, &usage(3, 4));
    let list = json!({ "prompt": ["a b c", "d e f"] });
    let demux = check_for(&list, &two, "6 6 12 [0:2, 1:4] reported");
    assert_eq!(demux.aggregate()["usage"], usage(6, 6));
    check(&two, "3 6 9 [0:2, 1:4] reported");

    let four = two + &text(2, &usage(4, 1)) + &text(3, &usage(4, 1));
    let list = json!({ "prompt": ["a b c", "d e f g"], "n": 2 });
    check_for(&list, &four, "7 8 15 [0:2, 1:4, 2:1, 3:1] reported");
}

#[test]
fn e15_prompts_of_different_length_are_a_list() {
    let tgi = text(0, &usage(6, 2)) + &text(1, &usage(5, 4)) + &text(2, &usage(8, 1));
    check(&tgi, "19 7 26 [0:2, 1:4, 2:1] reported");
}

#[test]
fn e15_a_prompt_that_was_not_reported_is_counted() {
    let list = json!({ "prompt": ["a b c", "d e f g", "h"] });
    let open = chunk(&json!([{ "index": 2, "text": " a" }]), &Value::Null);
    let cut = open + &text(0, &usage(3, 2)) + &text(1, &usage(4, 4));
    check_for(&list, &cut, "~8 ~7 ~15 [0:2, 1:4, 2:~1] mixed");
}

#[test]
fn details_of_single_choices_are_added_up() {
    let reported = |prompt: u64, completion: u64, cached: u64| {
        let mut usage = usage(prompt, completion);
        usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
        usage["completion_tokens_details"] = json!({ "reasoning_tokens": 1 });
        usage
    };
    let two = text(0, &reported(3, 2, 1)) + &text(1, &reported(4, 5, 2));
    let demux = check(&two, "7 7 14 [0:2, 1:5] reported");
    let raw = &demux.aggregate()["usage"];
    assert_eq!(raw["prompt_tokens_details"]["cached_tokens"], 3);
    assert_eq!(raw["completion_tokens_details"]["reasoning_tokens"], 2);
}

/// A choice with usage of its own (U7).
fn own(index: u32, usage: &Value) -> String {
    let choice = json!({ "index": index, "delta": {}, "finish_reason": "stop", "usage": usage });
    chunk(&json!([choice]), &Value::Null)
}

#[test]
fn u07_reports_of_choices_are_kept_beside_a_total_of_the_envelope() {
    let stream = words(2)
        + &own(0, &json!({ "completion_tokens": 10 }))
        + &own(1, &json!({ "completion_tokens": 20 }))
        + &chunk(&json!([]), &json!({ "completion_tokens": 30 }));
    check(&(stream + DONE), "- 30 - [0:10, 1:20] reported");
}

#[test]
fn u07_an_envelope_without_the_completion_keeps_the_reports_of_the_choices() {
    let envelope = chunk(&json!([]), &json!({ "prompt_tokens": 7 }));
    let one = words(1) + &own(0, &json!({ "completion_tokens": 10 })) + &envelope;
    let demux = check(&(one + DONE), "7 10 17 [0:10] reported");
    let raw = json!({ "completion_tokens": 10, "prompt_tokens": 7 });
    assert_eq!(demux.aggregate()["usage"], raw);

    let two = words(2)
        + &own(
            0,
            &json!({ "completion_tokens": 10, "prompt_tokens": 5, "total_tokens": 15 }),
        )
        + &own(
            1,
            &json!({ "completion_tokens": 20, "prompt_tokens": 5, "total_tokens": 25 }),
        )
        + &envelope;
    check(&(two + DONE), "7 30 37 [0:10, 1:20] reported");
}

#[test]
fn u07_a_total_of_the_envelope_is_not_added_to() {
    let stream = words(2)
        + &own(0, &json!({ "completion_tokens": 10 }))
        + &chunk(&json!([]), &json!({ "completion_tokens": 10 }));
    check(&stream, "- 10 - [0:10, 1:~3] mixed");
    let without = words(2) + &own(0, &json!({ "completion_tokens": 10 }));
    check(&without, "- ~13 - [0:10, 1:~3] mixed");
}
