//! Every fixture's choices are encoded as chunks again, and the chunks give the same transcript.

use unbraid_core::{
    CallStatus, ChoiceEnd, ChunkEncoder, Config, Demux, Event, Sequenced, Transcript,
};
use unbraid_testkit::fixture::Fixture;

use crate::support::{bare, demux, options};

/// Everything that a reader of the choice sees, but for warnings, the server's index of a call, and the kind of error.
fn seen(transcript: &Transcript) -> Vec<String> {
    let events = (0..transcript.event_count()).filter_map(|seq| transcript.event(seq));
    let mut lines: Vec<String> = events
        .filter_map(|event| match event.event {
            Event::Warning(_) => None,
            Event::End(end) => Some(match end {
                ChoiceEnd::Finished(_) | ChoiceEnd::DoneWithoutFinish | ChoiceEnd::Interrupted => {
                    end.as_str().to_owned()
                }
                _ => "error".to_owned(),
            }),
            Event::ToolCallStart {
                call_index,
                name,
                kind,
                ..
            } => {
                let id = transcript.call_id(call_index);
                Some(format!("call {call_index} {id:?} {name} {kind:?}"))
            }
            // A chat has ids of calls, and some dialects do not (D15).
            Event::ToolCallDone { call_index, status } => {
                let has_id = transcript.call_id(call_index).is_some();
                let lacks_only_id = matches!(
                    status,
                    CallStatus::MissingId | CallStatus::Complete | CallStatus::EmptyAsObject
                );
                let status = (has_id || !lacks_only_id).then_some(status);
                Some(format!("call {call_index} is {status:?}"))
            }
            event => Some(bare(&event)),
        })
        .collect();
    lines.push(format!(
        "{:?}",
        transcript
            .finish_reason()
            .map(|reason| reason.as_str().to_owned())
    ));
    lines
}

fn is_interrupted(end: Option<&ChoiceEnd>) -> bool {
    matches!(end, Some(ChoiceEnd::Interrupted))
}

/// The chunks of one choice, read again.
fn read(chunks: &str, done: bool, config: Config) -> Demux {
    let mut demux = Demux::new(config);
    demux.feed(chunks.as_bytes());
    if done {
        demux.feed(ChunkEncoder::DONE.as_bytes());
    }
    demux.finish();
    demux
}

#[test]
fn every_choice_of_every_fixture_gives_the_same_transcript() {
    let (mut choices, mut failures) = (0, Vec::new());
    for fixture in Fixture::all() {
        let config = options(&fixture.options);
        let reasoning_keys = config.reasoning_keys.clone();
        let reader = Config::default().with_reasoning_keys(reasoning_keys.clone());
        let (source, _) = demux([fixture.bytes.as_slice()], config);
        for transcript in source.choices() {
            let mut encoder = ChunkEncoder::new(transcript.index())
                .with_metadata(source.metadata())
                .with_kind(transcript.kind())
                .with_reasoning_key(reasoning_keys[0].to_string());
            let chunks = encoder.encode_transcript(transcript);
            let again = read(&chunks, !is_interrupted(transcript.end()), reader.clone());
            let name = &fixture.name;
            let copy = again.choice(transcript.index());
            let copy = copy.unwrap_or_else(|| panic!("{name}: no choice in {chunks}"));
            let (given, expected) = (seen(copy), seen(transcript));
            if given != expected {
                failures.push(format!(
                    "{name}: {given:#?} instead of {expected:#?}\n{chunks}"
                ));
            }
            choices += 1;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(choices > 300, "{choices} choices");
}

/// The name of the first call is late, so the second one starts before it (T18).
#[test]
fn t18_calls_that_start_out_of_order_keep_their_kinds() {
    let chunk = |fields: &str| format!("data: {{\"choices\":[{{\"index\":0,{fields}}}]}}\n\n");
    let calls = |entry: &str| chunk(&format!("\"delta\":{{\"tool_calls\":[{entry}]}}"));
    let custom = r#""type":"custom","custom":{"name":"sql","input":"SELECT"}"#;
    let body = [
        calls(r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#),
        calls(&format!(r#"{{"index":1,"id":"b",{custom}}}"#)),
        calls(r#"{"index":1,"custom":{"input":" 1"}}"#),
        calls(r#"{"index":0,"function":{"name":"f"}}"#),
        chunk(r#""delta":{},"finish_reason":"tool_calls""#),
    ];
    let (source, _) = demux([body.concat().as_bytes()], Config::default());
    let transcript = source.choices().next().expect("a choice");
    let chunks = ChunkEncoder::new(transcript.index()).encode_transcript(transcript);
    let again = read(&chunks, true, Config::default());
    let copy = again.choice(transcript.index()).expect("a choice");
    // The calls are numbered in the order of their starts here.
    let calls = copy.message().tool_calls.into_iter();
    let calls: Vec<_> = calls
        .map(|call| (call.kind.as_str(), call.name.to_string(), call.arguments))
        .collect();
    let expected = [("custom", "sql", "SELECT 1"), ("function", "f", "{}")];
    let expected = expected.map(|(kind, name, text)| (kind, name.to_owned(), text.to_owned()));
    assert_eq!(calls, expected, "{chunks}");
}

#[test]
fn events_encode_as_their_transcript_does() {
    let body = concat!(
        "data: {\"id\":\"c\",\"model\":\"m\",\"created\":5,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":7,\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "data: [DONE]\n\n",
    );
    let (source, events) = demux([body.as_bytes()], Config::default());
    let transcript = source.choices().next().expect("a choice");
    let mut encoder = ChunkEncoder::new(transcript.index()).with_metadata(source.metadata());
    let of_choice = |event: &&Sequenced| event.choice == Some(transcript.index());
    let mut by_event = encoder.clone();
    let by_event: String = events
        .iter()
        .filter(of_choice)
        .map(|event| by_event.encode(&event.event))
        .collect();
    assert_eq!(by_event, encoder.encode_transcript(transcript));
    let head = r#"data: {"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":"#;
    let deltas: Vec<&str> = by_event
        .split_terminator("\n\n")
        .map(|chunk| chunk.strip_prefix(head).expect("an envelope"))
        .collect();
    assert_eq!(
        deltas,
        [
            r#"{"role":"assistant"},"finish_reason":null}]}"#,
            r#"{"content":"a"},"finish_reason":null}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":null}]}"#,
            r#"{},"finish_reason":"tool_calls"}]}"#,
        ]
    );
}
