use proptest::prelude::*;

use super::{arguments, reference::slow_check};
use crate::{
    CallStatus,
    json::{Verdict, check},
};

#[track_caller]
fn assert_case(text: &str, expected: Verdict) {
    assert_eq!(check(text), expected, "{text:?}");
}

#[test]
fn the_verdict_depends_on_the_text() {
    assert_case("{\"a\":1}", Verdict::Complete);
    assert_case("", Verdict::EmptyAsObject);
    assert_case(" \n", Verdict::EmptyAsObject);
    assert_case("\u{a0}\u{3000}", Verdict::EmptyAsObject);
    assert_case("{\"a\":\"x\ny\"}", Verdict::Repaired);
    assert_case("{\"a\":\"x\\\ny\"}", Verdict::Repaired);
    assert_case("{\"a\":\"x\ny", Verdict::Truncated);
    assert_case("{\"a\":1", Verdict::Truncated);
    assert_case("{\"a\":1}{\"b\":2}", Verdict::Concatenated { offset: 7 });
    assert_case("{\"a\":1}{\"b\":", Verdict::Invalid { offset: 7 });
    assert_case("{}{\"b\":2}", Verdict::Repaired);
    assert_case("{}{\"b\":", Verdict::Truncated);
    assert_case("{}{}{", Verdict::Invalid { offset: 4 });
    assert_case("{}{}{}", Verdict::Concatenated { offset: 4 });
    assert_case("{\"a\":1}<think>", Verdict::Invalid { offset: 7 });
    assert_case("not json", Verdict::Invalid { offset: 1 });
    assert_case("false", Verdict::Complete);
    assert_case("falsetrue", Verdict::Invalid { offset: 5 });
    assert_case("{\"a\":\"\\d\"}", Verdict::Invalid { offset: 7 });
    assert_case("{\"a\":\"\\ud83d\"}", Verdict::Repaired);
    assert_case("{\"a\":\"\\ud83d\\ude00\"}", Verdict::Complete);
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_case(&deep(127), Verdict::Complete);
    assert_case(&deep(128), Verdict::TooDeep { offset: 127 });
    assert_case(&format!("[\"{}\"]", "[".repeat(500)), Verdict::Complete);
}

#[test]
fn a_number_or_escape_that_lacks_a_digit_is_truncated() {
    assert_case("{\"a\":-", Verdict::Truncated);
    assert_case("{\"a\":1.", Verdict::Truncated);
    assert_case("{\"a\":1e", Verdict::Truncated);
    assert_case("-", Verdict::Truncated);
    assert_case("{\"a\":\"\\u00", Verdict::Truncated);
    // The quote is an error before the end, although too few characters follow for an escape.
    assert_case("{\"a\":\"\\u0\"}", Verdict::Invalid { offset: 9 });
}

#[test]
fn check_matches_the_reference() {
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
            CallStatus::from(check(&text)),
            slow_check(&text),
            "{text:?}"
        );
    }
}

proptest! {
    #[test]
    fn the_verdict_on_random_text_matches_the_reference(
        text in "([\\[\\]{}:, \n]|\"[a\\\\\n\"u0]{0,3}\"|\"|true|nul|-?[0-9]{1,2}|\\{\\}|\"k\":){0,12}",
    ) {
        let (ours, theirs) = (CallStatus::from(check(&text)), slow_check(&text));
        // If a digit is missing, `serde_json` does not always report whether the text ends there.
        let lacks_digit = text.contains("\\u") || text.ends_with('-');
        prop_assert!(ours == theirs || lacks_digit, "{:?} is {} and should be {}", text, ours, theirs);
    }

    #[test]
    fn arbitrary_text_gets_a_verdict(text: String) {
        match check(&text) {
            Verdict::Invalid { offset } => prop_assert!(text.is_char_boundary(offset)),
            verdict => prop_assert!(text.len() > 2 || verdict != Verdict::Repaired),
        }
    }
}
