//! The decoder's template path against the parser: equal on common and on corrupted chunks, and taken by most chunks.
#![cfg(test)]

use unbraid_adversarial::{
    chunks::{Producer, correct_body},
    providers::ProviderServer,
    shapes::Server,
    targets::{compare, compare_demux, compare_paths},
    varying::VaryingServer,
};
use unbraid_core::Config;
use unbraid_testkit::cut::Rng;

/// The number of corrupted chunks to compare; `UNBRAID_CHUNKS` overrides it.
const CHUNKS: usize = 100_000;

/// The number with `UNBRAID_STRESS_FOLLOWS`, which says that these tests run again, with more chunks and optimized.
const FEW_CHUNKS: usize = 10_000;

/// The number of chunks of one stream.
const STREAM: usize = 400;

/// The minimum percentage of a correct body on the template path. Its text and its arguments are interleaved, and each of
/// them needs a template.
const MIN_PERCENT: usize = 99;

fn chunks() -> usize {
    let default = match std::env::var_os("UNBRAID_STRESS_FOLLOWS") {
        Some(_) => FEW_CHUNKS,
        None => CHUNKS,
    };
    let number = std::env::var("UNBRAID_CHUNKS").ok();
    number.map_or(default, |n| n.parse().expect("UNBRAID_CHUNKS is a number"))
}

/// A stream, and whether each of its chunks is corrupted.
fn stream(rng: &mut Rng, corruption: f64) -> (Vec<Vec<u8>>, Vec<bool>) {
    let producer = Producer::new(rng);
    let mut events = vec![producer.chunk(rng).into_bytes()];
    let mut corrupted = vec![false];
    for _ in 1..STREAM {
        let is_corrupted = rng.chance(corruption);
        events.push(if is_corrupted {
            producer.corrupted(rng)
        } else {
            producer.chunk(rng).into_bytes()
        });
        corrupted.push(is_corrupted);
    }
    (events, corrupted)
}

/// How many chunks were taken by a fast path, and how many there were.
type Counts = (usize, usize);

fn count(hits: &[bool], is_corrupted: &[bool], valid: &mut Counts, corrupted: &mut Counts) {
    for (hit, is_corrupted) in hits.iter().zip(is_corrupted) {
        let (taken, all) = if *is_corrupted {
            &mut *corrupted
        } else {
            &mut *valid
        };
        *taken += usize::from(*hit);
        *all += 1;
    }
}

fn slices<E: AsRef<[u8]>>(events: &[E]) -> Vec<&[u8]> {
    events.iter().map(AsRef::as_ref).collect()
}

#[test]
fn a_corrupted_chunk_gives_the_same_updates_as_the_parser() {
    let mut rng = Rng::new(11);
    let (mut all, mut taken) = (0, 0);
    while all < chunks() {
        let (events, corrupted) = stream(&mut rng, 0.5);
        let hits = compare(&slices(&events), false);
        for (hit, is_corrupted) in hits.templates.iter().zip(&corrupted) {
            all += usize::from(*is_corrupted);
            taken += usize::from(*is_corrupted && *hit);
        }
    }
    println!("{taken} of {all} corrupted chunks matched a template");
    assert!(taken * 10 >= all * 3, "{taken} of {all}");
}

#[test]
fn generated_chunks_match_a_template() {
    let mut rng = Rng::new(12);
    let (mut all, mut taken) = (0, 0);
    while all < chunks() / 4 {
        let (events, _) = stream(&mut rng, 0.0);
        let hits = compare(&slices(&events), false);
        // The first chunk becomes the template of the others.
        all += hits.templates.len() - 1;
        taken += hits.templates.iter().skip(1).filter(|hit| **hit).count();
    }
    println!("{taken} of {all} generated chunks matched a template");
    assert!(taken * 100 >= all * 99, "{taken} of {all}");
}

#[test]
fn a_correct_body_matches_templates() {
    // With fewer, those that make the templates would count.
    let events = correct_body((chunks() / 4).max(10_000), 13);
    let hits = compare(&slices(&events), true);
    let (all, taken) = (
        hits.templates.len(),
        hits.templates.iter().filter(|hit| **hit).count(),
    );
    println!("{taken} of {all} chunks of a correct body matched a template");
    assert!(taken * 100 >= all * MIN_PERCENT, "{taken} of {all}");
}

