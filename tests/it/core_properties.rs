//! Properties of the core on generated streams.

use proptest::prelude::*;
use serde_json::{Value, json};
use unbraid_core::{
    ChoiceIndex, Config, Demux, Event, Sequenced, StreamError, Text, internal::UpdateReader,
};
use unbraid_testkit::{cut::random_cuts, fixture::Fixture};

use crate::support::{bare, demux, lines};

/// The fields of a choice's entry in the `choices` of one chunk.
fn entry_fields() -> impl Strategy<Value = Value> {
    let text = "[a-zé😀 \"\\\\\n]{0,6}";
    let fragment = prop_oneof![
        "[0-9,]{0,3}",
        Just("{\"a\":".to_owned()),
        Just("}".to_owned())
    ];
    let call = (0..3_u8, any::<bool>(), fragment.clone()).prop_map(|(index, named, arguments)| {
        let mut entry = json!({ "index": index, "function": { "arguments": arguments } });
        if named {
            entry["id"] = json!(format!("call_{index}"));
            entry["function"]["name"] = json!("tool");
        }
        json!({ "delta": { "tool_calls": [entry] } })
    });
    prop_oneof![
        4 => text.prop_map(|text| json!({ "delta": { "content": text } })),
        2 => text.prop_map(|text| json!({ "delta": { "reasoning_content": text } })),
        1 => text.prop_map(|text| json!({ "delta": { "refusal": text } })),
        2 => call,
        1 => fragment.prop_map(|fragment| json!({ "delta": { "function_call": { "name": "old", "arguments": fragment } } })),
        1 => prop::sample::select(vec!["assistant", "tool", ""]).prop_map(|role| json!({ "delta": { "role": role } })),
        1 => Just(json!({ "delta": {}, "logprobs": { "content": [{ "token": "t", "logprob": -1.5 }] } })),
        1 => (0..3_u8).prop_map(|score| json!({ "delta": {}, "score": score })),
        1 => Just(json!({ "delta": {} })),
    ]
}

/// The chunks of one choice, which may end with a finish reason.
fn answer() -> impl Strategy<Value = Vec<Value>> {
    let finish = prop::option::of(prop::sample::select(vec![
        "stop",
        "tool_calls",
        "length",
        "eos",
    ]));
    (prop::collection::vec(entry_fields(), 1..12), finish).prop_map(|(mut chunks, finish)| {
        chunks.extend(finish.map(|reason| json!({ "delta": {}, "finish_reason": reason })));
        chunks
    })
}

fn event(index: u32, fields: &Value) -> String {
    let mut entry = json!({ "index": index });
    let (Value::Object(object), Value::Object(fields)) = (&mut entry, fields) else {
        unreachable!("entries are objects");
    };
    object.extend(fields.clone());
    format!("data: {}\n\n", json!({ "id": "c", "choices": [entry] }))
}

/// Interleaves the answers in the order that `turns` selects, with one choice per chunk.
fn interleave(answers: &[(u32, Vec<Value>)], turns: &[prop::sample::Index]) -> String {
    let mut rest: Vec<_> = answers
        .iter()
        .map(|(index, chunks)| (*index, chunks.iter()))
        .collect();
    let mut stream = String::new();
    let mut turns = turns.iter().cycle();
    while !rest.is_empty() {
        let next = turns.next().map_or(0, |turn| turn.index(rest.len()));
        let (index, chunks) = &mut rest[next];
        match chunks.next() {
            Some(fields) => stream += &event(*index, fields),
            None => drop(rest.remove(next)),
        }
    }
    stream + "data: [DONE]\n\n"
}

/// The events of a choice, without their position in the stream.
fn events_of(events: &[Sequenced<Text>], index: u32) -> Vec<String> {
    let events = events
        .iter()
        .filter(|event| event.choice == Some(ChoiceIndex(index)));
    events
        .map(|event| match &event.event {
            Event::Warning(warning) => format!("{} {}", warning.code, warning.message),
            event => bare(event),
        })
        .collect()
}

fn sum(events: &[Sequenced<Text>], pick: impl Fn(&Event) -> Option<&Text>) -> String {
    events
        .iter()
        .filter_map(|event| pick(&event.event))
        .map(Text::as_str)
        .collect()
}

/// The events of the same stream fed as updates, without the text-only path.
fn by_updates(mut bytes: &[u8]) -> Vec<String> {
    let options = Config::default();
    let mut reader = UpdateReader::new(&options);
    let mut demux = Demux::new(options);
    let mut failed = None;
    while failed.is_none()
        && let Some(event) = reader.next(&mut bytes, &mut |update| demux.feed_update(update))
    {
        failed = event.err();
    }
    if failed.is_none() {
        // What is left of the body may be the event that shows the fault: a second message (A11).
        let last = reader.finish(&mut |update| demux.feed_update(update));
        failed = last.and_then(Result::err);
    }
    if let Some(error) = failed {
        reader.abort(&error, &mut |update| demux.feed_update(update));
        demux.abort(error);
    }
    demux.finish();
    let mut events = Vec::new();
    while let Some(event) = demux.next_event() {
        events.push(event.map(Text::from));
    }
    lines(&events)
}

