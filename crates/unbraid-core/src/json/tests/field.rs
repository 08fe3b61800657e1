use proptest::prelude::*;
use serde_json::Value;

use super::{arguments, boundary, document, fragments, in_three, parsed};
use crate::json::{Field, FieldError, FieldState, Pointer};

/// The text of the field, the state before the end, and how it ended.
type Outcome = (String, FieldState, Result<(), FieldError>);

fn read<'a>(pointer: &str, fragments: impl IntoIterator<Item = &'a str>) -> Outcome {
    let mut field = Field::new(Pointer::parse(pointer).unwrap());
    let mut text = String::new();
    for fragment in fragments {
        field.feed(fragment, &mut |typed| {
            assert!(!typed.is_empty());
            text.push_str(typed);
        });
    }
    (text, field.state(), field.finish())
}

/// Checks that the result does not depend on the fragments.
#[track_caller]
fn assert_case(
    text: &str,
    pointer: &str,
    typed: &str,
    state: FieldState,
    end: Result<(), FieldError>,
) {
    let expected = (typed.to_owned(), state, end);
    assert_eq!(read(pointer, [text]), expected, "{text} {pointer}");
    for size in 1..5 {
        assert_eq!(
            read(pointer, fragments(text, size)),
            expected,
            "{text} {pointer} by {size}"
        );
    }
}

#[track_caller]
fn found(text: &str, pointer: &str, typed: &str) {
    assert_case(text, pointer, typed, FieldState::Done, Ok(()));
}

#[track_caller]
fn absent(text: &str, pointer: &str) {
    assert_case(
        text,
        pointer,
        "",
        FieldState::Absent,
        Err(FieldError::Absent),
    );
}

