//! Streams that are erased before they expire, and ids that are used again.

use std::time::Duration;

use tokio::time::advance;

use super::{HOUR, open, seal, state};
use crate::{LogStore, MemoryLog, MemoryOptions, Meta};

#[tokio::test(start_paused = true)]
async fn erased_streams_leave_no_queue_behind_although_their_time_to_live_is_forever() {
    let log = MemoryLog::new(MemoryOptions::default().with_ttl(Duration::MAX));
    for _ in 0..10_000 {
        let (id, mut writer) = open(&log).await;
        seal(&mut *writer).await;
        log.erase(&id).await.unwrap();
    }
    let entries = log.inner.state().entries();
    let ended = entries.iter().find(|(name, _)| *name == "ended");
    assert!(ended.is_some_and(|(_, count)| *count < 2_000), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn an_erased_stream_does_not_end_another_one_that_has_its_id() {
    let log = MemoryLog::new(MemoryOptions::default().with_ttl(48 * HOUR));
    let (id, mut writer) = open(&log).await;
    seal(&mut *writer).await;
    log.erase(&id).await.unwrap();
    advance(25 * HOUR).await;
    assert_eq!(state(&log, &id).await, "unknown");
    let meta = Meta::new("/v1/completions", 1);
    let mut writer = log.open(&id, &meta).await.unwrap();
    advance(23 * HOUR).await;
    writer.renew().await.unwrap();
    assert_eq!(state(&log, &id).await, "running");
    seal(&mut *writer).await;
    advance(47 * HOUR).await;
    assert_eq!(state(&log, &id).await, "ended");
}