/// A stream gives the same events for every split of its bytes and when fed as updates, and never panics.
#[track_caller]
fn check(bytes: &[u8], seed: u64) -> Demux {
    let (unsplit, expected) = demux([bytes], Config::default());
    for max in [1, 5, 90] {
        let (_, actual) = demux(random_cuts(bytes, seed, max), Config::default());
        assert_eq!(
            lines(&actual),
            lines(&expected),
            "reads of up to {max} bytes"
        );
    }
    if unsplit.choices().next().is_some() {
        assert_eq!(by_updates(bytes), lines(&expected), "as updates");
    }
    unsplit
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    const TOKENS: [&str; 16] = [
        "\n",
        "\r",
        "\n\n",
        "data: ",
        "data:",
        "{",
        "}",
        "[",
        "\"",
        "\\",
        "\\ud83d",
        "[DONE]",
        "event: error\n",
        ":",
        "null",
        "\u{FEFF}",
    ];
    let fragment = prop_oneof![
        prop::sample::select(TOKENS.to_vec()).prop_map(|fragment| fragment.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, fragment), 1..6);
    let fixtures: Vec<Vec<u8>> = Fixture::all()
        .into_iter()
        .map(|fixture| fixture.bytes)
        .filter(|bytes| bytes.len() < 8_000)
        .collect();
    (prop::sample::select(fixtures), edits).prop_map(|(mut bytes, edits)| {
        for (start, length, insertion) in edits {
            let start = start.index(bytes.len() + 1);
            let end = bytes.len().min(start + length);
            bytes.splice(start..end, insertion);
        }
        bytes
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn e05_interleaving_does_not_change_the_events_of_a_choice(
        answers in prop::collection::vec(answer(), 1..6),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let answers: Vec<(u32, Vec<Value>)> = (0..).step_by(3).zip(answers).collect();
        let (_, interleaved) = demux([interleave(&answers, &turns).as_bytes()], Config::default());
        for answer in &answers {
            let alone = interleave(std::slice::from_ref(answer), &turns);
            let (_, alone) = demux([alone.as_bytes()], Config::default());
            prop_assert_eq!(events_of(&interleaved, answer.0), events_of(&alone, answer.0));
        }
    }

    #[test]
    fn f06_a_message_is_the_sum_of_its_deltas_and_its_late_deltas(
        chunks in prop::collection::vec((entry_fields(), prop::bool::weighted(0.1)), 1..30),
    ) {
        let mut stream = String::new();
        let (mut content, mut reasoning) = (String::new(), String::new());
        for (fields, finishes) in &chunks {
            stream += &event(0, fields);
            content += fields["delta"]["content"].as_str().unwrap_or("");
            reasoning += fields["delta"]["reasoning_content"].as_str().unwrap_or("");
            if *finishes {
                stream += &event(0, &json!({ "delta": {}, "finish_reason": "stop" }));
                stream += &event(1, &json!({ "delta": {} })); // the next event without a delta for the choice ends it
            }
        }
        let (demux, events) = demux([stream.as_bytes()], Config::default());
        let message = demux.choice(ChoiceIndex(0)).expect("the choice exists").message();
        let emitted = sum(&events, |event| match event {
            Event::Content(text) => Some(text),
            _ => None,
        });
        prop_assert_eq!(&message.content, &content);
        prop_assert_eq!(&message.reasoning, &reasoning);
        prop_assert!(content.starts_with(&emitted));
        for (position, call) in message.tool_calls.iter().enumerate() {
            let emitted = sum(&events, |event| match event {
                Event::ToolCallArguments { call_index, text } if call_index.0 as usize == position => Some(text),
                _ => None,
            });
            prop_assert!(chunks.iter().any(|(_, f)| *f) || call.arguments == emitted);
            prop_assert!(call.arguments.starts_with(&emitted));
        }
    }

    #[test]
    fn arbitrary_bytes_give_the_same_events_at_every_cut(bytes in prop::collection::vec(any::<u8>(), 0..400), seed: u64) {
        check(&bytes, seed);
    }

    #[test]
    fn mutated_fixtures_give_the_same_events_at_every_cut(bytes in mutated(), seed: u64) {
        let demux = check(&bytes, seed);
        prop_assert!(demux.closed().is_some());
        prop_assert!(demux.choices().all(|choice| choice.end().is_some()));
        prop_assert!(demux.aggregate()["choices"].is_array());
    }
}

#[test]
fn a_fault_that_only_the_end_of_the_body_shows_is_the_same_in_every_form() {
    let fixture = Fixture::named("anthropic/gateway-a11-spliced-retry");
    let text = String::from_utf8(fixture.bytes).expect("UTF-8");
    let second = text.rfind("event: message_start").expect("a second start");
    let data = text[second..].find("\n\n").expect("its end");
    let demux = check(&text.as_bytes()[..second + data], 0);
    assert!(matches!(
        demux.closed(),
        Some(Err(StreamError::Malformed { .. }))
    ));
}