#[test]
fn j22_a_pointer_yields_only_its_string() {
    found(r#"{"answer":"yes"}"#, "/answer", "yes");
    found(
        r#"{"q":"\"answer\":\"no\"","n":{"answer":"no"},"answer":"y\"es"}"#,
        "/answer",
        "y\"es",
    );
    found(r#"{"a":{"b":[1,{"x":[]},[["c"],"d"]]}}"#, "/a/b/2/1", "d");
    found(r#"{"a":{"b":[1,{"x":[]},[["c"],"d"]]}}"#, "/a/b/2/0/0", "c");
    found(r#"{"0":"key"}"#, "/0", "key");
    found(r#"["item"]"#, "/0", "item");
    found(r#"{"":{"":"x"}}"#, "//", "x");
    found(r#"{"a/b":{"m~n":"x"}}"#, "/a~1b/m~0n", "x");
    found(r#"{"\u0061nswer":"x"}"#, "/answer", "x");
    found(r#"{"answer":""}"#, "/answer", "");
    found(r#"  "whole" "#, "", "whole");
    found(r#"{"ans":"1","answers":"2","answer":"3"}"#, "/answer", "3");
}

#[test]
fn j13_the_first_of_duplicate_keys_counts() {
    found(r#"{"a":"first","a":"second"}"#, "/a", "first");
    absent(r#"{"a":{},"a":{"b":"late"}}"#, "/a/b");
    assert_case(
        r#"{"a":1,"a":"s"}"#,
        "/a",
        "",
        FieldState::NotAString,
        Err(FieldError::NotAString),
    );
}

#[test]
fn an_absent_field_is_reported_as_soon_as_it_is_certain() {
    absent(r#"{"question":"why"}"#, "/answer");
    absent(r#"{"a":{"b":"x"},"more":"#, "/a/c");
    absent(r#"{"a":["x"],"more":"#, "/a/1");
    absent(r#"{"a":["x"]"#, "/a/-");
    absent(r#"{"a":"text""#, "/a/b");
    absent(r#"{"a":5,"#, "/a/b");
    absent("[]", "/0");
    assert_case("", "/a", "", FieldState::Waiting, Err(FieldError::Absent));
    assert_case(
        " \n",
        "/a",
        "",
        FieldState::Waiting,
        Err(FieldError::Absent),
    );
    assert_case(
        "null",
        "/a",
        "",
        FieldState::Waiting,
        Err(FieldError::Absent),
    );
    assert_case(
        "null",
        "",
        "",
        FieldState::Waiting,
        Err(FieldError::NotAString),
    );
}

#[test]
fn a_value_that_is_not_a_string_is_reported() {
    for value in ["1", "true", "null", "{\"b\":\"c\"}", "[\"b\"]"] {
        let text = format!("{{\"a\":{value},\"z\":");
        assert_case(
            &text,
            "/a",
            "",
            FieldState::NotAString,
            Err(FieldError::NotAString),
        );
    }
    assert_case(
        "[1]",
        "",
        "",
        FieldState::NotAString,
        Err(FieldError::NotAString),
    );
}

#[test]
fn a_cut_is_reported_and_half_escapes_are_held_back() {
    let cut = |text, typed, state| assert_case(text, "/a", typed, state, Err(FieldError::Cut));
    cut("{\"b\":1", "", FieldState::Waiting);
    cut("{\"a\"", "", FieldState::Waiting);
    cut("{\"a\":", "", FieldState::Waiting);
    cut("{\"a\":\"", "", FieldState::Typing);
    cut("{\"a\":\"x\\", "x", FieldState::Typing);
    cut("{\"a\":\"x\\u00e", "x", FieldState::Typing);
    cut("{\"a\":\"x\\ud83d", "x", FieldState::Typing);
    cut("{\"a\":\"x\\ud83d\\ude0", "x", FieldState::Typing);
}

#[test]
fn invalid_json_is_reported_with_its_offset() {
    let wrong = |text, typed, offset| {
        let end = Err(FieldError::Invalid { offset });
        assert_case(text, "/a", typed, FieldState::Invalid, end);
    };
    wrong("<think>", "", 0);
    wrong("{\"b\":x", "", 5);
    wrong("{\"a\":\"x\\d\"}", "x", 8);
    wrong(&format!("{{\"b\":{}", "[".repeat(200)), "", 131);
    // Nothing after the string is scanned.
    found("{\"a\":\"x\" oops", "/a", "x");
}

#[test]
fn j1_j17_strings_are_decoded_leniently() {
    found("{\"a\":\"x\ny\\\nz\"}", "/a", "x\ny\\\nz");
    found(r#"{"a":"\ud83d!\ude00"}"#, "/a", "\u{FFFD}!\u{FFFD}");
    found(r#"{"a":"\ud83d\ude00"}"#, "/a", "😀");
}

#[test]
fn t22_the_search_starts_again_after_a_placeholder() {
    found("{}{\"a\":\"x\"}", "/a", "x");
    found("{} \"x\"", "", "x");
    assert_case("{}", "/a", "", FieldState::Waiting, Err(FieldError::Absent));
    assert_case(
        "{}",
        "",
        "",
        FieldState::Waiting,
        Err(FieldError::NotAString),
    );
    assert_case(
        "{} {\"b\":",
        "/a",
        "",
        FieldState::Waiting,
        Err(FieldError::Cut),
    );
    absent("{}{}{\"a\":\"x\"}", "/a");
    absent("{\"b\":1}{\"a\":\"x\"}", "/a");
}

/// All strings of a value with their paths, or nothing if the text has duplicate keys.
fn strings(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(string) => found.push((path.to_owned(), string.clone())),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                strings(item, &format!("{path}/{at}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                strings(member, &format!("{path}/{key}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn every_string_of_every_fixture_is_found() {
    let mut count = 0;
    for text in arguments() {
        let Ok(value) = serde_json::from_str(&text) else {
            continue;
        };
        let mut expected = Vec::new();
        strings(&value, "", &mut expected);
        for (path, string) in expected {
            found(&text, &path, &string);
            count += 1;
        }
    }
    assert!(count > 20, "only {count} strings");
}

proptest! {
    #[test]
    fn every_string_of_a_document_is_found(text in document(), seed: u64) {
        // Written anew, so that there are no duplicate keys.
        let value = parsed(&text);
        let text = value.to_string();
        let mut expected = Vec::new();
        strings(&value, "", &mut expected);
        for (path, string) in expected {
            let (typed, state, end) = read(&path, in_three(&text, seed));
            prop_assert_eq!(&typed, &string);
            prop_assert_eq!((state, end), (FieldState::Done, Ok(())));
            // The text yielded up to a cut is a prefix of the complete text.
            let cut = boundary(&text, seed as usize % (text.len() + 1));
            prop_assert!(string.starts_with(&read(&path, [&text[..cut]]).0));
        }
    }

    #[test]
    fn arbitrary_text_gives_the_same_at_every_split(text in ".{0,60}|[\\[\\]{}:,\"a\\\\u0 ]{0,40}", seed: u64) {
        for pointer in ["", "/a", "/0/a"] {
            prop_assert_eq!(read(pointer, in_three(&text, seed)), read(pointer, [&*text]));
        }
    }
}
