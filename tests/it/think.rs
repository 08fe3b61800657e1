//! `<think>` tags in the content (C18): generated streams, read by `Demux`, the actors and the reference client.

use std::path::PathBuf;

use serde_json::{Value, json};
use unbraid_testkit::{
    cut::{Rng, every_cut_in_two, random_cuts},
    fixture::{Fixture, Options, SplitThink},
};

use crate::{
    actors::{actual, check, expected, owned, runtimes},
    corpus,
    support::{demux, lines, options},
};

const PARTS: [&str; 12] = [
    "<think>", "</think>", "<", "</", "<thi", "nk>", "think>", "\n", "\r\n", "é😀", " text", ">",
];

/// Content made of tags, parts of tags, and text.
fn content(rng: &mut Rng) -> Vec<char> {
    let parts = 1 + rng.below(14);
    let parts = (0..parts).map(|_| PARTS[rng.below(PARTS.len())]);
    parts.flat_map(str::chars).collect()
}

fn event(choice: usize, entry: &Value) -> String {
    let mut entry = entry.clone();
    entry["index"] = json!(choice);
    format!("data: {}\n\n", json!({ "id": "c", "choices": [entry] }))
}

/// Up to three choices with interleaved deltas. If `mixed`, some deltas also have reasoning in its own field.
fn stream(rng: &mut Rng, mixed: bool) -> Vec<u8> {
    let mut rest: Vec<(usize, Vec<char>)> = (0..1 + rng.below(3))
        .map(|choice| (choice, content(rng)))
        .collect();
    let mut stream = String::new();
    while !rest.is_empty() {
        let next = rng.below(rest.len());
        let (choice, text) = &mut rest[next];
        let length = (1 + rng.below(5)).min(text.len());
        let delta: String = text.drain(..length).collect();
        let entry = if mixed && rng.chance(0.1) {
            json!({ "delta": { "reasoning_content": "own", "content": delta } })
        } else {
            json!({ "delta": { "content": delta } })
        };
        stream += &event(*choice, &entry);
        if text.is_empty() {
            if rng.chance(0.8) {
                stream += &event(*choice, &json!({ "delta": {}, "finish_reason": "stop" }));
            }
            rest.remove(next);
        }
    }
    (stream + "data: [DONE]\n\n").into_bytes()
}

fn generated(seed: u64, mixed: bool) -> Fixture {
    let rng = &mut Rng::new(seed);
    let split_think = [SplitThink::AtTag, SplitThink::AtStart][rng.below(2)];
    Fixture {
        name: format!("seed {seed}, {split_think:?}"),
        path: PathBuf::new(),
        bytes: stream(rng, mixed),
        options: Options {
            split_think,
            ..Options::default()
        },
    }
}

#[test]
fn c18_every_split_of_the_bytes_gives_the_same_events() {
    for seed in 0..300 {
        let fixture = generated(seed, true);
        let bytes = fixture.bytes.as_slice();
        let events = |reads: Vec<&[u8]>| lines(&demux(reads, options(&fixture.options)).1);
        let expected = events(vec![bytes]);
        for max in [1, 7, 90] {
            let actual = events(random_cuts(bytes, seed, max));
            assert_eq!(actual, expected, "{}: up to {max} bytes", fixture.name);
        }
        if seed < 20 {
            for (head, tail) in every_cut_in_two(bytes) {
                let actual = events(vec![head, tail]);
                assert_eq!(actual, expected, "{}: at {}", fixture.name, head.len());
            }
        }
    }
}

#[test]
fn c18_the_reference_client_separates_the_same_text() {
    let failures: Vec<String> = (0..3000)
        // Not mixed: next to reasoning in its own field, held back text may change its place within the reasoning.
        .map(|seed| generated(seed, false))
        .filter_map(|fixture| corpus::check(&fixture.name, &fixture.bytes, &fixture.options).err())
        .collect();
    assert!(
        failures.is_empty(),
        "{} differ\n{}",
        failures.len(),
        failures[0]
    );
}

#[test]
fn c18_the_actors_give_the_events_of_demux() {
    for runtime in runtimes() {
        for seed in 0..150 {
            let fixture = generated(seed, true);
            let expected = expected(&fixture);
            runtime.block_on(async {
                for max in [1, 60, 1000] {
                    let reads = owned(random_cuts(&fixture.bytes, seed, max));
                    let actual = actual(&fixture, reads).await;
                    check(&fixture, &format!("up to {max} bytes"), &actual, &expected);
                }
            });
        }
    }
}
