//! The inputs that fuzzing starts from: every fixture, in the form of each target.

use std::collections::BTreeSet;

use unbraid_core::{
    ChoiceIndex, Config, Demux,
    internal::{FrameLimits, Framer},
};
use unbraid_log::{End, Event, Meta, RecordBuilder, Seq, StreamEnd};
use unbraid_testkit::{cut::Rng, fixture::Fixture};

/// Larger fixtures would only slow fuzzing down.
const MAX_BYTES: usize = 8_000;

/// Bodies, each with several limits and seeds.
pub fn framing() -> Vec<Vec<u8>> {
    let with_header = |bytes: Vec<u8>| [0_u8, 1, 4, 6].map(|flags| concat(&[&[flags, 7], &bytes]));
    small().into_iter().flat_map(with_header).collect()
}

/// The events of a body, one on each line.
pub fn decode() -> Vec<Vec<u8>> {
    let lines = |bytes: &Vec<u8>| {
        let events = events(bytes);
        let single = events.iter().map(|event| concat(&[&[0], event]));
        let all = concat(&[&[0], &events.join(&b'\n')]);
        single.chain([all]).collect::<Vec<_>>()
    };
    let unique: BTreeSet<Vec<u8>> = small().iter().flat_map(lines).collect();
    unique.into_iter().collect()
}

/// Bodies, each with a few lists of operations.
pub fn demux() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(5);
    let mut inputs = Vec::new();
    for bytes in small() {
        inputs.push(concat(&[&[0, 0, 1], &bytes]));
        for options in [0, 16, 0x62] {
            let operations: Vec<u8> = (0..12).map(|_| rng.below(256) as u8).collect();
            inputs.push(concat(&[&[12, options, 3], &operations, &bytes]));
        }
    }
    inputs
}

/// Bodies, each with the dialect that its values identify, and with another one.
pub fn dialects() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(6);
    let mut with_header = |bytes: Vec<u8>| {
        let other = rng.below(9) as u8;
        [8, other].map(|select| concat(&[&[select, 3], &bytes]))
    };
    small().into_iter().flat_map(&mut with_header).collect()
}

/// The arguments of every call, and texts that are almost JSON.
pub fn json() -> Vec<Vec<u8>> {
    let mut texts = BTreeSet::new();
    for bytes in small() {
        let mut demux = Demux::new(Config::default());
        demux.feed(&bytes);
        demux.finish();
        let messages = demux.choices().map(|choice| choice.message());
        let calls = messages.flat_map(|message| message.tool_calls);
        texts.extend(calls.map(|call| call.arguments.into_bytes()));
    }
    texts.extend(ALMOST_JSON.iter().map(|text| text.as_bytes().to_vec()));
    let with_header = |text: Vec<u8>| concat(&[&[9], &text]);
    texts.into_iter().map(with_header).collect()
}

/// The events of each body as one record, and seals.
pub fn records() -> Vec<Vec<u8>> {
    let choices = [ChoiceIndex(0), ChoiceIndex(200)];
    let mut inputs = Vec::new();
    for bytes in small() {
        let mut builder = RecordBuilder::new(Seq(1));
        for event in events(&bytes) {
            builder.push(&Event::chunk(&choices[..1], &event));
            builder.push(&Event::Error {
                name: Some("error"),
                payload: &event,
            });
        }
        builder.push(&Event::ChoiceEnd {
            choice: choices[1],
            end: End::Finished,
            finish_reason: Some("stop"),
        });
        let records = std::iter::from_fn(|| builder.take());
        inputs.extend(records.map(|record| record.encoded().to_vec()));
    }
    let end = StreamEnd::new(End::Refused).with_error("{}".to_owned());
    inputs.push(end.encode());
    inputs.push(Meta::new("/v1/completions", 1).with_n(2).encode());
    inputs
}

const ALMOST_JSON: &[&str] = &[
    "{\"a\":{\"b\":[1,2.5e3,-0,null,true,\"x\\u00e9\\ud83d\\ude00\"]},\"answer\":\"caf\\n\"}",
    "{\"a\":\"first\",\"a\":\"second\",\"answer\":[\"x\",{\"a\":\"y\"}]}",
    "[[\"a\",{\"a\":\"b\"}],[],{}, 12 ]",
    "{\"path\":\"/tmp\\d\\u12\nline\"",
    "{}{\"answer\":\"after\"}",
    "{\"a\":1}{\"b\":2}",
    "\\n{\\n\"a\":1\\n}",
    "\"\\ud83d\" ",
    "-12.5e+3",
];

fn small() -> Vec<Vec<u8>> {
    let fixtures = Fixture::all().into_iter().map(|fixture| fixture.bytes);
    fixtures.filter(|bytes| bytes.len() < MAX_BYTES).collect()
}

fn events(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let limits = FrameLimits::new(MAX_BYTES, MAX_BYTES);
    let mut framer = Framer::new(limits, false);
    let mut events = Vec::new();
    while let Some(Ok(frame)) = framer.next(&mut bytes) {
        if !frame.data.contains(&b'\n') {
            events.push(frame.data.to_vec());
        }
    }
    events
}

fn concat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}
