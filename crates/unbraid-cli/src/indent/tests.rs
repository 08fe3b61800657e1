use serde_json::Value;
use unbraid::{CallKind, CallStatus, Config, Demux};
use unbraid_testkit::fixture::Fixture;

use super::Indenter;

fn indented(fragments: &[&str]) -> (String, Indenter) {
    let mut indenter = Indenter::new(CallKind::Function);
    let mut out = String::new();
    for fragment in fragments {
        indenter.push(fragment, &mut out);
    }
    (out, indenter)
}

/// Lays a text out, in fragments of every size.
#[track_caller]
fn check(text: &str, expected: &str) {
    let chars: Vec<char> = text.chars().collect();
    for size in 1..=chars.len() {
        let fragments: Vec<String> = chars.chunks(size).map(|c| c.iter().collect()).collect();
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        assert_eq!(indented(&fragments).0, expected, "in pieces of {size}");
    }
}

#[test]
fn each_member_has_a_line() {
    check(
        r#"{"city":"Oslo","days":[1, 2],"deep":{"a" : null}}"#,
        "{\n  \"city\": \"Oslo\",\n  \"days\": [\n    1,\n    2\n  ],\n  \"deep\": {\n    \"a\": null\n  }\n}",
    );
    check("{ }", "{}");
    check(r#"[[],{}]"#, "[\n  [],\n  {}\n]");
    check(" 12 ", "12");
}

#[test]
fn the_text_stays_the_models() {
    check(
        r#"[12345678901234567890123, 1.50, 1e999]"#,
        "[\n  12345678901234567890123,\n  1.50,\n  1e999\n]",
    );
    check(r#"{"a":1,"a":2}"#, "{\n  \"a\": 1,\n  \"a\": 2\n}");
    check(r#"["{,}: [\"x\\"]"#, "[\n  \"{,}: [\\\"x\\\\\"\n]");
}

#[test]
fn escaped_letters_are_shown() {
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
fn raw_line_ends_in_a_string_break_no_line() {
    check("[\"a\nb\"]", "[\n  \"a\\nb\"\n]");
}

#[test]
fn what_has_come_is_shown_and_only_added_to() {
    let text = r#"{"city":"Oslo","ages":[5,8],"note":"\u00e6"}"#;
    let mut indenter = Indenter::new(CallKind::Function);
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
fn a_value_is_whole_when_it_closes() {
    assert!(!indented(&["{\"a\":1"]).1.is_whole());
    assert!(indented(&["{\"a\":1", "} "]).1.is_whole());
    assert!(!indented(&["12"]).1.is_whole(), "a digit may follow");
    assert!(!indented(&[""]).1.is_whole());
    assert!(!indented(&["{}{"]).1.is_whole());
}

#[test]
fn further_values_have_lines_of_their_own() {
    check(r#"{}{"a":1}"#, "{}\n{\n  \"a\": 1\n}");
}

#[test]
fn what_is_no_json_stays_as_it_came() {
    let (out, indenter) = indented(&["{\"a\":", "oops,", "  x}"]);
    assert_eq!(out, "{\n  \"a\":oops,  x}");
    assert!(indenter.is_raw());
    assert_eq!(indented(&["ls  -l\n"]).0, "ls  -l\n");
    let mut custom = Indenter::new(CallKind::Custom);
    let mut out = String::new();
    custom.push("{\"a\":1}", &mut out);
    assert_eq!(out, "{\"a\":1}");
}

#[test]
fn the_calls_of_every_fixture_keep_their_value() {
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
                let shown: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(shown, value, "{}", fixture.name);
                assert!(indenter.is_whole() || !(value.is_object() || value.is_array()));
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "{compared}");
}
