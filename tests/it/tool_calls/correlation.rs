//! T1 to T8: how entries are assigned to calls.

use unbraid_core::{CallIndex, ChoiceIndex, Config};

use super::{HEADER, calls, check, demux};

#[test]
fn t01_a_header_then_fragments() {
    check(
        &calls(&[
            HEADER,
            r#"{"index":0,"function":{"arguments":"{\"a\":"}}"#,
            r#"{"index":0,"function":{"arguments":"1}"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {"a":
        | 0 1}
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function {"a":1} complete"#],
    );
}

/// A header with its index and two fragments with only the index are one call.
#[test]
fn seed_a_fragmented_call_is_one_call() {
    check(
        &calls(&[
            r#"{"index":0,"id":"call_123","type":"function","function":{"name":"calculator","arguments":{}}}"#,
            r#"{"index":0,"function":{"arguments":"{\"expression\":"}}"#,
            r#"{"index":0,"function":{"arguments":"\"1+2\"}"}}"#,
        ]),
        r#"
        |+0 #0 call_123 "calculator" function
        | 0 {"expression":
        | 0 "1+2"}
        |   =tool_calls
        |.0 complete"#,
        &[r##"#0 call_123 "calculator" function {"expression":"1+2"} complete"##],
    );
}

/// A header with complete arguments is one call.
#[test]
fn seed_a_call_in_a_single_chunk_is_one_call() {
    check(
        &calls(&[
            r#"{"index":0,"id":"call_123","type":"function","function":{"name":"calculator","arguments":{"expression":"1+2"}}}"#,
        ]),
        r#"
        |+0 #0 call_123 "calculator" function
        | 0 {"expression":"1+2"}
        |   =tool_calls
        |.0 complete"#,
        &[r##"#0 call_123 "calculator" function {"expression":"1+2"} complete"##],
    );
}

/// A header without its index, and fragments without id and name, are one call.
#[test]
fn seed_fragments_with_an_index_continue_a_header_without() {
    check(
        &calls(&[
            r#"{"id":"call_123","type":"function","function":{"name":"calculator","arguments":{}}}"#,
            r#"{"index":0,"function":{"arguments":"{\"expression\":"}}"#,
            r#"{"index":0,"function":{"arguments":"\"1+2\"}"}}"#,
        ]),
        r#"
        |+0 #0 call_123 "calculator" function
        | 0 {"expression":
        | 0 "1+2"}
        |   =tool_calls
        |.0 complete"#,
        &[r##"#0 call_123 "calculator" function {"expression":"1+2"} complete"##],
    );
}

/// If no header has an index, the index of the fragments counts the headers.
#[test]
fn t02_an_unknown_index_counts_the_headers_without_an_index() {
    let [f, g] = ["f", "g"].map(|name| {
        format!(r#"{{"id":"c_{name}","function":{{"name":"{name}","arguments":""}}}}"#)
    });
    let fragment = |index: u32, arguments: &str| {
        format!(r#"{{"index":{index},"function":{{"arguments":"{arguments}"}}}}"#)
    };
    let (first, second) = (fragment(0, "[1"), fragment(1, "[2"));
    let (third, fourth) = (fragment(0, "]"), fragment(1, "]"));
    check(
        &calls(&[&f, &g, &first, &second, &third, &fourth]),
        r#"
        |+0 #- c_f "f" function
        |+1 #- c_g "g" function
        | 0 [1
        | 1 [2
        | 0 ]
        | 1 ]
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c_f "f" function [1] complete"#,
            r#"#1 c_g "g" function [2] complete"#,
        ],
    );
    let message = |chunks: &[&str]| {
        let demux = demux(&calls(chunks), Config::default());
        let message = demux.choice(ChoiceIndex(0)).map(|choice| choice.message());
        let calls = message.expect("the choice exists").tool_calls;
        calls
            .into_iter()
            .map(|call| call.arguments)
            .collect::<Vec<_>>()
    };
    // In any order, in one chunk, and with headers whose index is their position in a chunk.
    assert_eq!(
        message(&[&f, &g, &second, &first, &third, &fourth]),
        ["[1]", "[2]"]
    );
    let both = [&*first, &second].join(",");
    assert_eq!(message(&[&f, &g, &both, &third, &fourth]), ["[1]", "[2]"]);
    let headers = [&*f, &g].join(",");
    let h = f.replace("c_f", "c_h").replace("\"f\"", "\"h\"");
    let last = fragment(2, "{}");
    assert_eq!(
        message(&[&headers, &h, &both, &last, &third, &fourth]),
        ["[1]", "[2]", "{}"]
    );
    // Several fragments without an index in one chunk are assigned by position.
    let bare = r#"{"function":{"arguments":"1"}},{"function":{"arguments":"2"}}"#;
    assert_eq!(message(&[&f, &g, bare]), ["1", "2"]);
}

/// The same of fragments that repeat the name.
#[test]
fn t02_t15_an_unknown_index_with_the_name_continues_a_header_without_an_index() {
    let header = |id: &str, name: &str| {
        format!(r#"{{"id":"{id}","function":{{"name":"{name}","arguments":""}}}}"#)
    };
    let fragment = |index: u32, name: &str, arguments: &str| {
        format!(r#"{{"index":{index},"function":{{"name":"{name}","arguments":"{arguments}"}}}}"#)
    };
    check(
        &calls(&[
            &header("a", "f"),
            &fragment(0, "f", "[1"),
            &fragment(0, "f", "]"),
            &header("b", "f"),
            &fragment(1, "f", "[2"),
            &fragment(1, "f", "]"),
        ]),
        r#"
        |+0 #0 a "f" function
        | 0 [1
        | 0 ]
        |+1 #1 b "f" function
        | 1 [2
        | 1 ]
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 a "f" function [1] complete"#,
            r#"#1 b "f" function [2] complete"#,
        ],
    );
    let arguments = |chunks: &[String]| {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let demux = demux(&calls(&chunks), Config::default());
        let message = demux.choice(ChoiceIndex(0)).map(|choice| choice.message());
        let calls = message.expect("the choice exists").tool_calls;
        let arguments = calls.into_iter().map(|call| call.arguments);
        arguments.collect::<Vec<_>>()
    };
    let headers = [header("a", "f"), header("b", "g")];
    let interleaved = [
        fragment(1, "g", "[2"),
        fragment(0, "f", "[1"),
        fragment(1, "g", "]"),
        fragment(0, "f", "]"),
    ];
    assert_eq!(
        arguments(&[&headers[..], &interleaved].concat()),
        ["[1]", "[2]"]
    );
    // With an index that counts from 1, or another name, or after whole arguments.
    assert_eq!(
        arguments(&[header("a", "f"), fragment(1, "f", "[]")]),
        ["[]"]
    );
    assert_eq!(
        arguments(&[header("a", "f"), fragment(0, "g", "[]")]),
        ["", "[]"]
    );
    let whole = header("a", "f").replace(r#""arguments":"""#, r#""arguments":"[1]""#);
    assert_eq!(arguments(&[whole, fragment(1, "f", "[2]")]), ["[1]", "[2]"]);
}

#[test]
fn t02_an_index_counts_the_headers_only_if_none_of_them_had_one() {
    let f = r#"{"id":"c_f","function":{"name":"f","arguments":""}}"#;
    let g = r#"{"index":3,"id":"c_g","function":{"name":"g","arguments":""}}"#;
    let h = r#"{"id":"c_h","function":{"name":"h","arguments":""}}"#;
    let fragment = r#"{"index":0,"function":{"arguments":"[]"}}"#;
    check(
        &calls(&[f, g, h, fragment]),
        r#"
        |+0 #- c_f "f" function
        |+1 #3 c_g "g" function
        |+2 #0 c_h "h" function
        | 2 []
        |   =tool_calls
        |.0 empty_as_object
        |.1 empty_as_object
        |.2 complete"#,
        &[
            r#"#- c_f "f" function  empty_as_object"#,
            r#"#3 c_g "g" function  empty_as_object"#,
            r#"#0 c_h "h" function [] complete"#,
        ],
    );
}

#[test]
fn t02_a_slot_without_header_adopts_the_next_one() {
    check(
        &calls(&[
            r#"{"index":2,"function":{"arguments":"{}"}}"#,
            r#"{"id":"c1","function":{"name":"add"}}"#,
        ]),
        r#"
        |+0 #2 c1 "add" function
        | 0 {}
        |   =tool_calls
        |.0 complete"#,
        &[r#"#2 c1 "add" function {} complete"#],
    );
}

#[test]
fn t02_arguments_without_a_header_report_what_is_missing() {
    let chunks = calls(&[r#"{"index":0,"function":{"arguments":"{\"a\":1}"}}"#]);
    check(
        &chunks,
        r#"
        |   =tool_calls
        |+0 #0 - "" function
        | 0 {"a":1}
        |.0 missing_name"#,
        &[r##"#0 - "" function {"a":1} missing_name"##],
    );
    let demux = demux(&chunks, Config::default());
    let call = demux
        .choice(ChoiceIndex(0))
        .and_then(|c| c.call(CallIndex(0)))
        .expect("the call exists");
    let problem = call.problem().expect("name and id are missing");
    assert_eq!(problem.missing, ["name", "id"]);
    assert_eq!(
        problem.to_string(),
        "tool call 0 has arguments but no name and no id"
    );
}

#[test]
fn t03_without_any_index_a_new_id_or_another_name_is_a_new_call() {
    check(
        &calls(&[
            r#"{"id":"c1","function":{"name":"add","arguments":"{"}}"#,
            r#"{"function":{"arguments":"}"}}"#,
            r#"{"id":"c2","function":{"name":"add","arguments":"{}"}}"#,
            r#"{"function":{"name":"mul","arguments":"["}}"#,
            r#"{"function":{"name":"mul","arguments":"]"}}"#,
        ]),
        r#"
        |+0 #- c1 "add" function
        | 0 {
        | 0 }
        |+1 #- c2 "add" function
        | 1 {}
        |+2 #- - "mul" function
        | 2 [
        | 2 ]
        |   =tool_calls
        |.0 complete
        |.1 complete
        |.2 missing_id"#,
        &[
            r#"#- c1 "add" function {} complete"#,
            r#"#- c2 "add" function {} complete"#,
            r##"#- - "mul" function [] missing_id"##,
        ],
    );
}

#[test]
fn t03_several_without_index_in_one_chunk_count_by_position() {
    check(
        &calls(&[
            r#"{"function":{"name":"add","arguments":"{}"}},{"function":{"name":"add","arguments":"["}}"#,
            r#"{"index":1,"function":{"arguments":"]"}}"#,
        ]),
        r#"
        |+0 #- - "add" function
        | 0 {}
        |+1 #- - "add" function
        | 1 [
        | 1 ]
        |   =tool_calls
        |.0 missing_id
        |.1 missing_id"#,
        &[
            r##"#- - "add" function {} missing_id"##,
            r##"#1 - "add" function [] missing_id"##,
        ],
    );
}

#[test]
fn t04_t05_t06_an_index_is_a_key_of_any_value() {
    check(
        &calls(&[
            r#"{"index":1,"id":"c1","function":{"name":"add","arguments":"{"}}"#,
            r#"{"index":-1,"id":"c2","function":{"name":"add","arguments":"{"}}"#,
            r#"{"index":2147483648,"id":"c3","function":{"name":"add","arguments":"{"}}"#,
            r#"{"index":-1,"function":{"arguments":"}"}},{"index":2147483648,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"}"}}"#,
        ]),
        r#"
        |+0 #1 c1 "add" function
        | 0 {
        |+1 #-1 c2 "add" function
        | 1 {
        |+2 #2147483648 c3 "add" function
        | 2 {
        | 1 }
        | 2 }
        | 0 }
        |   =tool_calls
        |.0 complete
        |.1 complete
        |.2 complete"#,
        &[
            r#"#1 c1 "add" function {} complete"#,
            r#"#-1 c2 "add" function {} complete"#,
            r#"#2147483648 c3 "add" function {} complete"#,
        ],
    );
}

#[test]
fn t07_a_new_id_with_a_name_is_a_new_call_on_the_same_index() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}"#,
            r#"{"index":0,"id":"c2","function":{"name":"add","arguments":"["}}"#,
            r#"{"index":0,"function":{"arguments":"]"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {}
        |+1 #0 c2 "add" function
        | 1 [
        | 1 ]
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c1 "add" function {} complete"#,
            r#"#0 c2 "add" function [] complete"#,
        ],
    );
}

#[test]
fn t08_two_values_in_one_call_are_reported_at_the_end() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":1}"}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":"{\"a\":2}"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {"a":1}
        | 0 {"a":2}
        |   =tool_calls
        |.0 concatenated
        |   !T27"#,
        &[r#"#0 c1 "add" function {"a":1}{"a":2} concatenated"#],
    );
}
