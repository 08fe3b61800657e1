//! Tool calls and the legacy function call.

use super::check_deltas;

/// Each list of `tool_calls` entries as a delta.
#[track_caller]
fn check_calls(entries: &[&str], expected: &[&str]) {
    let deltas: Vec<String> = entries
        .iter()
        .map(|list| format!("{{\"tool_calls\":[{list}]}}"))
        .collect();
    let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
    check_deltas(&deltas, &[&["c0 text \"\""], expected].concat());
}

#[test]
fn calls_are_found_by_id_index_or_as_the_latest() {
    let header = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#;
    let other_id = r#"{"index":0,"id":"b","function":{"name":"f","arguments":"2"}}"#;
    let other_index = r#"{"index":1,"id":"a","function":{"name":"f","arguments":"2"}}"#;
    let nameless = r#"{"index":0,"id":"c","function":{"arguments":"3"}}"#;
    let unindexed = r#"{"id":"d","function":{"name":"g","arguments":"4"}}"#;
    check_calls(
        &[header, other_id, nameless],
        &["c0 function a f 1", "c0 function b f 23"],
    );
    check_calls(
        &[header, other_index],
        &["c0 function a f 1", "c0 function a f 2"],
    );
    check_calls(&[header, nameless], &["c0 function a f 13"]);
    check_calls(
        &[unindexed, header, r#"{"function":{"arguments":"5"}}"#],
        &["c0 function d g 4", "c0 function a f 15"],
    );
    check_calls(
        &[unindexed, r#"{"index":3,"function":{"arguments":"5"}}"#],
        &["c0 function d g 45"],
    );
    check_calls(
        &[r#"{"index":3,"function":{"arguments":"5"}}"#, unindexed],
        &["c0 function d g 54"],
    );
    let f = r#"{"id":"a","function":{"name":"f","arguments":""}}"#;
    let g = r#"{"id":"b","function":{"name":"g","arguments":""}}"#;
    let fragment =
        |index: u32| format!(r#"{{"index":{index},"function":{{"arguments":"{index}"}}}}"#);
    check_calls(
        &[f, g, &fragment(0), &fragment(1), &fragment(0)],
        &["c0 function a f 00", "c0 function b g 1"],
    );
    check_calls(
        &[f, g, &fragment(1), &fragment(0)],
        &["c0 function a f 0", "c0 function b g 1"],
    );
    let two = format!("{unindexed},{unindexed}");
    check_calls(&[&two], &["c0 function d g 4", "c0 function d g 4"]);
}

#[test]
fn names_are_folded_and_arguments_are_not() {
    let name = |name| format!(r#"{{"index":0,"function":{{"name":"{name}","arguments":"x"}}}}"#);
    let [get, get_w, w, empty] = ["get", "get_w", "eather", ""].map(name);
    check_calls(
        &[&get, &get, &get_w, &w, &empty],
        &["c0 function - get_weather xxxxx"],
    );
}

#[test]
fn arguments_are_text_or_json() {
    check_calls(
        &[r#"{"function":{"name":"f","arguments":{"b":[1, 2],"a":null}}}"#],
        &["c0 function - f {\"b\":[1,2],\"a\":null}"],
    );
    check_calls(
        &[
            r#"{"function":{"name":"f","arguments":{}}}"#,
            r#"{"function":{"arguments":"{}"}}"#,
        ],
        &["c0 function - f {}"],
    );
    check_calls(
        &[r#"{"type":"custom","custom":{"name":"f","input":"{"}}"#],
        &["c0 custom - f {"],
    );
    check_deltas(
        &[r#"{"tool_calls":{"id":"a"}}"#],
        &["c0 text \"\"", "c0 function a - "],
    );
}

#[test]
fn a_legacy_call_that_only_repeats_is_dropped() {
    let legacy = r#"{"function_call":{"name":"f","arguments":"{}"}}"#;
    let call = r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}"#;
    check_deltas(&[legacy], &["c0 text \"\"", "c0 legacy f {}"]);
    check_deltas(&[legacy, call], &["c0 text \"\"", "c0 function - f {}"]);
    check_deltas(
        &[legacy, call, legacy],
        &["c0 text \"\"", "c0 function - f {}", "c0 legacy f {}{}"],
    );
}
