use serde_json::{Value, json};

use super::*;

/// Checks the error of `parse` for a text, and the result of `parse_repaired`.
#[track_caller]
fn assert_case(text: &str, fault: &str, repaired: Option<&Value>) {
    let strict = parse_json::<Value>(text).map_err(|fault| fault.to_string());
    match fault {
        "" => assert_eq!(strict.as_ref().ok(), repaired, "{text}"),
        fault => assert_eq!(strict, Err(fault.to_owned()), "{text}"),
    }
    for allowed in [
        Repair::NONE,
        Repair::default(),
        Repair::LONE_SURROGATES,
        Repair::ALL,
    ] {
        let value = parse_json_repaired::<Value>(text, allowed).ok();
        assert_eq!(value.as_ref(), repaired, "{text} {allowed:?}");
    }
}

const REPAIR: &str = "the text is JSON only after a repair";

#[test]
fn j17_a_lone_surrogate_is_reported_or_replaced() {
    let lone = |at| format!("a lone surrogate is escaped at byte {at}: {REPAIR}");
    assert_case(
        r#"{"a":"\ud83d"}"#,
        &lone(6),
        Some(&json!({"a": "\u{fffd}"})),
    );
    assert_case(
        r#"{"a":"x\ude42y"}"#,
        &lone(7),
        Some(&json!({"a": "x\u{fffd}y"})),
    );
    assert_case(r#"{"\ud83d":1}"#, &lone(2), Some(&json!({"\u{fffd}": 1})));
    assert_case(
        r#""\ud83d\ud83d\ude42""#,
        &lone(1),
        Some(&json!("\u{fffd}\u{1f642}")),
    );
    assert_case(r#""\ud83d\n""#, &lone(1), Some(&json!("\u{fffd}\n")));
    assert_case(
        r#"["\ud83d\ude42", "\ud83d", "\ude42"]"#,
        &lone(18),
        Some(&json!(["\u{1f642}", "\u{fffd}", "\u{fffd}"])),
    );
    assert_case(r#"{} ["\ud83d"]"#, &lone(5), Some(&json!(["\u{fffd}"])));
    assert_case(r#""\ud83d\ude42""#, "", Some(&json!("\u{1f642}")));
}

#[test]
fn j17_other_errors_of_the_text_remain() {
    assert_case(
        r#"{"a":"\ud83d"#,
        "the text ends inside its JSON, after 12 bytes",
        None,
    );
    assert_case(r#"["\ud83d"] x"#, "no JSON at byte 11", None);
    assert_case(
        r#"["\ud83d"] []"#,
        "several JSON values in a row, the first too many at byte 11",
        None,
    );
}

#[test]
fn j17_a_call_with_a_lone_surrogate_is_repaired() {
    let arguments = r#"{"a":"\ud83d"}"#;
    let status = crate::CallStatus::check(CallKind::Function, Some("c"), "f", arguments);
    assert_eq!(status, crate::CallStatus::Repaired);
    assert_eq!(check(arguments), Verdict::Repaired);
    assert_eq!(check(r#"{"a":"\ud83d\ude42"}"#), Verdict::Complete);
    assert_eq!(check(r#"{"a":"\ud83d"#), Verdict::Truncated);
}

#[test]
fn j07_j17_text_with_a_lone_surrogate_is_closed_only_if_that_is_repaired() {
    let open = r#"["\ud83d""#;
    assert_eq!(repair(open, Repair::CLOSE).text, open);
    assert_eq!(repair(open, Repair::ALL).text, r#"["\ufffd"]"#);
}

#[test]
fn t23_only_absent_arguments_mean_an_empty_object() {
    for blank in ["", " \n"] {
        let error = format!("the text ends inside its JSON, after {} bytes", blank.len());
        assert_case(blank, &error, None);
        let body = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "delta": {
            "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "f", "arguments": blank } }],
        } }] });
        let mut demux = crate::Demux::new(crate::Config::default());
        demux.feed(format!("data: {body}\n\ndata: [DONE]\n\n").as_bytes());
        let message = demux.choice(crate::ChoiceIndex(0)).unwrap().message();
        let call = &message.tool_calls[0];
        assert_eq!(call.parse::<Value>().unwrap(), json!({}));
        assert_eq!(
            call.parse_repaired::<Value>(Repair::ALL).unwrap(),
            json!({})
        );
    }
}

#[test]
fn j06_content_that_is_a_number_is_incomplete_after_an_end_that_cut_it() {
    let ended = |reason: &str| ChoiceEnd::Finished(reason.into());
    for (content, end, expected) in [
        ("12", ended("length"), true),
        (" 12", ended("content_filter"), true),
        ("12", ChoiceEnd::DoneWithoutFinish, true),
        ("12", ended("stop"), false),
        ("{\"a\":12}", ended("length"), false),
        ("true", ended("length"), false),
        // Errors by themselves.
        ("", ended("length"), false),
        ("[1", ended("length"), false),
    ] {
        assert_eq!(may_continue(content, &end), expected, "{content} {end:?}");
    }
}
