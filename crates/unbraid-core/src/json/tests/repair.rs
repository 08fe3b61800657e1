use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::{arguments, document, reference::escape_controls};
use crate::json::{Repair, Verdict, check, repair};

/// The text after a repair. Checks that it is made only if it is allowed, and also together with others.
#[track_caller]
fn assert_case(text: &str, repairs: Repair, expected: &str) {
    let repaired = repair(text, repairs);
    assert_eq!(
        (&*repaired.text, repaired.applied),
        (expected, repairs),
        "{text}"
    );
    let all = repair(text, Repair::ALL);
    assert_eq!(
        (&*all.text, all.applied),
        (expected, repairs),
        "{text} with all"
    );
    untouched(text, Repair::NONE);
}

#[track_caller]
fn untouched(text: &str, allowed: Repair) {
    let repaired = repair(text, allowed);
    assert_eq!(
        (&*repaired.text, repaired.applied),
        (text, Repair::NONE),
        "{text}"
    );
    assert!(matches!(repaired.text, Cow::Borrowed(_)), "{text}");
}

#[test]
fn j1_to_j3_controls_are_escaped_in_strings_only() {
    let controls = |text, expected| assert_case(text, Repair::CONTROLS, expected);
    controls("{\n\"a\":\"x\ny\"}", "{\n\"a\":\"x\\ny\"}");
    controls(
        "[\"\r\n\t\0\u{1b}\u{8}\"]",
        "[\"\\r\\n\\t\\u0000\\u001b\\u0008\"]",
    );
    controls("[\"x\\\ny\"]", "[\"x\\\\\\ny\"]");
    controls("[\"x\\\\\ny\"]", "[\"x\\\\\\ny\"]");
    controls("{\"a\ny\":1}", "{\"a\\ny\":1}");
    // Also in an unterminated string at the end.
    controls("{\"a\":\"x\n", "{\"a\":\"x\\n");
    assert_eq!(Repair::default(), Repair::CONTROLS);
}

