//! T16 to T27: names and arguments in fragments.

use unbraid_core::{CallIndex, CallStatus, ChoiceIndex, Config};

use super::{HEADER, calls, check, check_declared, demux};

#[test]
fn t16_t17_a_call_starts_when_its_name_is_complete() {
    let pieces = |first: &str, second: &str| {
        calls(&[
            &format!(r#"{{"index":0,"id":"c1","function":{{"name":"{first}"}}}}"#),
            &format!(r#"{{"index":0,"function":{{"name":"{second}"}}}}"#),
            r#"{"index":0,"function":{"arguments":"{}"}}"#,
        ])
    };
    let expect = |chunks: &[String], tools: &[&str], name: &str| {
        let events = format!(
            "
            |+0 #0 c1 {name:?} function
            | 0 {{}}
            |   =tool_calls
            |.0 complete"
        );
        let call = format!("#0 c1 {name:?} function {{}} complete");
        check_declared(tools, chunks, &events, &[&call]);
    };
    expect(&pieces("edit_ex", "isting"), &[], "edit_existing");
    expect(&pieces("get_w", "get_weather"), &[], "get_weather");
    expect(
        &pieces("search", "web_search"),
        &["web_search"],
        "web_search",
    );
    expect(&pieces("get", "get_w"), &["getget_w"], "getget_w");
}

#[test]
fn t16_declared_names_distinguish_a_fragment_from_the_next_call_without_an_index() {
    let chunks = calls(&[
        r#"{"id":"c1","function":{"name":"edit_"}}"#,
        r#"{"function":{"name":"file","arguments":"{}"}}"#,
    ]);
    let events = r#"
        |+0 #- c1 "edit_file" function
        | 0 {}
        |   =tool_calls
        |.0 complete"#;
    let whole = r#"#- c1 "edit_file" function {} complete"#;
    check_declared(&["edit_file"], &chunks, events, &[whole]);
    let two = [
        r#"#- c1 "edit_" function  empty_as_object"#,
        r##"#- - "file" function {} missing_id"##,
    ];
    let events = r#"
        |+0 #- c1 "edit_" function
        |+1 #- - "file" function
        | 1 {}
        |   =tool_calls
        |.0 empty_as_object
        |.1 missing_id"#;
    check_declared(&["edit_", "file"], &chunks, events, &two);
}

/// Without an index, a name after the arguments of a call with an id is that of this call.
#[test]
fn t18_t03_a_name_after_the_arguments_needs_no_index() {
    check(
        &calls(&[
            r#"{"id":"c1","function":{"arguments":"{\"a\":1}"}}"#,
            r#"{"function":{"name":"add"}}"#,
            r#"{"id":"c2","function":{"name":"sub","arguments":"{}"}}"#,
        ]),
        r#"
        |+0 #- c1 "add" function
        | 0 {"a":1}
        |+1 #- c2 "sub" function
        | 1 {}
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r##"#- c1 "add" function {"a":1} complete"##,
            r##"#- c2 "sub" function {} complete"##,
        ],
    );
}

#[test]
fn t18_arguments_wait_for_the_name() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"arguments":"{\"a\""}}"#,
            r#"{"index":0,"function":{"arguments":":"}}"#,
            r#"{"index":0,"function":{"name":"add","arguments":"1}"}}"#,
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

#[test]
fn t20_t21_an_object_is_a_complete_value_and_an_empty_one_is_a_placeholder() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":{ "a": 1 }}}"#,
            r#"{"index":1,"id":"c2","function":{"name":"add","arguments":{}}}"#,
            r#"{"index":1,"function":{"arguments":"{\"a\":2}"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {"a":1}
        |+1 #1 c2 "add" function
        | 1 {"a":2}
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c1 "add" function {"a":1} complete"#,
            r#"#1 c2 "add" function {"a":2} complete"#,
        ],
    );
}

#[test]
fn t22_a_placeholder_in_text_stays_in_the_raw_text() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"a\":1}"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {}
        | 0 {"a":1}
        |   =tool_calls
        |.0 repaired
        |   !T22"#,
        &[r#"#0 c1 "add" function {}{"a":1} repaired"#],
    );
}

#[test]
fn t23_no_arguments_are_an_empty_object_and_the_raw_text_stays_empty() {
    check(
        &calls(&[
            HEADER,
            r#"{"index":1,"id":"c2","function":{"name":"mul","arguments":" \n"}}"#,
        ]),
        "
        |+0 #0 c1 \"add\" function
        |+1 #1 c2 \"mul\" function
        | 1  
        |
        |   =tool_calls
        |.0 empty_as_object
        |.1 empty_as_object"
            .trim_end(),
        &[
            "#0 c1 \"add\" function  empty_as_object",
            "#1 c2 \"mul\" function  \n empty_as_object",
        ],
    );
}

#[test]
fn t24_t25_t26_fragments_are_appended_verbatim() {
    let fragment = |text: &str| format!(r#"{{"index":0,"function":{{"arguments":"{text}"}}}}"#);
    let of = |texts: &[&str]| {
        let fragments: Vec<String> = texts.iter().map(|text| fragment(text)).collect();
        let entries = std::iter::once(HEADER).chain(fragments.iter().map(String::as_str));
        let demux = demux(&calls(&entries.collect::<Vec<_>>()), Config::default());
        let call = demux
            .choice(ChoiceIndex(0))
            .and_then(|choice| choice.call(CallIndex(0)));
        let call = call.expect("the call exists");
        (call.arguments.clone(), call.status)
    };
    let check = |texts: &[&str], arguments: &str, status| {
        assert_eq!(of(texts), (arguments.to_owned(), Some(status)));
    };
    check(&["[1", ",1", ",1", "]"], "[1,1,1]", CallStatus::Complete);
    check(&["[1,", "[1,", "2]"], "[1,[1,2]", CallStatus::Truncated);
    check(&["[1", "[1,2]"], "[1[1,2]", CallStatus::Invalid);
}

#[test]
fn t27_arguments_that_parse_do_not_end_the_call() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"1"}}"#,
            r#"{"index":0,"function":{"arguments":"0"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 1
        | 0 0
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function 10 complete"#],
    );
}
