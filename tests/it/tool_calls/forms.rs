//! T28 to T45: mixed fragments, other forms of a call, and other fields next to a call.

use unbraid_core::{CallIndex, ChoiceIndex, Config, Limits};

use super::{call, calls, check, check_choice, check_declared, delta, demux, finish};

#[test]
fn t28_t29_fragments_of_two_calls_may_be_mixed_in_one_chunk() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add"}},{"index":1,"id":"c2","function":{"name":"mul"}}"#,
            r#"{"index":0,"function":{"arguments":"{"}},{"index":1,"function":{"arguments":"["}},{"index":0,"function":{"arguments":"}"}}"#,
            r#"{"index":1,"function":{"arguments":"]"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        |+1 #1 c2 "mul" function
        | 0 {
        | 1 [
        | 0 }
        | 1 ]
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c1 "add" function {} complete"#,
            r#"#1 c2 "mul" function [] complete"#,
        ],
    );
}

#[test]
fn t31_the_input_of_a_custom_tool_is_text() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","type":"custom","custom":{"name":"run","input":"ls {"}}"#,
            r#"{"index":0,"custom":{"input":" -l"}}"#,
        ]),
        r#"
        |+0 #0 c1 "run" custom
        | 0 ls {
        | 0  -l
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "run" custom ls { -l complete"#],
    );
}

#[test]
fn t34_a_call_in_the_chunk_of_the_finish_reason_precedes_it() {
    let entry = r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}"#;
    check(
        &[format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{entry}]}},"finish_reason":"stop"}}"#
        )],
        r#"
        |+0 #0 c1 "add" function
        | 0 {}
        |   =stop
        |.0 complete"#,
        &[r#"#0 c1 "add" function {} complete"#],
    );
}

#[test]
fn t35_a_call_after_the_finish_reason_is_delivered_until_the_choice_ends() {
    let entry = |id: &str| {
        delta(&format!(
            r#"{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"add","arguments":"{{}}"}}}}]}}"#
        ))
    };
    check(
        &[entry("c1"), finish("stop"), entry("c2")],
        r#"
        |+0 #0 c1 "add" function
        | 0 {}
        |   =stop
        |   !F6
        |+1 #0 c2 "add" function
        | 1 {}
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c1 "add" function {} complete"#,
            r#"#0 c2 "add" function {} complete"#,
        ],
    );
}

