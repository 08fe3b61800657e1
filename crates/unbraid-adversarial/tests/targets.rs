//! The fuzz targets on stable Rust: their corpora, and inputs derived from them.
#![cfg(test)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use unbraid_adversarial::{
    mutate::Mutator,
    targets::{TARGETS, compare},
};

/// The number of inputs for each target; `UNBRAID_INPUTS` overrides it.
const INPUTS: u64 = 100_000;

fn inputs() -> u64 {
    let number = std::env::var("UNBRAID_INPUTS").ok();
    number.map_or(INPUTS, |n| n.parse().expect("UNBRAID_INPUTS is a number"))
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

/// Prints an input that violates an invariant, so that it can become a test.
fn run(target: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        println!("input: b\"{}\"", input.escape_ascii());
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn frames_do_not_depend_on_the_reads() {
    check("framing");
}

#[test]
fn all_decode_paths_agree() {
    check("decode");
}

/// Found by a fuzzer: the parser for other dialects than chat accepts what `serde_json` refuses.
#[test]
fn control_characters_of_another_dialect_may_be_part_of_a_template() {
    let delta = "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"a\u{11}b\":0,\"item_id\":\"m\",\"delta\":\"a\"}";
    let events = [
        "{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"m\",\"type\":\"message\"}}",
        delta,
        delta,
        delta,
    ];
    let events = events.map(str::as_bytes);
    let hits = compare(&events, false);
    assert!(hits.templates.contains(&true));
}

/// Strict mode ends at the second event. The reason of the first one, which the dialect has held back, comes before that.
#[test]
fn a_reason_that_is_held_back_comes_before_an_error_of_strict_mode() {
    let event = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    let events = [event, r#"{"candidates":[]t"#].map(str::as_bytes);
    let _hits = compare(&events, true);
}

#[test]
fn the_invariants_of_demux_hold() {
    check("demux");
}

#[test]
fn every_dialect_reads_any_bytes() {
    check("dialects");
}

#[test]
fn records_are_refused_or_kept_as_they_are() {
    check("records");
}

#[test]
fn arguments_agree_with_serde_json() {
    check("json");
}
