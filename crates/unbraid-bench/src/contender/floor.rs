//! What the bytes cost if nobody takes them apart.

use std::hint::black_box;

use futures::StreamExt;

use crate::feed::{Feed, Tally};

/// The source alone.
pub(super) async fn source(mut feed: Feed, tally: Tally) {
    while let Some(Ok(read)) = feed.next().await {
        if !black_box(&read).is_empty() {
            tally.all(&feed);
        }
    }
}

/// Every line end found, every byte copied once.
pub(super) async fn memchr(mut feed: Feed, tally: Tally) {
    let (mut lines, mut copy) = (0, Vec::new());
    while let Some(Ok(read)) = feed.next().await {
        lines += memchr::memchr_iter(b'\n', &read).count();
        copy.clear();
        copy.extend_from_slice(&read);
        black_box(&copy);
        tally.all(&feed);
    }
    black_box(lines);
}