#[test]
fn t36_t38_the_legacy_function_call_is_a_separate_kind() {
    check(
        &[
            delta(r#"{"function_call":null,"content":"a"}"#),
            delta(r#"{"function_call":{"name":"add","arguments":""}}"#),
            delta(r#"{"function_call":{"arguments":"{}"}}"#),
            finish("function_call"),
        ],
        r#"
        |   a
        |+0 #- - "add" function_call
        | 0 {}
        |   =function_call
        |.0 complete"#,
        &[r#"#- - "add" function_call {} complete"#],
    );
}

#[test]
fn t37_a_call_in_both_forms_is_one_in_the_message_and_two_in_the_events() {
    let both = |arguments: &str| {
        delta(&format!(
            r#"{{"function_call":{{"name":"add","arguments":"{arguments}"}},"tool_calls":[{{"index":0,"id":"c1","function":{{"name":"add","arguments":"{{}}"}}}}]}}"#
        ))
    };
    let events = |old: &str| {
        format!(
            r#"
        |+0 #0 c1 "add" function
        | 0 {{}}
        |+1 #- - "add" function_call
        | 1 {old}
        |   =tool_calls
        |.0 complete
        |.1 complete"#
        )
    };
    let new = r#"#0 c1 "add" function {} complete"#;
    let chunks = [both("{}"), finish("tool_calls")];
    check(&chunks, &events("{}"), &[new]);
    let twice = demux(&chunks, Config::default());
    let old = twice
        .choice(ChoiceIndex(0))
        .and_then(|choice| choice.call(CallIndex(1)));
    assert_eq!(
        old.as_ref().map(call).as_deref(),
        Some(r#"#- - "add" function_call {} complete"#)
    );
    let old = r#"#- - "add" function_call [] complete"#;
    check(
        &[both("[]"), finish("tool_calls")],
        &events("[]"),
        &[new, old],
    );
}

#[test]
fn t39_text_after_the_value_is_invalid_json() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":1}<think>"}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {"a":1}<think>
        |   =tool_calls
        |.0 invalid"#,
        &[r#"#0 c1 "add" function {"a":1}<think> invalid"#],
    );
}

#[test]
fn t40_the_last_value_of_other_fields_of_a_call_is_kept() {
    let chunks = calls(&[
        r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{"},"extra_content":{"google":{"thought_signature":"Cp"}},"mark":1}"#,
        r#"{"index":0,"function":{"arguments":"}"},"mark":2}"#,
        r#"{"index":0,"mark":3}"#,
    ]);
    let demux = demux(&chunks, Config::default());
    let call = demux
        .choice(ChoiceIndex(0))
        .and_then(|choice| choice.call(CallIndex(0)));
    let extra = call.expect("the call exists").extra;
    let extra: Vec<(&str, &str)> = extra.iter().map(|(key, raw)| (&**key, &**raw)).collect();
    let signature = r#"{"google":{"thought_signature":"Cp"}}"#;
    assert_eq!(extra, [("extra_content", signature), ("mark", "3")]);
}

#[test]
fn t41_t42_null_is_ignored_and_an_object_is_one_entry() {
    check(
        &[
            delta(r#"{"content":"a","tool_calls":null}"#),
            delta(r#"{"tool_calls":[]}"#),
            delta(
                r#"{"tool_calls":{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}}"#,
            ),
            finish("tool_calls"),
        ],
        r#"
        |   a
        |+0 #0 c1 "add" function
        | 0 {}
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function {} complete"#],
    );
}

#[test]
fn t43_each_choice_has_its_own_index_0() {
    let entry = |choice: u32, rest: &str| {
        format!(r#"{{"index":{choice},"delta":{{"tool_calls":[{{"index":0,{rest}}}]}}}}"#)
    };
    let chunks = [
        entry(0, r#""id":"c1","function":{"name":"add","arguments":"{"}"#),
        entry(1, r#""id":"c2","function":{"name":"mul","arguments":"["}"#),
        entry(0, r#""function":{"arguments":"}"}"#)
            + ","
            + &entry(1, r#""function":{"arguments":"]"}"#),
    ];
    let demux = demux(&chunks, Config::default());
    let events = r#"
        |+0 #0 c1 "add" function
        | 0 {
        | 0 }
        |.0 complete"#;
    let first = r#"#0 c1 "add" function {} complete"#;
    check_choice(&demux, 0, events, &[first]);
    let events = r#"
        |+0 #0 c2 "mul" function
        | 0 [
        | 0 ]
        |.0 complete"#;
    check_choice(&demux, 1, events, &[r#"#0 c2 "mul" function [] complete"#]);
}

#[test]
fn t44_an_undeclared_name_is_delivered() {
    let chunks = calls(&[r#"{"index":0,"id":"c1","function":{"name":"rm","arguments":"{}"}}"#]);
    let events = r#"
        |+0 #0 c1 "rm" function
        | 0 {}
        |   =tool_calls
        |.0 complete"#;
    check_declared(
        &["add"],
        &chunks,
        events,
        &[r#"#0 c1 "rm" function {} complete"#],
    );
}

#[test]
fn t45_exceeding_the_limit_on_calls_ends_only_its_choice() {
    let entry = |choice: u32, index: u32| {
        format!(
            r#"{{"index":{choice},"delta":{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"add","arguments":"{{}}"}}}}]}}}}"#
        )
    };
    let options = Config::default().with_limits(Limits::default().with_tool_calls(1));
    let demux = demux(&[entry(0, 0), entry(1, 0), entry(0, 1)], options);
    let events = r#"
        |+0 #0 c0 "add" function
        | 0 {}
        |.0 complete"#;
    let call = r#"#0 c0 "add" function {} complete"#;
    check_choice(&demux, 1, events, &[call]);
    let cut = events.to_owned() + "\n        |   =limit_exceeded";
    check_choice(&demux, 0, &cut, &[call]);
}
