use serde_json::Value;
use unbraid::{CallKind, CallStatus, Config, Demux};
use unbraid_testkit::fixture::Fixture;

use super::StreamIndenter;

fn indented(fragments: &[&str]) -> (String, StreamIndenter) {
    let mut indenter = StreamIndenter::new(CallKind::Function);
    let mut out = String::new();
    for fragment in fragments {
        indenter.push(fragment, &mut out);
    }
    (out, indenter)
}

/// Indents a text, in fragments of every size.
#[track_caller]
fn check(text: &str, expected: &str) {
    let chars: Vec<char> = text.chars().collect();
    for size in 1..=chars.len() {
        let fragments: Vec<String> = chars.chunks(size).map(|c| c.iter().collect()).collect();
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        assert_eq!(indented(&fragments).0, expected, "in fragments of {size}");
    }
}

#[test]
fn each_member_is_on_its_own_line() {
    check(
        r#"{"city":"Oslo","days":[1, 2],"deep":{"a" : null}}"#,
        "{\n  \"city\": \"Oslo\",\n  \"days\": [\n    1,\n    2\n  ],\n  \"deep\": {\n    \"a\": null\n  }\n}",
    );
    check("{ }", "{}");
    check(r#"[[],{}]"#, "[\n  [],\n  {}\n]");
    check(" 12 ", "12");
}

#[test]
fn numbers_strings_and_duplicate_keys_are_unchanged() {
    check(
        r#"[12345678901234567890123, 1.50, 1e999]"#,
        "[\n  12345678901234567890123,\n  1.50,\n  1e999\n]",
    );
    check(r#"{"a":1,"a":2}"#, "{\n  \"a\": 1,\n  \"a\": 2\n}");
    check(r#"["{,}: [\"x\\"]"#, "[\n  \"{,}: [\\\"x\\\\\"\n]");
}

#[test]
fn escaped_letters_are_decoded() {
    check(r#"["Bygd\u00f8y \ud83d\ude00"]"#, "[\n  \"Bygdøy 😀\"\n]");
    check(
        r#"["\n\u001b\u0022\u005c"]"#,
        "[\n  \"\\n\\u001b\\u0022\\u005c\"\n]",
    );
    check(
        r#"["\ud83d.", "\ud83d\n", "\ude00"]"#,
        "[\n  \"\\ud83d.\",\n  \"\\ud83d\\n\",\n  \"\\ude00\"\n]",
    );
    check(r#"["\ud83d\u00f8"]"#, "[\n  \"\\ud83d\\u00f8\"\n]");
}

#[test]
fn raw_line_ends_in_a_string_are_escaped() {
    check("[\"a\nb\"]", "[\n  \"a\\nb\"\n]");
}

#[test]
fn every_prefix_is_shown_and_the_output_only_grows() {
    let text = r#"{"city":"Oslo","ages":[5,8],"note":"\u00e6"}"#;
    let mut indenter = StreamIndenter::new(CallKind::Function);
    let (mut out, mut before) = (String::new(), String::new());
    for c in text.chars() {
        indenter.push(c.encode_utf8(&mut [0; 4]), &mut out);
        assert!(out.starts_with(&before), "{out}");
        before.clone_from(&out);
    }
    assert_eq!(indented(&[r#"{"city":"Os"#]).0, "{\n  \"city\": \"Os");
    assert_eq!(
        indented(&[r#"{"city":"Oslo","#]).0,
        "{\n  \"city\": \"Oslo\","
    );
}

#[test]
fn a_value_is_complete_when_it_closes() {
    assert!(!indented(&["{\"a\":1"]).1.is_complete());
    assert!(indented(&["{\"a\":1", "} "]).1.is_complete());
    assert!(!indented(&["12"]).1.is_complete(), "a digit may follow");
    assert!(!indented(&[""]).1.is_complete());
    assert!(!indented(&["{}{"]).1.is_complete());
}

#[test]
fn further_values_begin_a_new_line() {
    check(r#"{}{"a":1}"#, "{}\n{\n  \"a\": 1\n}");
}

#[test]
fn text_that_is_not_json_is_unchanged() {
    let (out, indenter) = indented(&["{\"a\":", "oops,", "  x}"]);
    assert_eq!(out, "{\n  \"a\":oops,  x}");
    assert!(indenter.is_raw());
    assert_eq!(indented(&["ls  -l\n"]).0, "ls  -l\n");
    let mut custom = StreamIndenter::new(CallKind::Custom);
    let mut out = String::new();
    custom.push("{\"a\":1}", &mut out);
    assert_eq!(out, "{\"a\":1}");
}

#[test]
fn indenting_preserves_the_value_of_every_call_in_the_fixtures() {
    let mut compared = 0;
    for fixture in Fixture::all() {
        let mut demux = Demux::new(Config::default());
        demux.feed(&fixture.bytes);
        demux.finish();
        let calls = demux
            .choices()
            .flat_map(|choice| choice.message().tool_calls);
        for call in calls.filter(|call| call.status == Some(CallStatus::Complete)) {
            let (out, indenter) = indented(&[&call.arguments]);
            if let Ok(value) = serde_json::from_str::<Value>(&call.arguments) {
                let indented: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(indented, value, "{}", fixture.name);
                assert!(indenter.is_complete() || !(value.is_object() || value.is_array()));
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "{compared}");
}
