//! T1 to T45, one after another: what a server sends, the events that come of it, and the calls it adds up to.

use std::fmt::Write as _;

use unbraid_core::{Call, CallStatus, ChoiceIndex, Demux, Event, Limits, Options, Transcript};

/// The entries of `choices` as chunks; those of a chunk stand on one line, parted by ` + `.
fn demux(chunks: &[String], options: Options) -> Demux {
    let mut demux = Demux::new(options);
    for chunk in chunks {
        demux.feed(format!("data: {{\"choices\":[{chunk}]}}\n\n").as_bytes());
    }
    demux.feed(b"data: [DONE]\n\n");
    demux.finish();
    demux
}

/// An entry of choice 0 with this delta.
fn delta(delta: &str) -> String {
    format!("{{\"index\":0,\"delta\":{delta}}}")
}

fn finish(reason: &str) -> String {
    format!("{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}")
}

/// Chunks of choice 0 that hold these entries of `tool_calls`, then its finish reason.
fn calls(chunks: &[&str]) -> Vec<String> {
    let entries = chunks.iter();
    let deltas = entries.map(|entries| delta(&format!("{{\"tool_calls\":[{entries}]}}")));
    deltas.chain([finish("tool_calls")]).collect()
}

/// The events of the calls, one a line: `+` starts one, `.` ends one.
fn told(choice: &Transcript) -> String {
    let mut lines = String::new();
    for event in (0..choice.visible()).filter_map(|seq| choice.event(seq)) {
        let written = match event.event {
            Event::ToolCallStart {
                call,
                index,
                id,
                name,
                kind,
            } => {
                let index = index.map_or_else(|| "-".to_owned(), |index| index.to_string());
                let id = id.unwrap_or("-");
                writeln!(lines, "+{call} #{index} {id} {name:?} {}", kind.as_str())
            }
            Event::ToolCallArguments { call, text } => writeln!(lines, " {call} {text}"),
            Event::ToolCallDone { call, status } => writeln!(lines, ".{call} {status}"),
            Event::Content(text) => writeln!(lines, "   {text}"),
            Event::Finish(reason) => writeln!(lines, "   ={reason}"),
            Event::Warning(warning) => writeln!(lines, "   !{}", warning.code),
            Event::End(end) if end.is_error() => writeln!(lines, "   ={}", end.name()),
            _ => Ok(()),
        };
        written.expect("a string takes a line");
    }
    lines
}

/// A call of the message: `index id name kind arguments status`.
fn call(call: &Call) -> String {
    let index = call
        .index
        .map_or_else(|| "-".to_owned(), |index| index.to_string());
    let id = call.id.as_deref().unwrap_or("-");
    let kind = call.kind.as_str();
    let status = call.status.map_or("-", CallStatus::as_str);
    format!(
        "#{index} {id} {:?} {kind} {} {status}",
        call.name, call.arguments
    )
}

/// What a choice tells of its calls, and what they are at its end.
#[track_caller]
fn check_choice(demux: &Demux, choice: u32, events: &str, calls: &[&str]) {
    let choice = demux.choice(ChoiceIndex(choice)).expect("the choice came");
    assert_eq!(told(choice), unindented(events));
    let message = choice.message();
    let given: Vec<String> = message.tool_calls.iter().map(call).collect();
    assert_eq!(given, calls);
    for call in &message.tool_calls {
        assert_eq!(choice.call(call.call).as_ref(), Some(call), "by ordinal");
    }
}

#[track_caller]
fn check(chunks: &[String], events: &str, calls: &[&str]) {
    check_choice(&demux(chunks, Options::default()), 0, events, calls);
}

#[track_caller]
fn check_declared(tools: &[&str], chunks: &[String], events: &str, calls: &[&str]) {
    let options = Options {
        tools: tools.iter().map(|&tool| tool.into()).collect(),
        ..Options::default()
    };
    check_choice(&demux(chunks, options), 0, events, calls);
}

/// The lines of a literal, without its margin.
fn unindented(text: &str) -> String {
    let lines = text.lines().skip(1).filter_map(|line| line.split_once('|'));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

const HEADER: &str =
    r#"{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}"#;

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

/// A header with its index, then two fragments with the index alone, then the finish: one call, and no orphan.
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

/// A header that carries its arguments: one call, complete, and nothing follows.
#[test]
fn seed_a_call_in_a_single_shot_is_one_call() {
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

/// The header lost its index and the fragments have no id and no name: what ended as an orphan without name and id.
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
fn t02_an_orphan_is_told_with_all_that_it_lacks() {
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
    let demux = demux(&chunks, Options::default());
    let call = demux
        .choice(ChoiceIndex(0))
        .and_then(|c| c.call(0))
        .expect("the call");
    let problem = call.problem().expect("it lacks both");
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
fn t08_two_values_in_one_call_are_told_at_the_end() {
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
        |.0 concatenated"#,
        &[r#"#0 c1 "add" function {"a":1}{"a":2} concatenated"#],
    );
}

#[test]
fn t09_t15_an_id_and_a_name_in_every_fragment_change_nothing() {
    let again = r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"}"}}"#;
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{"}}"#,
            again,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {
        | 0 }
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function {} complete"#],
    );
}

#[test]
fn t10_a_new_id_without_a_name_continues_the_call_which_keeps_its_first() {
    for index in ["\"index\":0,", ""] {
        let shown = if index.is_empty() { "-" } else { "0" };
        let entry =
            |id: &str, rest: &str| format!("{{{index}\"id\":\"{id}\",\"function\":{{{rest}}}}}");
        let header = entry("c1", r#""name":"add","arguments":"{""#);
        let fragment = entry("c2", r#""arguments":"}""#);
        let events = format!(
            "
            |+0 #{shown} c1 \"add\" function
            | 0 {{
            | 0 }}
            |   =tool_calls
            |.0 complete"
        );
        let expected = format!("#{shown} c1 \"add\" function {{}} complete");
        check(&calls(&[&header, &fragment]), &events, &[&expected]);
    }
}

#[test]
fn t11_t19_t33_empty_and_null_say_nothing() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c1","function":{"name":"add","arguments":null}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":"{}"}}"#,
            r#"{"index":0,"id":null,"function":{"name":null,"arguments":""}}"#,
            r#"{"index":0,"id":"","function":{"arguments":null}}"#,
            r#"{"index":1,"id":"","function":{"arguments":null}}"#,
        ]),
        r#"
        |+0 #0 c1 "add" function
        | 0 {}
        |   =tool_calls
        |.0 complete"#,
        &[r#"#0 c1 "add" function {} complete"#],
    );
}

