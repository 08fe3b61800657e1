use proptest::prelude::*;

use super::{arguments, reference::judge_slowly};
use crate::{
    CallStatus,
    json::{Judged, judge},
};

#[track_caller]
fn check(text: &str, expected: Judged) {
    assert_eq!(judge(text), expected, "{text:?}");
}

#[test]
fn arguments_are_judged_by_their_text() {
    check("{\"a\":1}", Judged::Complete);
    check("", Judged::EmptyAsObject);
    check(" \n", Judged::EmptyAsObject);
    check("\u{a0}\u{3000}", Judged::EmptyAsObject);
    check("{\"a\":\"x\ny\"}", Judged::Repaired);
    check("{\"a\":\"x\\\ny\"}", Judged::Repaired);
    check("{\"a\":\"x\ny", Judged::Truncated);
    check("{\"a\":1", Judged::Truncated);
    check("{\"a\":1}{\"b\":2}", Judged::Concatenated { offset: 7 });
    check("{\"a\":1}{\"b\":", Judged::Invalid { offset: 7 });
    check("{}{\"b\":2}", Judged::Repaired);
    check("{}{\"b\":", Judged::Truncated);
    check("{}{}{", Judged::Invalid { offset: 4 });
    check("{}{}{}", Judged::Concatenated { offset: 4 });
    check("{\"a\":1}<think>", Judged::Invalid { offset: 7 });
    check("not json", Judged::Invalid { offset: 1 });
    check("false", Judged::Complete);
    check("falsetrue", Judged::Invalid { offset: 5 });
    check("{\"a\":\"\\d\"}", Judged::Invalid { offset: 7 });
    check("{\"a\":\"\\ud83d\"}", Judged::Repaired);
    check("{\"a\":\"\\ud83d\\ude00\"}", Judged::Complete);
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    check(&deep(127), Judged::Complete);
    check(&deep(128), Judged::TooDeep { offset: 127 });
    check(&format!("[\"{}\"]", "[".repeat(500)), Judged::Complete);
}

#[test]
fn a_number_or_escape_that_lacks_a_digit_is_truncated() {
    check("{\"a\":-", Judged::Truncated);
    check("{\"a\":1.", Judged::Truncated);
    check("{\"a\":1e", Judged::Truncated);
    check("-", Judged::Truncated);
    check("{\"a\":\"\\u00", Judged::Truncated);
    // The quote is wrong before the end, although too few characters follow for an escape.
    check("{\"a\":\"\\u0\"}", Judged::Invalid { offset: 9 });
}

#[test]
fn the_reference_agrees() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let mut table: Vec<String> = arguments();
    table.extend([deep(127), deep(128), format!("[\"{}\"]", "[".repeat(500))]);
    for text in [
        "{\"a\":1}",
        "",
        " \n",
        "\u{3000}",
        "{\"a\":\"x\ny\"}",
        "{\"a\":\"x\\\ny\"}",
        "{\"a\":\"x\ny",
        "{\"a\":1",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1}{\"b\":",
        "{}{\"b\":2}",
        "{}{\"b\":",
        "{}{\"b\":2}{",
        "{ }{\"b\":2}",
        "{}{}{}",
        "{}5",
        "1 2",
        "1,2",
        "1-2",
        "1\"x\"",
        "{\"a\":1}<think>",
        "not json",
        "false",
        "falsetrue",
        "{\"a\":\"\\d\"}",
        "{\"a\":\"\\ud83d\"}",
        "{\"a\":\"\\ud83d\\ude00\"}",
        "{\"\\ude00\":1}",
        "{}[\"\\ud83d\\ud83d\"]",
        "1e999",
        "[1e999",
    ] {
        table.push(text.to_owned());
    }
    for text in table {
        assert_eq!(
            CallStatus::from(judge(&text)),
            judge_slowly(&text),
            "{text:?}"
        );
    }
}

proptest! {
    #[test]
    fn random_text_is_judged_as_by_the_reference(
        text in "([\\[\\]{}:, \n]|\"[a\\\\\n\"u0]{0,3}\"|\"|true|nul|-?[0-9]{1,2}|\\{\\}|\"k\":){0,12}",
    ) {
        let (ours, theirs) = (CallStatus::from(judge(&text)), judge_slowly(&text));
        // Where serde_json misses a digit it is not sure whether the text ends there.
        let lacks_digit = text.contains("\\u") || text.ends_with('-');
        prop_assert!(ours == theirs || lacks_digit, "{:?} is {} and should be {}", text, ours, theirs);
    }

    #[test]
    fn arbitrary_text_is_judged(text: String) {
        match judge(&text) {
            Judged::Invalid { offset } => prop_assert!(text.is_char_boundary(offset)),
            judged => prop_assert!(text.len() > 2 || judged != Judged::Repaired),
        }
    }
}
