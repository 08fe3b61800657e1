//! Reads and events of any size are decoded in portions, so that memory is bounded and other tasks run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::StreamExt;
use unbraid_core::limits::{DELTA_COST, MAX_ENTRIES};
use unbraid_testkit::script::{DONE, Script, bytes, content, finish};

use super::{ends, large::jobs, read, read_with, soon};
use crate::{Completions, Limits};

/// This many deltas of one choice, in one read.
fn one_read(deltas: usize) -> String {
    content(0, "a").repeat(deltas) + &finish(0, "stop") + DONE
}

#[tokio::test]
async fn a_large_read_lets_other_tasks_run() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    const DELTAS: usize = 50_000;
    let completions = read([bytes(one_read(DELTAS))]);
    let choice = soon(completions.first()).await.unwrap();
    let before = turns.load(Ordering::Relaxed);
    assert_eq!(soon(choice.text()).await.unwrap().len(), DELTAS);
    // 4 MiB are at least 16 portions.
    assert!(turns.load(Ordering::Relaxed) - before >= 10);
    other.abort();
}

#[tokio::test]
async fn a_small_read_of_many_updates_is_decoded_before_the_next_read() {
    let entries = vec!["{\"index\":0}"; MAX_ENTRIES].join(",");
    let event = format!("data: {{\"choices\":[{entries}]}}\n\n");
    let first = content(0, "a") + &event.repeat(4) + &content(0, "b");
    assert!(
        first.len() < 64 * 1024,
        "one turn takes more than this read"
    );
    let next = content(0, "c") + &finish(0, "stop") + DONE;
    let completions = read([bytes(first), bytes(next)]);
    assert_eq!(ends(&completions).await, ["0 finished \"abc\""]);
    assert_eq!(jobs(), 0, "no event is large");
}

#[tokio::test]
async fn a_large_read_is_decoded_to_its_end() {
    let lines = "data: {\"choices\":[{\"index\":1,\"text\":\"b\"}]}\n".repeat(20_000);
    let completions = read([bytes(content(0, "a") + &lines), bytes("\n"), bytes(DONE)]);
    let ended = ends(&completions).await;
    let expected = "b".repeat(20_000);
    assert_eq!(
        ended,
        [
            "0 done_without_finish \"a\"".to_owned(),
            format!("1 done_without_finish {expected:?}")
        ]
    );
    // An error that ends the stream may be anywhere in the read.
    let completions = read([bytes(
        content(0, "a").repeat(20_000) + "data: {\"error\":\"e\"}\n\n" + &one_read(1),
    )]);
    let choice = soon(completions.first()).await.unwrap();
    assert!(soon(choice.finished()).await.is_err());
    assert_eq!(choice.snapshot().content.len(), 20_000);
}

#[tokio::test]
async fn the_flat_view_returns_all_of_a_large_read() {
    let mut updates = crate::Updates::from_byte_stream(Script::new([bytes(one_read(20_000))]));
    let mut count = 0;
    while let Some(update) = soon(updates.next()).await {
        count += usize::from(update.unwrap().content.is_some());
    }
    assert_eq!(count, 20_000);
    // Of one event it returns as much as an event may bring.
    let fused = format!("data: {}\n\n", "{\"choices\":[{}]}".repeat(3 * MAX_ENTRIES));
    let mut updates = crate::Updates::from_byte_stream(Script::new([bytes(fused)]));
    let mut choices = 0;
    while let Some(update) = soon(updates.next()).await {
        choices += usize::from(update.unwrap().choice.is_some());
    }
    assert_eq!(choices, MAX_ENTRIES);
}

/// A task that polls a stream without an item must not hold its thread until the read is used up.
#[tokio::test]
async fn the_flat_view_lets_other_tasks_run_between_events_that_bring_nothing() {
    const READ: usize = 4 * 1024 * 1024;
    let empty = "data:\n\n"; // S12
    let read = empty.repeat(READ / empty.len()) + &content(0, "a");
    let mut flat = crate::Updates::from_byte_stream(Script::new([bytes(read)]));
    let mut turns = 0;
    let update = std::future::poll_fn(|cx| {
        turns += 1;
        flat.poll_next_unpin(cx)
    });
    assert!(soon(update).await.unwrap().is_ok());
    // 4 MiB are 16 portions, each a little longer than 256 KiB.
    assert!((15..=17).contains(&turns), "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_brings_nothing_counts_as_an_entry() {
    const ENTRIES: u64 = 20;
    let empty = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n";
    let ended = async |count: u64| {
        let limits = Limits::default().with_choice_bytes(ENTRIES * DELTA_COST);
        let builder = Completions::builder().limits(limits);
        let stream = empty.repeat(usize::try_from(count).unwrap());
        ends(&read_with(builder, [bytes(stream), bytes(DONE)])).await
    };
    assert_eq!(ended(ENTRIES).await, ["0 done_without_finish \"\""]);
    assert_eq!(ended(ENTRIES + 1).await, ["0 limit_exceeded \"\""]);
}