#[test]
fn t12_t30_t32_id_type_and_function_may_come_later() {
    check(
        &calls(&[
            r#"{"index":0,"function":{"name":"add"}}"#,
            r#"{"index":0,"function":{"arguments":"{"}}"#,
            r#"{"index":0,"id":"c1","type":null,"function":{"arguments":"}"}}"#,
            r#"{"index":1,"id":"c2"}"#,
            r#"{"index":1,"function":{"name":"mul","arguments":"{}"}}"#,
        ]),
        r#"
        |+0 #0 - "add" function
        | 0 {
        | 0 }
        |+1 #1 c2 "mul" function
        | 1 {}
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c1 "add" function {} complete"#,
            r#"#1 c2 "mul" function {} complete"#,
        ],
    );
}

#[test]
fn t13_an_id_that_never_came_is_a_status_and_none_is_made_up() {
    check(
        &calls(&[r#"{"index":0,"function":{"name":"add","arguments":"{}"}}"#]),
        r#"
        |+0 #0 - "add" function
        | 0 {}
        |   =tool_calls
        |.0 missing_id"#,
        &[r##"#0 - "add" function {} missing_id"##],
    );
}

#[test]
fn t14_one_id_on_two_indices_is_two_calls_where_a_name_comes_with_it() {
    check(
        &calls(&[
            r#"{"index":0,"id":"c","function":{"name":"add","arguments":"{}"}}"#,
            r#"{"index":1,"id":"c","function":{"name":"add","arguments":"["}}"#,
            r#"{"index":1,"id":"c","function":{"arguments":"]"}}"#,
            r#"{"index":7,"id":"c","function":{"arguments":" "}}"#,
        ]),
        r#"
        |+0 #0 c "add" function
        | 0 {}
        |+1 #1 c "add" function
        | 1 [
        | 1 ]
        | 1  
        |   =tool_calls
        |.0 complete
        |.1 complete"#,
        &[
            r#"#0 c "add" function {} complete"#,
            r#"#1 c "add" function []  complete"#,
        ],
    );
}

#[test]
fn t16_t17_a_call_is_announced_when_its_name_is_stable() {
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
fn t16_declared_names_tell_a_piece_from_the_next_call_where_no_index_does() {
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
fn t20_t21_an_object_is_a_whole_value_and_an_empty_one_holds_the_place() {
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
        let demux = demux(&calls(&entries.collect::<Vec<_>>()), Options::default());
        let call = demux
            .choice(ChoiceIndex(0))
            .and_then(|choice| choice.call(0));
        let call = call.expect("the call came");
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
fn t27_arguments_that_parse_are_no_end_of_the_call() {
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
fn t31_a_custom_tool_takes_text_and_no_json() {
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
fn t34_a_call_beside_the_finish_reason_comes_before_it() {
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
fn t36_t38_the_old_function_call_is_a_call_of_its_own_kind() {
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
    let twice = demux(&chunks, Options::default());
    let old = twice
        .choice(ChoiceIndex(0))
        .and_then(|choice| choice.call(1));
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
fn t39_text_behind_the_value_is_no_json() {
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
fn t40_other_fields_of_a_call_are_kept_the_last_of_each() {
    let chunks = calls(&[
        r#"{"index":0,"id":"c1","function":{"name":"add","arguments":"{"},"extra_content":{"google":{"thought_signature":"Cp"}},"mark":1}"#,
        r#"{"index":0,"function":{"arguments":"}"},"mark":2}"#,
        r#"{"index":0,"mark":3}"#,
    ]);
    let demux = demux(&chunks, Options::default());
    let call = demux
        .choice(ChoiceIndex(0))
        .and_then(|choice| choice.call(0));
    let extra = call.expect("the call came").extra;
    let extra: Vec<(&str, &str)> = extra.iter().map(|(key, raw)| (&**key, &**raw)).collect();
    let signature = r#"{"google":{"thought_signature":"Cp"}}"#;
    assert_eq!(extra, [("extra_content", signature), ("mark", "3")]);
}

#[test]
fn t41_t42_null_is_no_call_and_an_object_is_one_entry() {
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
    let demux = demux(&chunks, Options::default());
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
fn t44_a_name_that_nobody_declared_is_delivered() {
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
fn t45_a_call_too_many_ends_its_choice_alone() {
    let entry = |choice: u32, index: u32| {
        format!(
            r#"{{"index":{choice},"delta":{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"add","arguments":"{{}}"}}}}]}}}}"#
        )
    };
    let options = Options {
        limits: Limits {
            tool_calls: 1,
            ..Limits::default()
        },
        ..Options::default()
    };
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
