mod check;
mod field;
mod partial;
mod pointer;
mod reference;
mod repair;
mod scan;

use proptest::prelude::*;
use serde_json::Value;
use unbraid_testkit::{cut::Rng, fixture::Fixture};

use super::{
    Field, FieldError, Partial, PartialOptions, Pointer, PointerError, Repair, Repaired, Verdict,
};
use crate::{Config, Demux};

/// The arguments of every call in every fixture.
fn arguments() -> Vec<String> {
    let mut found = Vec::new();
    for fixture in Fixture::all() {
        let mut demux = Demux::new(Config::default());
        demux.feed(&fixture.bytes);
        demux.finish();
        for choice in demux.choices() {
            for call in &choice.message().tool_calls {
                found.push(call.arguments.clone());
            }
        }
    }
    assert!(found.len() > 20, "only {} calls", found.len());
    found
}

/// Documents as a model may write them: with white space, duplicate keys, and all notations of escapes.
fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        string(),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        let items = prop::collection::vec((space(), inner.clone(), space()), 0..5);
        let members = prop::collection::vec((key(), space(), inner, space()), 0..5);
        prop_oneof![
            items.prop_map(|items| enclose('[', ']', items.iter().map(|(a, b, c)| [a, "", b, c]))),
            members.prop_map(|members| {
                let keyed = members
                    .iter()
                    .map(|(key, a, b, c)| (format!("{key}{a}:"), b, c));
                let keyed: Vec<_> = keyed.collect();
                enclose('{', '}', keyed.iter().map(|(key, b, c)| ["", key, b, c]))
            }),
        ]
    })
}

fn enclose<'a>(open: char, close: char, items: impl Iterator<Item = [&'a str; 4]>) -> String {
    let items: Vec<String> = items.map(|item| item.concat()).collect();
    format!("{open}{}{close}", items.join(","))
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \n\r\t]{1,2}"]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![3 => "\"[abc]\"", 1 => string()]
}

fn string() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        4 => "[a-z é中😀]{1,4}",
        1 => r#"\\["\\/bfnrt]"#,
        1 => r"\\u00[2-9a-fA-F][0-9a-fA-F]",
        1 => r"\\u[dD]83[dD]\\uDE[0-4][0-9a-f]",
    ];
    prop::collection::vec(fragment, 0..6)
        .prop_map(|fragments| format!("\"{}\"", fragments.concat()))
}

/// The text in three parts, cut at random positions.
fn in_three(text: &str, seed: u64) -> [&str; 3] {
    let mut rng = Rng::new(seed);
    let (head, tail) = text.split_at(boundary(text, rng.below(text.len() + 1)));
    let (middle, tail) = tail.split_at(boundary(tail, rng.below(tail.len() + 1)));
    [head, middle, tail]
}

/// The last character boundary up to `at`.
fn boundary(text: &str, at: usize) -> usize {
    let mut offsets = (0..=at.min(text.len())).rev();
    offsets.find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Fragments of `size` bytes, or of one character if that is longer.
fn fragments(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = boundary(rest, size);
        let first = rest.chars().next()?.len_utf8();
        let (fragment, tail) = rest.split_at(at.max(first));
        rest = tail;
        Some(fragment)
    })
}

/// About a megabyte: one long string, and an array of small objects.
fn megabyte() -> String {
    let mut text = String::from("{\"answer\":\"");
    while text.len() < 600_000 {
        text.push_str("Some words of an answer, \\\"quoted\\\"\\n\\u00e9 and \\ud83d\\ude00 é中. ");
    }
    text.push_str("\",\"rows\":[");
    let row = |row| format!("{{\"id\":{row},\"name\":\"row {row}\",\"ok\":true}},");
    text.extend((0..8_000).map(row));
    text.push_str("null]}");
    text
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn public_types_are_send_sync_and_debug() {
    fn check<T: std::fmt::Debug + Send + Sync + 'static>() {}
    check::<(Field, FieldError, Pointer, PointerError)>();
    check::<(Partial, PartialOptions, Verdict)>();
    check::<(Repair, Repaired<'static>)>();
}
