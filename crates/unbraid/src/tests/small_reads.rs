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
const READS_A_POLL: usize = 64 * 1024 / 64;

/// The largest number of these reads that one poll of the reader takes.
async fn most_reads_in_a_poll(read: &'static [u8]) -> usize {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let reads = stream::iter((0..READS).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok::<_, std::io::Error>(read)
    }));
    let completions = Completions::from_byte_stream(reads);
    let (mut before, mut most) = (0, 0);
    while before < READS {
        tokio::task::yield_now().await;
        let now = taken.load(Ordering::Relaxed);
        most = most.max(now - before);
        before = now;
    }
    drop(completions);
    most
}

#[tokio::test]
async fn one_poll_of_the_reader_takes_a_bounded_number_of_tiny_reads() {
    let most = most_reads_in_a_poll(b":").await;
    assert!(most <= 2 * READS_A_POLL, "{most} reads in one poll");
}

#[tokio::test]
async fn one_poll_of_the_reader_takes_larger_reads_up_to_its_limit_in_bytes() {
    const COMMENT: &[u8] = b":                                                            \n";
    let expected = 64 * 1024 / (64 + COMMENT.len());
    let most = most_reads_in_a_poll(COMMENT).await;
    assert!(
        most >= expected / 2 && most <= 2 * expected,
        "{most} reads in one poll"
    );
}
