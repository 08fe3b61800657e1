//! Calls whose start has their arguments, and those of which the arguments are objects.

use crate::{CallStatus, ChoiceIndex, Config, Demux, Event};

#[test]
fn d14_a_fragment_of_arguments_that_is_an_object_is_its_text() {
    let streams: [&[&str]; 3] = [
        &[
            r#"{"type":"message_start","message":{"id":"m","role":"assistant"}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{"a": 1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        ],
        &[
            r#"{"type":"message-start","id":"m","delta":{"message":{"role":"assistant"}}}"#,
            r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}"#,
            r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":{"a": 1}}}}}}"#,
            r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}"#,
        ],
        &[
            r#"{"type":"response.created","response":{"id":"r"}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"t","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"i","delta":{"a": 1}}"#,
            r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#,
        ],
    ];
    for events in streams {
        let mut demux = Demux::new(Config::default());
        for event in events {
            demux.feed(format!("data: {event}\n\n").as_bytes());
        }
        demux.finish();
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        let call = &choice.message().tool_calls[0];
        assert_eq!(call.arguments, "{\"a\":1}", "{events:?}");
        assert_eq!(call.status, Some(CallStatus::Complete), "{events:?}");
    }
}

/// The arguments and the status of the first call of a stream of Responses.
fn read_call(start: &str, deltas: &[&str], whole: Option<&str>) -> (String, CallStatus) {
    let escaped = |text: &str| serde_json::Value::from(text).to_string();
    let item = |arguments: &str| {
        format!(
            r#""output_index":0,"item":{{"type":"function_call","id":"i","call_id":"t","name":"f","arguments":{}}}"#,
            escaped(arguments)
        )
    };
    let mut events = vec![
        r#"{"type":"response.created","response":{"id":"r"}}"#.to_owned(),
        format!(r#"{{"type":"response.output_item.added",{}}}"#, item(start)),
    ];
    for delta in deltas {
        let key = r#""output_index":0,"item_id":"i""#;
        let delta = escaped(delta);
        events.push(format!(
            r#"{{"type":"response.function_call_arguments.delta",{key},"delta":{delta}}}"#
        ));
    }
    let done = |whole| format!(r#"{{"type":"response.output_item.done",{}}}"#, item(whole));
    events.extend(whole.map(done));
    events
        .push(r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#.into());
    let mut demux = Demux::new(Config::default());
    for event in events {
        demux.feed(format!("data: {event}\n\n").as_bytes());
    }
    demux.finish();
    let call = demux
        .choice(ChoiceIndex(0))
        .unwrap()
        .message()
        .tool_calls
        .remove(0);
    (call.arguments, call.status.unwrap())
}

#[test]
fn d13_the_start_of_a_call_may_have_its_arguments_which_fragments_repeat() {
    let whole = r#"{"city":"Oslo"}"#;
    let complete = (whole.to_owned(), CallStatus::Complete);
    let rows: [(&str, &[&str], Option<&str>); 6] = [
        (whole, &[], None),
        (whole, &[whole], Some(whole)),
        (whole, &["{\"city\":", "\"Oslo\"}"], None),
        // The first fragment, and a placeholder.
        ("{\"city\":", &["\"Oslo\"}"], Some(whole)),
        ("{}", &[whole], Some(whole)),
        ("{}", &[], Some(whole)),
    ];
    for (start, deltas, done) in rows {
        assert_eq!(
            read_call(start, deltas, done),
            complete,
            "{start} {deltas:?}"
        );
    }
    let empty = ("{}".to_owned(), CallStatus::Complete);
    assert_eq!(read_call("{}", &[], Some("{}")), empty);
    assert_eq!(read_call("{}", &[], None), empty);
}

/// The arguments and the status of the first call of a stream of Cohere: the arguments of its starts, then the fragments.
fn read_cohere(starts: &[&str], deltas: &[&str]) -> (String, CallStatus) {
    let mut demux = Demux::new(Config::default());
    let mut feed = |event: String| demux.feed(format!("data: {event}\n\n").as_bytes());
    feed(r#"{"type":"message-start","id":"m","delta":{"message":{"role":"assistant"}}}"#.into());
    for start in starts {
        let function = format!(r#""id":"t","function":{{"name":"f","arguments":{start}}}"#);
        feed(format!(
            r#"{{"type":"tool-call-start","index":0,"delta":{{"message":{{"tool_calls":{{{function}}}}}}}}}"#
        ));
    }
    for delta in deltas {
        let function = format!(r#""function":{{"arguments":"{delta}"}}"#);
        feed(format!(
            r#"{{"type":"tool-call-delta","index":0,"delta":{{"message":{{"tool_calls":{{{function}}}}}}}}}"#
        ));
    }
    feed(r#"{"type":"tool-call-end","index":0}"#.into());
    feed(r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}"#.into());
    demux.finish();
    let choice = demux.choice(ChoiceIndex(0)).unwrap();
    let call = choice.message().tool_calls.remove(0);
    (call.arguments, call.status.unwrap())
}

#[test]
fn d13_a_start_that_comes_again_may_have_a_placeholder() {
    let expected = (r#"{"a":1}"#.to_owned(), CallStatus::Complete);
    let whole = r#""{\"a\":1}""#;
    let delta = r#"{\"a\":1}"#;
    for starts in [
        &[r#""{}""#; 2],
        &["{}"; 2],
        &[r#""{}""#, whole],
        &["\"\"", whole],
    ] {
        assert_eq!(read_cohere(starts, &[delta]), expected, "{starts:?}");
    }
}

#[test]
fn d13_fragments_replace_the_complete_arguments_of_a_start() {
    let spaced = (r#"{"a": 1}"#.to_owned(), CallStatus::Complete);
    let compact = (r#"{"a":1}"#.to_owned(), CallStatus::Complete);
    // A string, an object, another value.
    for start in [r#""{\"a\":1}""#, r#"{"a":1}"#, r#""{\"b\":2}""#] {
        for starts in [&[start][..], &[start, start]] {
            for deltas in [
                &[r#"{\"a\": "#, "1}"][..],
                &[r#"{\"a\": 1}"#],
                &["\\n", r#"{\"a\": 1}"#],
            ] {
                assert_eq!(read_cohere(starts, deltas), spaced, "{starts:?} {deltas:?}");
            }
        }
    }
    // White space replaces nothing.
    for deltas in [&[][..], &["\\n"]] {
        assert_eq!(read_cohere(&[r#"{"a":1}"#], deltas), compact, "{deltas:?}");
    }
    let half = r#""{\"a\":\"\ud83d\ude00\"}""#;
    let deltas = [r#"{\"a\":\"\ud83d"#, r#"\ude00\"}"#];
    let expected = (r#"{"a":"😀"}"#.to_owned(), CallStatus::Complete);
    assert_eq!(read_cohere(&[half], &deltas), expected);
    let rows: [(&[&str], Option<&str>); 4] = [
        (&["{\"a\": ", "1}"], None),
        (&["{\"a\": ", "1}"], Some(r#"{"a": 1}"#)),
        (&[" ", "{\"a\": 1}"], None),
        (&["{\"a\": 1}"], Some("{\"a\":1}")),
    ];
    for (deltas, whole) in rows {
        let read = |start: &str| read_call(start, deltas, whole);
        assert_eq!(read(r#"{"a":1}"#), spaced, "{deltas:?} {whole:?}");
        assert_eq!(read(r#"{"b":2}"#), spaced, "{deltas:?} {whole:?}");
    }
    assert_eq!(read_call(r#"{"a":1}"#, &[], Some("{\"a\": 1}")), compact);
}

#[test]
fn a12_b17_a_call_without_a_stop_has_the_arguments_of_its_start_before_the_next_block() {
    let anthropic = |id: &str, at: u32| {
        format!(
            r#"{{"type":"content_block_start","index":{at},"content_block":{{"type":"tool_use","id":"{id}","name":"f","input":{{"a":"{id}"}}}}}}"#
        )
    };
    let text = |at: u32| {
        format!(
            r#"{{"type":"content_block_delta","index":{at},"delta":{{"type":"text_delta","text":"x"}}}}"#
        )
    };
    let bedrock = |id: &str, at: u32| {
        format!(
            r#"{{"contentBlockStart":{{"contentBlockIndex":{at},"start":{{"toolUse":{{"toolUseId":"{id}","name":"f","input":{{"a":"{id}"}}}}}}}}}}"#
        )
    };
    let bedrock_text = |at: u32| {
        format!(r#"{{"contentBlockDelta":{{"contentBlockIndex":{at},"delta":{{"text":"x"}}}}}}"#)
    };
    let bedrock_call = |id: &str, at: u32| {
        format!(
            r#"{{"contentBlockDelta":{{"contentBlockIndex":{at},"delta":{{"toolUse":{{"toolUseId":"{id}","name":"f","input":"{{}}"}}}}}}}}"#
        )
    };
    let streams = [
        [anthropic("t", 0), anthropic("u", 1)],
        [anthropic("t", 0), text(1)],
        [bedrock("t", 0), bedrock("u", 1)],
        [bedrock("t", 0), bedrock_text(1)],
        [bedrock("t", 0), bedrock_call("u", 1)],
    ];
    for events in streams {
        let mut demux = Demux::new(Config::default());
        for event in &events {
            demux.feed(format!("{event}\n").as_bytes());
        }
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        let events_of_call = (0..choice.event_count()).filter_map(|seq| {
            Some(match choice.event(seq)?.event {
                Event::ToolCallStart { call_index, .. } => format!("start {}", call_index.0),
                Event::ToolCallArguments { call_index, text } => format!("{} {text}", call_index.0),
                Event::Content(text) => text.to_owned(),
                _ => return None,
            })
        });
        let names: Vec<String> = events_of_call.take(2).collect();
        assert_eq!(names, ["start 0", r#"0 {"a":"t"}"#], "{events:?}");
    }
}

#[test]
fn c14_a13_halves_in_the_input_of_a_server_tool_are_joined() {
    const INPUT: [&str; 2] = [r#"{\"q\":\"a\ud83d"#, r#"\ude00\"}"#];
    let anthropic = INPUT.map(|piece| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{piece}"}}}}"#
        )
    });
    let bedrock = INPUT.map(|piece| {
        format!(
            r#"{{"contentBlockDelta":{{"contentBlockIndex":0,"delta":{{"toolUse":{{"input":"{piece}"}}}}}}}}"#
        )
    });
    let streams = [
        (
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
            anthropic,
            r#"{"type":"content_block_stop","index":0}"#,
        ),
        (
            r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"s","name":"nova_grounding","type":"server_tool_use"}}}}"#,
            bedrock,
            r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
        ),
    ];
    for (start, deltas, stop) in streams {
        // Cut in the character, the text is kept with what stands for the half.
        for (count, input) in [(2, r#""input":{"q":"a😀"}"#), (1, "a\u{FFFD}\"")] {
            let mut demux = Demux::new(Config::default());
            demux.feed(format!("{start}\n").as_bytes());
            for delta in deltas.iter().take(count) {
                demux.feed(format!("{delta}\n").as_bytes());
            }
            demux.feed(format!("{stop}\n").as_bytes());
            demux.finish();
            let message = demux.choice(ChoiceIndex(0)).unwrap().message();
            let (_, parts) = &message.extra[0];
            assert!(parts.contains(input), "{parts}");
        }
    }
}
