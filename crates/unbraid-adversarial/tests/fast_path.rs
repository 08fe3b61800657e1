//! The decoder's short way against the parser: equal on ordinary chunks and on spoilt ones, and taken by most.
#![cfg(test)]

use unbraid_adversarial::{
    chunks::{Producer, faithful},
    shapes::Server,
    targets::compare,
};
use unbraid_testkit::cut::Rng;

/// Spoilt chunks that are compared; another number in `UNBRAID_CHUNKS`.
const CHUNKS: usize = 100_000;

/// Chunks of one stream: a producer's own, with spoilt ones among them.
const STREAM: usize = 400;

/// Per cent of a faithful body that take the short way at least: its text and its arguments come in turn, and each of them
/// needs a template.
const FAITHFUL: usize = 99;

fn chunks() -> usize {
    let told = std::env::var("UNBRAID_CHUNKS").ok();
    told.map_or(CHUNKS, |n| n.parse().expect("UNBRAID_CHUNKS is a number"))
}

/// A stream, and for each of its chunks whether it was spoilt.
fn stream(rng: &mut Rng, spoil: f64) -> (Vec<Vec<u8>>, Vec<bool>) {
    let producer = Producer::new(rng);
    let mut events = vec![producer.chunk(rng).into_bytes()];
    let mut spoilt = vec![false];
    for _ in 1..STREAM {
        let spoils = rng.chance(spoil);
        events.push(if spoils {
            producer.spoilt(rng)
        } else {
            producer.chunk(rng).into_bytes()
        });
        spoilt.push(spoils);
    }
    (events, spoilt)
}

fn slices<E: AsRef<[u8]>>(events: &[E]) -> Vec<&[u8]> {
    events.iter().map(AsRef::as_ref).collect()
}

#[test]
fn a_spoilt_chunk_is_read_as_the_parser_reads_it_or_left_to_it() {
    let mut rng = Rng::new(11);
    let (mut all, mut taken) = (0, 0);
    while all < chunks() {
        let (events, spoilt) = stream(&mut rng, 0.2);
        let hits = compare(&slices(&events), false);
        for (hit, spoilt) in hits.taken.iter().zip(&spoilt) {
            all += usize::from(*spoilt);
            taken += usize::from(*spoilt && *hit);
        }
    }
    println!("{taken} of {all} spoilt chunks took the short way");
    assert!(taken * 10 >= all * 3, "{taken} of {all}");
}

#[test]
fn a_producers_own_chunks_take_the_short_way() {
    let mut rng = Rng::new(12);
    let (mut all, mut taken) = (0, 0);
    while all < chunks() / 4 {
        let (events, _) = stream(&mut rng, 0.0);
        let hits = compare(&slices(&events), false);
        // The first one is what the others are like.
        all += hits.taken.len() - 1;
        taken += hits.taken.iter().skip(1).filter(|hit| **hit).count();
    }
    println!("{taken} of {all} generated chunks took the short way");
    assert!(taken * 100 >= all * 99, "{taken} of {all}");
}

#[test]
fn a_faithful_body_takes_the_short_way() {
    let events = faithful(chunks() / 4, 13);
    let hits = compare(&slices(&events), true);
    let (all, taken) = (
        hits.taken.len(),
        hits.taken.iter().filter(|hit| **hit).count(),
    );
    println!("{taken} of {all} chunks of a faithful body took the short way");
    assert!(taken * 100 >= all * FAITHFUL, "{taken} of {all}");
}

#[test]
fn chunks_of_every_shape_are_read_as_the_parser_reads_them() {
    const STREAM: usize = 40;
    let mut rng = Rng::new(14);
    let [mut right, mut spoilt] = [(0, 0); 2];
    while right.1 + spoilt.1 < chunks() {
        let server = Server::new(&mut rng);
        let spoils: Vec<bool> = (0..STREAM).map(|_| rng.chance(0.4)).collect();
        let event = |spoils: &bool| match spoils {
            true => server.spoilt(&mut rng),
            false => server.chunk(&mut rng).into_bytes(),
        };
        let events: Vec<Vec<u8>> = spoils.iter().map(event).collect();
        let hits = compare(&slices(&events), false);
        for (scanned, spoils) in hits.scanned.iter().zip(&spoils) {
            let (taken, all) = if *spoils { &mut spoilt } else { &mut right };
            *taken += usize::from(*scanned);
            *all += 1;
        }
    }
    let ((taken, all), (despite, some)) = (right, spoilt);
    println!(
        "{taken} of {all} chunks of every shape were scanned, {despite} of {some} spoilt ones"
    );
    assert!(
        taken * 10 >= all * 7 && despite * 10 >= some,
        "{right:?} {spoilt:?}"
    );
}
