//! Properties of the core on made-up streams.

use proptest::prelude::*;
use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, Config, Demux, Event, Sequenced, Text, internal::UpdateReader};
use unbraid_testkit::{cut::random_cuts, fixture::Fixture};

use crate::support::{bare, demux, lines};

/// One chunk's news of a choice: the fields of its entry in `choices`.
fn news() -> impl Strategy<Value = Value> {
    let text = "[a-zé😀 \"\\\\\n]{0,6}";
    let piece = prop_oneof![
        "[0-9,]{0,3}",
        Just("{\"a\":".to_owned()),
        Just("}".to_owned())
    ];
    let call = (0..3_u8, any::<bool>(), piece.clone()).prop_map(|(index, named, arguments)| {
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
        1 => piece.prop_map(|piece| json!({ "delta": { "function_call": { "name": "old", "arguments": piece } } })),
        1 => prop::sample::select(vec!["assistant", "tool", ""]).prop_map(|role| json!({ "delta": { "role": role } })),
        1 => Just(json!({ "delta": {}, "logprobs": { "content": [{ "token": "t", "logprob": -1.5 }] } })),
        1 => (0..3_u8).prop_map(|score| json!({ "delta": {}, "score": score })),
        1 => Just(json!({ "delta": {} })),
    ]
}

/// What one choice is sent: its news, and perhaps its finish reason at the end.
fn answer() -> impl Strategy<Value = Vec<Value>> {
    let finish = prop::option::of(prop::sample::select(vec![
        "stop",
        "tool_calls",
        "length",
        "eos",
    ]));
    (prop::collection::vec(news(), 1..12), finish).prop_map(|(mut chunks, finish)| {
        chunks.extend(finish.map(|reason| json!({ "delta": {}, "finish_reason": reason })));
        chunks
    })
}

fn event(index: u32, news: &Value) -> String {
    let mut entry = json!({ "index": index });
    let (Value::Object(entry_fields), Value::Object(fields)) = (&mut entry, news) else {
        unreachable!("news is an object");
    };
    entry_fields.extend(fields.clone());
    format!("data: {}\n\n", json!({ "id": "c", "choices": [entry] }))
}

/// Sends the answers in the order that `turns` draws, one choice a chunk.
fn braid(answers: &[(u32, Vec<Value>)], turns: &[prop::sample::Index]) -> String {
    let mut rest: Vec<_> = answers
        .iter()
        .map(|(index, chunks)| (*index, chunks.iter()))
        .collect();
    let mut stream = String::new();
    let mut turns = turns.iter().cycle();
    while !rest.is_empty() {
        let at = turns.next().map_or(0, |turn| turn.index(rest.len()));
        let (index, chunks) = &mut rest[at];
        match chunks.next() {
            Some(news) => stream += &event(*index, news),
            None => drop(rest.remove(at)),
        }
    }
    stream + "data: [DONE]\n\n"
}

/// A choice's own events, without where in the stream they stood.
fn own(events: &[Sequenced<Text>], index: u32) -> Vec<String> {
    let of_choice = events
        .iter()
        .filter(|event| event.choice == Some(ChoiceIndex(index)));
    of_choice
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

/// The same stream as updates, so that none of it comes as a mere piece of text.
fn by_updates(mut bytes: &[u8]) -> Vec<String> {
    let options = Config::default();
    let mut intake = UpdateReader::new(&options);
    let mut demux = Demux::new(options);
    let mut failed = None;
    while failed.is_none()
        && let Some(event) = intake.next(&mut bytes, &mut |update| demux.feed_update(update))
    {
        failed = event.err();
    }
    match failed {
        Some(error) => demux.abort(error),
        None => {
            let last = intake.finish(&mut |update| demux.feed_update(update));
            assert!(last.is_none_or(|last| last.is_ok()));
            demux.finish();
        }
    }
    let mut events = Vec::new();
    while let Some(event) = demux.next_event() {
        events.push(event.map(Text::from));
    }
    lines(&events)
}

/// However its bytes are cut, a stream gives the same events, and so do its updates; and nothing in it panics.
#[track_caller]
fn check(bytes: &[u8], seed: u64) -> Demux {
    let (whole, expected) = demux([bytes], Config::default());
    for max in [1, 5, 90] {
        let (_, given) = demux(random_cuts(bytes, seed, max), Config::default());
        assert_eq!(
            lines(&given),
            lines(&expected),
            "reads of up to {max} bytes"
        );
    }
    if whole.choices().next().is_some() {
        assert_eq!(by_updates(bytes), lines(&expected), "as updates");
    }
    whole
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 16] = [
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
    let piece = prop_oneof![
        prop::sample::select(PIECES.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, piece), 1..6);
    let fixtures: Vec<Vec<u8>> = Fixture::all()
        .into_iter()
        .map(|fixture| fixture.bytes)
        .filter(|bytes| bytes.len() < 8_000)
        .collect();
    (prop::sample::select(fixtures), edits).prop_map(|(mut bytes, edits)| {
        for (at, cut, piece) in edits {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + cut);
            bytes.splice(at..end, piece);
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
    fn e05_braiding_leaves_each_choice_its_own_events(
        answers in prop::collection::vec(answer(), 1..6),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let answers: Vec<(u32, Vec<Value>)> = (0..).step_by(3).zip(answers).collect();
        let (_, braided) = demux([braid(&answers, &turns).as_bytes()], Config::default());
        for answer in &answers {
            let alone = braid(std::slice::from_ref(answer), &turns);
            let (_, alone) = demux([alone.as_bytes()], Config::default());
            prop_assert_eq!(own(&braided, answer.0), own(&alone, answer.0));
        }
    }

    #[test]
    fn f06_a_message_is_the_sum_of_its_deltas_and_of_what_came_late(
        chunks in prop::collection::vec((news(), prop::bool::weighted(0.1)), 1..30),
    ) {
        let mut stream = String::new();
        let (mut content, mut reasoning) = (String::new(), String::new());
        for (news, finishes) in &chunks {
            stream += &event(0, news);
            content += news["delta"]["content"].as_str().unwrap_or("");
            reasoning += news["delta"]["reasoning_content"].as_str().unwrap_or("");
            if *finishes {
                stream += &event(0, &json!({ "delta": {}, "finish_reason": "stop" }));
                stream += &event(1, &json!({ "delta": {} })); // the first event without a delta for it ends it
            }
        }
        let (demux, events) = demux([stream.as_bytes()], Config::default());
        let message = demux.choice(ChoiceIndex(0)).expect("it has come").message();
        let told = sum(&events, |event| match event {
            Event::Content(text) => Some(text),
            _ => None,
        });
        prop_assert_eq!(&message.content, &content);
        prop_assert_eq!(&message.reasoning, &reasoning);
        prop_assert!(content.starts_with(&told));
        for (number, call) in message.tool_calls.iter().enumerate() {
            let told = sum(&events, |event| match event {
                Event::ToolCallArguments { call_index: call, text } if call.0 as usize == number => Some(text),
                _ => None,
            });
            prop_assert!(chunks.iter().any(|(_, f)| *f) || call.arguments == told);
            prop_assert!(call.arguments.starts_with(&told));
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
