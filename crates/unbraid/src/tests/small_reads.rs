//! A source that always has a tiny read ready lets other tasks run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::stream;

use crate::Completions;

/// Far more reads than one poll takes, so that there are several polls.
const READS: usize = 40_000;

/// One poll takes at most 64 KiB; each read counts as 64 bytes and its length.
const READS_A_TURN: usize = 64 * 1024 / 64;

#[tokio::test]
async fn one_poll_of_the_reader_takes_a_bounded_number_of_tiny_reads() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let reads = stream::iter((0..READS).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok::<_, std::io::Error>(b":")
    }));
    let completions = Completions::from_byte_stream(reads);
    let (mut before, mut longest) = (0, 0);
    while before < READS {
        tokio::task::yield_now().await;
        let now = taken.load(Ordering::Relaxed);
        longest = longest.max(now - before);
        before = now;
    }
    assert!(longest <= 2 * READS_A_TURN, "{longest} reads in one turn");
    drop(completions);
}