#[test]
fn chunks_of_any_structure_give_the_same_updates_as_the_parser() {
    const STREAM: usize = 40;
    let mut rng = Rng::new(14);
    let [mut valid, mut corrupted] = [(0, 0); 2];
    while valid.1 + corrupted.1 < chunks() {
        let server = Server::new(&mut rng);
        let is_corrupted: Vec<bool> = (0..STREAM).map(|_| rng.chance(0.4)).collect();
        let event = |is_corrupted: &bool| match is_corrupted {
            true => server.corrupted(&mut rng),
            false => server.chunk(&mut rng).into_bytes(),
        };
        let events: Vec<Vec<u8>> = is_corrupted.iter().map(event).collect();
        let hits = compare(&slices(&events), false);
        count(&hits.scanned, &is_corrupted, &mut valid, &mut corrupted);
    }
    let ((taken, all), (taken_corrupted, all_corrupted)) = (valid, corrupted);
    println!(
        "{taken} of {all} valid chunks were scanned, and {taken_corrupted} of {all_corrupted} corrupted ones"
    );
    assert!(
        taken * 10 >= all * 7 && taken_corrupted * 10 >= all_corrupted,
        "{valid:?} {corrupted:?}"
    );
}

#[test]
fn chunks_with_the_same_keys_and_other_values_give_the_same_updates_as_the_parser() {
    const STREAM: usize = 60;
    let mut rng = Rng::new(15);
    let [mut valid, mut corrupted] = [(0, 0); 2];
    while valid.1 + corrupted.1 < chunks() {
        let server = VaryingServer::new(&mut rng);
        let rate = [0.0, 0.3][rng.below(2)];
        let is_corrupted: Vec<bool> = (0..STREAM).map(|_| rng.chance(rate)).collect();
        let event = |is_corrupted: &bool| match is_corrupted {
            true => server.corrupted(&mut rng),
            false => server.chunk(&mut rng).into_bytes(),
        };
        let events: Vec<Vec<u8>> = is_corrupted.iter().map(event).collect();
        let hits = compare(&slices(&events), rng.chance(0.1));
        count(&hits.templates, &is_corrupted, &mut valid, &mut corrupted);
    }
    let ((taken, all), (taken_corrupted, all_corrupted)) = (valid, corrupted);
    println!(
        "{taken} of {all} valid chunks matched a template, and {taken_corrupted} of {all_corrupted} corrupted ones"
    );
    assert!(
        taken * 2 >= all && taken_corrupted * 20 >= all_corrupted,
        "{valid:?} {corrupted:?}"
    );
}

#[test]
fn events_of_other_dialects_give_the_same_updates_as_the_parser() {
    const STREAM: usize = 80;
    let mut rng = Rng::new(16);
    let [mut valid, mut corrupted] = [(0, 0); 2];
    while valid.1 + corrupted.1 < chunks() {
        let server = ProviderServer::new(&mut rng);
        let rate = [0.0, 0.3][rng.below(2)];
        let events = server.stream(&mut rng, STREAM, rate);
        let body: Vec<u8> = events
            .iter()
            .flat_map(|event| &event.bytes)
            .copied()
            .collect();
        let config = Config::default().with_strict(rng.chance(0.1));
        let hits = compare_paths(&body, &config);
        let is_corrupted: Vec<bool> = events.iter().map(|event| event.is_corrupted).collect();
        count(&hits, &is_corrupted, &mut valid, &mut corrupted);
        compare_demux(&body, rng.next_u64(), &Config::default());
    }
    let ((taken, all), (taken_corrupted, all_corrupted)) = (valid, corrupted);
    println!(
        "{taken} of {all} valid events matched a template, and {taken_corrupted} of {all_corrupted} corrupted ones"
    );
    assert!(
        taken * 2 >= all && taken_corrupted * 20 >= all_corrupted,
        "{valid:?} {corrupted:?}"
    );
}
