use proptest::prelude::*;
use serde_json::{Value, json};

use super::{arguments, document, in_three, megabyte, parsed, pieces};
use crate::{
    json::{
        Field, FieldError, FieldState, Partial, PartialOptions, Pointer, TrailingStrings, Verdict,
        scan::Scanner,
        token::{Token, TokenListener},
    },
    limits::{MAX_ARGUMENT_DEPTH, MAX_PARTIAL_NODES},
};

fn fed<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Partial {
    let mut partial = Partial::default();
    for piece in pieces {
        partial.feed(piece);
    }
    partial
}

#[track_caller]
fn assert_case(text: &str, expected: Value) {
    assert_eq!(fed([text]).value(), Some(expected.clone()), "{text}");
    for size in 1..5 {
        assert_eq!(
            fed(pieces(text, size)).value(),
            Some(expected.clone()),
            "{text} by {size}"
        );
    }
}

#[track_caller]
fn nothing(text: &str) {
    assert_eq!(fed([text]).value(), None, "{text}");
}

#[test]
fn j19_a_string_is_as_long_as_it_has_come() {
    assert_case("{\"a\":\"hel", json!({"a": "hel"}));
    assert_case("{\"a\":\"", json!({"a": ""}));
    assert_case("{\"a\":\"x\\", json!({"a": "x"}));
    assert_case("{\"a\":\"x\\u00e", json!({"a": "x"}));
    assert_case("{\"a\":\"\\ud83d", json!({"a": ""}));
    assert_case("{\"a\":\"\\ud83d\\ude00", json!({"a": "😀"}));
    assert_case("\"top", json!("top"));
}

#[test]
fn j19_numbers_and_literals_wait_for_a_delimiter() {
    assert_case("{\"a\":12", json!({}));
    assert_case("{\"a\":12,", json!({"a": 12}));
    assert_case("[1,2.5e3,-", json!([1, 2500.0]));
    assert_case("{\"a\":tr", json!({}));
    assert_case("{\"a\":true", json!({}));
    assert_case("{\"a\":true ", json!({"a": true}));
    nothing("12");
    nothing("true");
    assert_case("12 ", json!(12));
}

#[test]
fn j19_a_key_waits_for_its_value() {
    assert_case("{\"ke", json!({}));
    assert_case("{\"key\"", json!({}));
    assert_case("{\"key\":", json!({}));
    assert_case("{\"a\":{\"b\":", json!({"a": {}}));
    assert_case("{\"a\":1,", json!({"a": 1}));
    assert_case("[1,{\"b\":\"c", json!([1, {"b": "c"}]));
    nothing("");
    nothing(" \n");
    assert_case("[", json!([]));
}

#[test]
fn trailing_strings_can_be_left_out() {
    let options = PartialOptions {
        trailing_strings: TrailingStrings::Off,
        ..PartialOptions::default()
    };
    let mut partial = Partial::new(options);
    for (piece, expected) in [
        ("{\"a\":[\"x", json!({"a": []})),
        ("y\"", json!({"a": ["xy"]})),
        (",\"z", json!({"a": ["xy"]})),
    ] {
        partial.feed(piece);
        assert_eq!(partial.value(), Some(expected));
    }
}

#[test]
fn j1_t22_j12_what_is_not_quite_json_is_shown_as_far_as_it_is() {
    assert_case("{\"a\":\"x\ny\\\nz\"}", json!({"a": "x\ny\\\nz"}));
    assert_case("{}{\"a\":1,", json!({"a": 1}));
    assert_case("{} {", json!({}));
    assert_case("{}{}{\"a\":1}", json!({}));
    assert_case("{\"a\":1}{\"b\":2}", json!({"a": 1}));
    assert_case("{\"a\":1}<think>", json!({"a": 1}));
    assert_case("{\"a\":[1,\"x\\d\",2]}", json!({"a": [1, "x"]}));
    assert_case("{\"\\ud83d\":\"\\ude00\"}", json!({"\u{FFFD}": "\u{FFFD}"}));
    nothing("<think>");
}

#[test]
fn t23_blanks_of_any_script_are_no_arguments() {
    let mut partial = fed(["\u{3000}", " \u{a0}"]);
    assert_eq!(partial.finish(), Verdict::EmptyAsObject);
    partial.feed("{}");
    assert_eq!(partial.finish(), Verdict::Invalid { offset: 0 });
    let mut field = Field::new(Pointer::parse("/a").unwrap());
    field.feed("\u{3000}", &mut |_| unreachable!());
    assert_eq!(field.state(), FieldState::Waiting);
    assert_eq!(field.finish(), Err(FieldError::Absent));
}

#[test]
fn j13_j15_j21_values_are_those_of_serde_json() {
    for text in [
        "{\"b\":1,\"a\":2,\"b\":{\"c\":3}}",
        "[0,-0,1.0,18446744073709551615,18446744073709551616,-9223372036854775809]",
        "[0.1,1e-400,123456789012345678901234567890.123456789e-20,999999999999999999]",
    ] {
        assert_case(text, parsed(text));
        assert_eq!(
            fed([text]).value().unwrap().to_string(),
            parsed(text).to_string()
        );
    }
    assert_case("[1e999]", json!([null]));
}

#[test]
fn an_end_is_told() {
    let complete = |text: &str| fed([text]).is_complete();
    assert!(complete("{\"a\":1} "));
    assert!(complete("{\"a\":\"\n\"}"));
    assert!(complete("{}{\"a\":1}"));
    assert!(!complete("{\"a\":1"));
    assert!(!complete("{\"a\":1}{}"));
    assert!(!complete("{\"a\":1}x"));
    assert!(!complete("5"));
    assert!(!complete(""));
    let mut number = fed(["5"]);
    assert_eq!(number.finish(), Verdict::Complete);
    assert!(number.is_complete());
    assert_eq!(number.finish(), Verdict::Complete);
    assert_eq!(fed(["[5"]).finish(), Verdict::Truncated);
}

