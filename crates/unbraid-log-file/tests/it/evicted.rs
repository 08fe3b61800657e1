//! Streams that go before their time, because there are too many.

use std::{fs, path::Path, time::Duration};

use tokio::time::{Instant, sleep};
use unbraid_log::{End, LogStatus, LogStore, StreamEnd, StreamId};
use unbraid_log_file::{FileLog, FileOptions, FileSync};

use crate::{open_log, open_stream, record};

const MAX: u64 = 64 * 1024;

/// Longer than the day for which evicted streams are remembered, so that these expire before those that are kept.
fn options(max_bytes: u64) -> FileOptions {
    FileOptions::default()
        .with_sync(FileSync::Never)
        .with_ttl(Duration::from_secs(48 * 3600))
        .with_max_bytes(max_bytes)
}

/// Adds streams of about a KiB, one after the other.
async fn add(log: &FileLog, count: usize) -> Vec<StreamId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let (id, mut writer) = open_stream(log).await;
        writer.append(&record(1, 1, 1000)).await.unwrap();
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
        ids.push(id);
    }
    ids
}

/// How many streams have expired. They are those that ended first.
async fn expired(log: &FileLog, ids: &[StreamId]) -> usize {
    let mut statuses = Vec::new();
    for id in ids {
        let status = log.status(id).await.unwrap();
        statuses.push(matches!(status, LogStatus::Expired { .. }));
    }
    let count = statuses
        .iter()
        .take_while(|is_expired| **is_expired)
        .count();
    assert!(!statuses[count..].contains(&true));
    count
}

fn modified(path: &Path) -> std::time::SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[tokio::test]
async fn streams_that_are_kept_for_longer_than_a_day_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let log = open_log(&path, options(MAX)).await;
    let ids = add(&log, 700).await;
    assert!(log.bytes() <= MAX, "{}", log.bytes());
    let count = expired(&log, &ids).await;
    assert!((630..680).contains(&count), "{count}");
    // Nothing is left to do.
    let before = modified(&path);
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(modified(&path), before, "an idle log writes nothing");
    log.close().await.unwrap();

    // More rows are visited than one transaction may.
    let log = open_log(&path, options(MAX / 4)).await;
    let started = Instant::now();
    while log.bytes() > MAX / 4 {
        assert!(started.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(100)).await;
    }
    assert!(expired(&log, &ids).await < 700, "no more than necessary");
    log.close().await.unwrap();
}

/// Rows of the time before a restart may expire later than those of the streams that end now.
#[tokio::test]
async fn streams_that_expire_before_evicted_ones_are_evicted_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let hour = Duration::from_secs(3600);
    let log = open_log(&path, options(MAX).with_ttl(hour)).await;
    for _ in 0..5 {
        let ids = add(&log, 40).await;
        for id in &ids {
            log.erase(id).await.unwrap();
        }
        let ids = add(&log, 100).await;
        assert!(log.bytes() <= MAX, "{}", log.bytes());
        let count = expired(&log, &ids).await;
        assert!((30..80).contains(&count), "{count}");
    }
    log.close().await.unwrap();
}
