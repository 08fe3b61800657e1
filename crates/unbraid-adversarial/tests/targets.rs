//! The fuzz targets on stable Rust: their corpora, and inputs made of them.
#![cfg(test)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use unbraid_adversarial::{mutate::Mutator, targets::TARGETS};

/// Inputs that are made for each target; another number in `UNBRAID_INPUTS`.
const INPUTS: u64 = 100_000;

fn inputs() -> u64 {
    let told = std::env::var("UNBRAID_INPUTS").ok();
    told.map_or(INPUTS, |n| n.parse().expect("UNBRAID_INPUTS is a number"))
}

#[track_caller]
fn check(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = (target.seeds)();
    assert!(corpus.len() > 50, "only {} seeds", corpus.len());
    corpus.iter().for_each(|seed| run(target.run, seed));
    let mut mutator = Mutator::new(&corpus, target.words, 1);
    for _ in 0..inputs() {
        run(target.run, &mutator.input());
    }
}

/// Names the input that breaks a promise, so that it can become a test.
fn run(target: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        println!("input: b\"{}\"", input.escape_ascii());
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn framing_gives_the_same_at_every_cut() {
    check("framing");
}

#[test]
fn decoding_is_the_parsers() {
    check("decode");
}

#[test]
fn demultiplexing_keeps_its_promises() {
    check("demux");
}

#[test]
fn arguments_are_what_serde_json_says() {
    check("json");
}
