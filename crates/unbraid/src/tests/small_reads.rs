//! A source that has something ready all the time, in tiny pieces, gives the other tasks their turn.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::stream;

use crate::Completions;

/// Far more than a turn takes, so that there are several.
const READS: usize = 40_000;

/// A turn takes at most 64 KiB, of which each piece is counted as 64 bytes and what it holds.
const READS_A_TURN: usize = 64 * 1024 / 64;

/// How many reads of this piece the longest of the reader's turns takes.
async fn longest_turn(piece: &'static [u8]) -> usize {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let reads = stream::iter((0..READS).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok::<_, std::io::Error>(piece)
    }));
    let completions = Completions::from_byte_stream(reads);
    let (mut before, mut longest) = (0, 0);
    while before < READS {
        tokio::task::yield_now().await;
        let now = taken.load(Ordering::Relaxed);
        longest = longest.max(now - before);
        before = now;
    }
    drop(completions);
    longest
}

#[tokio::test]
async fn a_turn_of_the_reader_takes_a_bounded_number_of_tiny_reads() {
    let longest = longest_turn(b":").await;
    assert!(longest <= 2 * READS_A_TURN, "{longest} reads in one turn");
}

#[tokio::test]
async fn a_turn_of_the_reader_takes_larger_reads_up_to_its_bound_in_bytes() {
    const COMMENT: &[u8] = b":                                                            \n";
    let expected = 64 * 1024 / (64 + COMMENT.len());
    let longest = longest_turn(COMMENT).await;
    assert!(
        longest >= expected / 2 && longest <= 2 * expected,
        "{longest} reads in one turn"
    );
}