#[test]
fn j4_the_backslash_of_an_invalid_escape_is_escaped() {
    let escapes = |text, expected| assert_case(text, Repair::ESCAPES, expected);
    escapes(r#"["\d+"]"#, r#"["\\d+"]"#);
    escapes(r#"["C:\Users\new"]"#, r#"["C:\\Users\new"]"#);
    escapes(r#"["\'"]"#, r#"["\\'"]"#);
    escapes(r#"["\u12"]"#, r#"["\\u12"]"#);
    escapes(r#"["\u12\u00e9\x"]"#, r#"["\\u12\u00e9\\x"]"#);
    escapes(r#"["\é"]"#, r#"["\\é"]"#);
    // The end may have cut an escape.
    untouched(r#"["x\"#, Repair::ALL);
    untouched(r#"["x\u00"#, Repair::ALL);
    let both = Repair::CONTROLS | Repair::ESCAPES;
    assert_case("[\"\\d\n\"]", both, "[\"\\\\d\\n\"]");
    assert_eq!(repair("[\"\\\n\"]", Repair::ESCAPES).text, "[\"\\\\\n\"]");
}

#[test]
fn j5_escapes_outside_strings_are_white_space() {
    let newlines = |text, expected| assert_case(text, Repair::LITERAL_NEWLINES, expected);
    newlines(r#"{\n"a\n":1\r\n,\t"b":2}"#, "{\n\"a\\n\":1\r\n,\t\"b\":2}");
    untouched(r"[\d]", Repair::ALL);
    untouched(r"[1\", Repair::ALL);
}

#[test]
fn j7_containers_are_closed_only_if_no_token_was_cut() {
    let close = |text, expected| assert_case(text, Repair::CLOSE, expected);
    close("{\"a\":\"x\"", "{\"a\":\"x\"}");
    close("{\"a\":[{\"b\":[1]", "{\"a\":[{\"b\":[1]}]}");
    close("{\"a\":[1 ", "{\"a\":[1 ]}");
    close("{\"a\":true", "{\"a\":true}");
    close("[{", "[{}]");
    close("{}{\"a\":\"x\"", "{}{\"a\":\"x\"}");
    for cut in [
        "{\"a\":\"x",
        "{\"a\":1",
        "{\"a\":tru",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1,",
        "[1,",
        "5",
        "",
        " ",
        "{\"a\":1]",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1}{\"b\":[]",
        "<think>{",
    ] {
        untouched(cut, Repair::ALL);
    }
    // Text that would not be JSON even so is not closed.
    untouched("{\"a\":\"x\n\"", Repair::CLOSE);
    assert_case(
        "{\"a\":\"x\n\"",
        Repair::CONTROLS | Repair::CLOSE,
        "{\"a\":\"x\\n\"}",
    );
}

#[test]
fn j17_lone_surrogates_are_replaced() {
    let lone = |text, expected| assert_case(text, Repair::LONE_SURROGATES, expected);
    lone(r#"["\ud83d"]"#, r#"["\ufffd"]"#);
    lone(r#"["\ude00x"]"#, r#"["\ufffdx"]"#);
    lone(r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#);
    lone(r#"["\uD83D\n\uDE00"]"#, r#"["\ufffd\n\ufffd"]"#);
    untouched(r#"["\ud83d\ude00"]"#, Repair::ALL);
    untouched(r#"["\\ud83d"]"#, Repair::ALL);
    untouched(r#"["\ud83d"#, Repair::ALL);
}

#[test]
fn repaired_fixtures_match_the_reference() {
    for text in arguments() {
        let repaired = repair(&text, Repair::CONTROLS);
        assert_eq!(repaired.text, escape_controls(&text));
        assert_eq!(repaired.applied.is_empty(), repaired.text == text);
        if serde_json::from_str::<Value>(&text).is_ok() {
            untouched(&text, Repair::ALL);
        }
    }
}

proptest! {
    #[test]
    fn valid_json_is_not_changed(text in document()) {
        let repaired = repair(&text, Repair::ALL);
        prop_assert!(repaired.applied.is_empty());
        prop_assert!(matches!(repaired.text, Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_controls_match_the_reference(text in "([\"\\\\u0a\n\t\u{0}\u{1f}\u{7f}é]|\\\\[\"\\\\\n])*") {
        let repaired = repair(&text, Repair::CONTROLS);
        prop_assert_eq!(&repaired.text, &escape_controls(&text));
        prop_assert_eq!(repaired.applied.is_empty(), matches!(repaired.text, Cow::Borrowed(_)));
    }

    #[test]
    fn repairing_twice_changes_nothing(text in ".{0,60}|[\\[\\]{}:,\"a\\\\unr0d83\n ]{0,40}", bits in 0..32_u8) {
        let allowed = [
            Repair::CONTROLS, Repair::ESCAPES, Repair::LITERAL_NEWLINES, Repair::CLOSE, Repair::LONE_SURROGATES,
        ];
        let allowed = (0..5).filter(|at| bits >> at & 1 == 1).fold(Repair::NONE, |set, at| set | allowed[at]);
        let once = repair(&text, allowed);
        prop_assert!(allowed.contains(once.applied));
        if allowed.contains(Repair::CONTROLS) || !allowed.contains(Repair::ESCAPES) {
            let twice = repair(&once.text, allowed);
            prop_assert!(twice.applied.is_empty(), "{:?} then {:?}", once, twice);
        }
    }

    #[test]
    fn text_that_serde_json_accepts_is_not_changed(text in "[\\[\\]{}:,\"a\\\\unr0d8f\n ]{0,12}") {
        if serde_json::from_str::<Value>(&text).is_ok() {
            prop_assert!(repair(&text, Repair::ALL).applied.is_empty());
        }
    }

    #[test]
    fn a_verdict_of_repaired_means_that_the_repair_gives_json(text in "\\{\"a\":\"[a\\\\\n\t\u{0}n]{0,8}\"\\}") {
        if check(&text) == Verdict::Repaired {
            prop_assert_eq!(check(&repair(&text, Repair::default()).text), Verdict::Complete);
        }
    }
}
