//! The cost of the bytes without demultiplexing.

use std::hint::black_box;

use crate::feed::{Feed, Tally};

/// The source alone.
pub(super) async fn source(mut feed: Feed, tally: Tally) {
    while let Some(read) = feed.read(|feed| tally.consume_all(feed)).await {
        black_box(&read);
    }
}

/// Finds every line end, and copies every byte once.
pub(super) async fn memchr(mut feed: Feed, tally: Tally) {
    let (mut lines, mut copy) = (0, Vec::new());
    while let Some(read) = feed.read(|feed| tally.consume_all(feed)).await {
        lines += memchr::memchr_iter(b'\n', &read).count();
        copy.clear();
        copy.extend_from_slice(&read);
        black_box(&copy);
    }
    black_box(lines);
}
