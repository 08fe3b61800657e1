//! Compares the reader with `serde_json` on random documents.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::super::*;

/// The `Value` that `serde_json` makes of the same text.
fn to_value(node: &Node<'_>) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Number(raw) => serde_json::from_str(raw).unwrap(),
        Value::String(string) => Json::String(string.to_cow().into_owned()),
        Value::Array(items) => items.iter().map(to_value).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, node)| (key.clone(), to_value(node)))
            .collect(),
    }
}

/// Compares the reader with `serde_json`; returns whether the text was accepted.
fn compare(text: &str) -> Result<bool, TestCaseError> {
    let theirs = serde_json::from_str::<Json>(text);
    let ours = read(text, 512);
    if let Ok(value) = &theirs {
        let node = ours
            .as_ref()
            .map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        prop_assert!(node.clean);
        prop_assert_eq!(&to_value(node), value);
        prop_assert_eq!(node.raw, text.trim_matches([' ', '\n', '\r', '\t']));
    }
    let Ok(node) = ours else { return Ok(false) };
    compare_json(&node)?;
    Ok(true)
}

/// Checks for every node that `clean` agrees with `serde_json`, except for numbers that a `Value` has no room for, and
/// that its JSON is valid.
/// its JSON is valid.
fn compare_json(node: &Node<'_>) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_str::<Json>(node.raw);
    let too_large = |error: &serde_json::Error| {
        node.clean && error.to_string().starts_with("number out of range")
    };
    match &theirs {
        Ok(_) => prop_assert!(node.clean, "{}", node.raw),
        Err(error) => prop_assert!(!node.clean || too_large(error), "{}", node.raw),
    }
    let raw = serde_json::from_str::<&serde_json::value::RawValue>(node.raw);
    prop_assert!(!node.clean || raw.is_ok(), "{}", node.raw);
    let json = serde_json::from_str::<Json>(&write::json_in_range(node));
    prop_assert!(json.is_ok(), "{:?} of {}", json, node.raw);
    let given = serde_json::from_str::<Json>(&node.to_json());
    prop_assert!(
        given
            .as_ref()
            .err()
            .is_none_or(|error| error.to_string().starts_with("number out of range")),
        "{}",
        node.raw
    );
    if theirs.is_ok() {
        prop_assert_eq!(given.unwrap(), to_value(node));
    }
    let items = node.as_array().into_iter().flatten();
    let fields = node.as_object().into_iter().flatten().map(|(_, node)| node);
    items.chain(fields).try_for_each(compare_json)
}

fn documents() -> impl Strategy<Value = Json> {
    let key = || prop_oneof!["[ab]", any::<String>()];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn texts() -> impl Strategy<Value = String> {
    (documents(), any::<bool>()).prop_map(|(document, pretty)| {
        if pretty {
            format!("{document:#}")
        } else {
            document.to_string()
        }
    })
}

/// Tokens that are likely to reach a rule of JSON, or of this reader.
fn tokens() -> impl Strategy<Value = Vec<u8>> {
    const TOKENS: &[&str] = &[
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "\\", "\\u", "\\ud83d", "\\ude00",
        "\\u00e9", "\\d", "\\n", "null", "true", "false", "NaN", "Infinity", "-", "0", "7", "12",
        ".", "e", "E+", "1e999", " ", "\n", "\t", "\u{1}", "é", "😀", "\u{feff}", "+", "308",
        "1.5",
    ];
    prop_oneof![
        9 => prop::sample::select(TOKENS).prop_map(|token| token.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..3),
    ]
}

fn mutated() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize, tokens()), 1..4);
    (texts(), edits).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for (at, cut, token) in edits {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + cut);
            bytes.splice(at..end, token);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_documents_are_read_as_serde_json_reads_them(text in texts()) {
        prop_assert!(compare(&text)?);
    }

    #[test]
    fn mutated_documents_are_read_as_serde_json_reads_them(text in mutated()) {
        compare(&text)?;
    }

    #[test]
    fn random_token_sequences_are_read_as_serde_json_reads_them(heap in prop::collection::vec(tokens(), 0..12)) {
        let heap = String::from_utf8_lossy(&heap.concat()).into_owned();
        compare(&heap)?;
        compare(&format!("[\"{heap}\"]"))?;
    }

    #[test]
    fn long_numbers_are_read_as_serde_json_reads_them(
        number in "-?(0|[1-9][0-9]{0,24}|17976931348623[0-9]{3,8})([.][0-9]{1,24})?([eE]([+-]?[0-9]{1,3}|[+]?(2[89][0-9]|30[0-9])))?",
    ) {
        prop_assert!(compare(&number)?);
    }

    #[test]
    fn a_cut_document_is_truncated(document in texts(), at in any::<prop::sample::Index>()) {
        let text = format!("[{document}]");
        let cut = (0..=at.index(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap();
        let offset = cut;
        prop_assert_eq!(read(&text[..cut], 512), Err(NodeError::Truncated { offset }));
    }
}