#[test]
fn j16_depth_is_bounded() {
    let open = "[".repeat(MAX_ARGUMENT_DEPTH);
    let whole = format!("{open}{}", "]".repeat(MAX_ARGUMENT_DEPTH));
    assert_case(&whole, parsed(&whole));
    let bomb = fed(["[".repeat(1_000_000).as_str()]);
    assert_eq!(
        bomb.verdict(),
        Verdict::TooDeep {
            offset: MAX_ARGUMENT_DEPTH
        }
    );
    assert_eq!(bomb.value(), fed([open.as_str()]).value());
}

#[test]
fn nodes_are_bounded() {
    let options = |max_nodes| PartialOptions {
        max_nodes,
        ..PartialOptions::default()
    };
    let text = "[0,{\"a\":\"x\"},[],true]";
    let shown = |max_nodes| {
        let mut partial = Partial::new(options(max_nodes));
        partial.feed(text);
        (partial.value(), partial.is_full(), partial.is_complete())
    };
    assert_eq!(shown(6), (Some(parsed(text)), false, true));
    assert_eq!(shown(5), (Some(json!([0, {"a": "x"}, []])), true, false));
    assert_eq!(shown(3), (Some(json!([0, {}])), true, false));
    assert_eq!(shown(1), (Some(json!([])), true, false));
    assert_eq!(shown(0), (None, true, false));
    let bomb = fed([format!("[{}", "0,".repeat(MAX_PARTIAL_NODES)).as_str()]);
    assert!(bomb.is_full());
    assert_eq!(
        bomb.value().unwrap().as_array().unwrap().len(),
        MAX_PARTIAL_NODES - 1
    );
    // What the limit's reason counts with.
    assert!(size_of::<Value>() <= 72 && size_of::<(u64, String, Value)>() <= 104);
}

#[test]
fn debug_shows_no_text() {
    let shown = format!("{:?}", fed(["{\"secret\":\"sesame"]));
    assert_eq!(
        shown,
        "Partial { verdict: Truncated, nodes: 2, full: false, .. }"
    );
}

/// Counts what a listener has to do.
#[derive(Default)]
struct Count(usize);

impl TokenListener for Count {
    fn token(&mut self, _token: Token<'_>) {
        self.0 += 1;
    }
}

#[test]
fn j20_a_megabyte_in_small_fragments_costs_its_bytes() {
    let text = megabyte();
    let (mut scanner, mut count) = (Scanner::default(), Count::default());
    for piece in pieces(&text, 4) {
        scanner.feed(piece, &mut count);
    }
    assert_eq!(scanner.verdict(), Verdict::Complete);
    assert!(count.0 < text.len() / 2, "{} tokens", count.0);
    assert_eq!(fed(pieces(&text, 4)).value(), Some(parsed(&text)));
}

#[test]
fn every_split_of_every_fixture_gives_the_same() {
    for text in arguments() {
        let whole = fed([text.as_str()]);
        for seed in 0..50 {
            let split = fed(in_three(&text, seed));
            assert_eq!(
                (split.value(), split.verdict()),
                (whole.value(), whole.verdict()),
                "{text}"
            );
        }
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let mut whole = whole;
            whole.finish();
            assert_eq!(whole.value(), Some(value));
        }
    }
}

/// Whether a value can grow into another by appending alone.
fn is_prefix(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(a, b)| is_prefix(a, b))
        }
        (Value::Object(part), Value::Object(whole)) => {
            let mut pairs = part.iter().zip(whole);
            part.len() <= whole.len()
                && pairs.all(|((a, part), (b, whole))| a == b && is_prefix(part, whole))
        }
        _ => part == whole,
    }
}

proptest! {
    #[test]
    fn a_whole_document_is_what_serde_json_reads(text in document(), seed: u64) {
        for mut partial in [fed([&*text]), fed(in_three(&text, seed)), fed(pieces(&text, 1)), fed(pieces(&text, 4))] {
            prop_assert_eq!(partial.finish(), Verdict::Complete);
            let value = partial.value().unwrap();
            prop_assert_eq!(value.to_string(), parsed(&text).to_string());
            prop_assert_eq!(value, parsed(&text));
        }
    }

    #[test]
    fn every_prefix_grows_into_the_whole(text in document()) {
        // Written anew, so that no key occurs twice.
        let whole = parsed(&text);
        let text = whole.to_string();
        let mut partial = Partial::default();
        let mut last: Option<Value> = None;
        for piece in pieces(&text, 1) {
            partial.feed(piece);
            let value = partial.value();
            if let Some(value) = &value {
                prop_assert!(is_prefix(value, &whole), "{} of {}", value, whole);
            }
            prop_assert!(last.is_none_or(|last| value.as_ref().is_some_and(|value| is_prefix(&last, value))));
            last = value;
        }
    }

    #[test]
    fn arbitrary_text_keeps_to_its_budget(
        text in ".{0,80}|[\\[\\]{}:,\"a\\\\u0 ]{0,60}",
        seed: u64,
        max_nodes in 0..8_usize,
    ) {
        let mut partial = Partial::new(PartialOptions { max_nodes, ..PartialOptions::default() });
        let mut twin = partial.clone();
        in_three(&text, seed).iter().for_each(|piece| partial.feed(piece));
        twin.feed(&text);
        prop_assert_eq!(partial.value(), twin.value());
        prop_assert_eq!(partial.verdict(), twin.verdict());
        prop_assert!(partial.value().map_or(0, |value| nodes(&value)) <= max_nodes);
    }
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
