use proptest::prelude::*;
use serde_json::{Value, json};

use super::{arguments, document, fragments, in_three, megabyte, parsed};
use crate::{
    json::{
        Field, FieldError, FieldState, Partial, PartialOptions, Pointer, TrailingStrings, Verdict,
        scan::Scanner,
        token::{Token, TokenListener},
    },
    limits::{MAX_ARGUMENT_DEPTH, MAX_PARTIAL_NODES},
};

fn fed<'a>(fragments: impl IntoIterator<Item = &'a str>) -> Partial {
    let mut partial = Partial::default();
    for fragment in fragments {
        partial.feed(fragment);
    }
    partial
}

#[track_caller]
fn assert_case(text: &str, expected: Value) {
    assert_eq!(fed([text]).value(), Some(expected.clone()), "{text}");
    for size in 1..5 {
        assert_eq!(
            fed(fragments(text, size)).value(),
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
fn j19_a_string_has_the_text_received_so_far() {
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
fn unfinished_strings_can_be_omitted() {
    let options = PartialOptions {
        trailing_strings: TrailingStrings::Off,
        ..PartialOptions::default()
    };
    let mut partial = Partial::new(options);
    for (fragment, expected) in [
        ("{\"a\":[\"x", json!({"a": []})),
        ("y\"", json!({"a": ["xy"]})),
        (",\"z", json!({"a": ["xy"]})),
    ] {
        partial.feed(fragment);
        assert_eq!(partial.value(), Some(expected));
    }
}

#[test]
fn j1_t22_j12_text_that_is_nearly_json_is_shown() {
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
fn t23_white_space_of_any_script_counts_as_no_arguments() {
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
fn finish_returns_the_verdict() {
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
    let complete = format!("{open}{}", "]".repeat(MAX_ARGUMENT_DEPTH));
    assert_case(&complete, parsed(&complete));
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
    // The size on which the limit is based.
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

/// Counts the work of a listener.
#[derive(Default)]
struct Count(usize);

impl TokenListener for Count {
    fn token(&mut self, _token: Token<'_>) {
        self.0 += 1;
    }
}

#[test]
fn j20_the_cost_of_small_fragments_is_linear() {
    let text = megabyte();
    let (mut scanner, mut count) = (Scanner::default(), Count::default());
    for fragment in fragments(&text, 4) {
        scanner.feed(fragment, &mut count);
    }
    assert_eq!(scanner.verdict(), Verdict::Complete);
    assert!(count.0 < text.len() / 2, "{} tokens", count.0);
    assert_eq!(fed(fragments(&text, 4)).value(), Some(parsed(&text)));
}

#[test]
fn every_split_of_every_fixture_gives_the_same() {
    for text in arguments() {
        let complete = fed([text.as_str()]);
        for seed in 0..50 {
            let split = fed(in_three(&text, seed));
            assert_eq!(
                (split.value(), split.verdict()),
                (complete.value(), complete.verdict()),
                "{text}"
            );
        }
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let mut complete = complete;
            complete.finish();
            assert_eq!(complete.value(), Some(value));
        }
    }
}

/// Whether a value can become another one only by appending.
fn is_prefix(part: &Value, complete: &Value) -> bool {
    match (part, complete) {
        (Value::String(part), Value::String(complete)) => complete.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(complete)) => {
            part.len() <= complete.len() && part.iter().zip(complete).all(|(a, b)| is_prefix(a, b))
        }
        (Value::Object(part), Value::Object(complete)) => {
            let mut pairs = part.iter().zip(complete);
            part.len() <= complete.len()
                && pairs.all(|((a, part), (b, complete))| a == b && is_prefix(part, complete))
        }
        _ => part == complete,
    }
}

proptest! {
    #[test]
    fn a_complete_document_equals_that_of_serde_json(text in document(), seed: u64) {
        for mut partial in [fed([&*text]), fed(in_three(&text, seed)), fed(fragments(&text, 1)), fed(fragments(&text, 4))] {
            prop_assert_eq!(partial.finish(), Verdict::Complete);
            let value = partial.value().unwrap();
            prop_assert_eq!(value.to_string(), parsed(&text).to_string());
            prop_assert_eq!(value, parsed(&text));
        }
    }

    #[test]
    fn every_prefix_grows_into_the_complete_value(text in document()) {
        // Written anew, so that there are no duplicate keys.
        let complete = parsed(&text);
        let text = complete.to_string();
        let mut partial = Partial::default();
        let mut last: Option<Value> = None;
        for fragment in fragments(&text, 1) {
            partial.feed(fragment);
            let value = partial.value();
            if let Some(value) = &value {
                prop_assert!(is_prefix(value, &complete), "{} of {}", value, complete);
            }
            prop_assert!(last.is_none_or(|last| value.as_ref().is_some_and(|value| is_prefix(&last, value))));
            last = value;
        }
    }

    #[test]
    fn arbitrary_text_stays_within_its_budget(
        text in ".{0,80}|[\\[\\]{}:,\"a\\\\u0 ]{0,60}",
        seed: u64,
        max_nodes in 0..8_usize,
    ) {
        let mut partial = Partial::new(PartialOptions { max_nodes, ..PartialOptions::default() });
        let mut twin = partial.clone();
        in_three(&text, seed).iter().for_each(|fragment| partial.feed(fragment));
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
