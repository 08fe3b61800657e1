use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::sleep;
use unbraid_log::{
    Appended, Claim, ClaimKey, End, LogError, LogStatus, LogStore, Seq, StreamEnd, StreamId,
};
use unbraid_log_file::{FileOptions, FileSync};

use crate::{meta, open_log, open_stream, read_to_end, record};

/// What most tests use: a power failure is not tested.
fn options() -> FileOptions {
    FileOptions::default().with_sync(FileSync::Never)
}

#[tokio::test]
async fn streams_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let log = open_log(&path, options()).await;
    let (ended, mut writer) = open_stream(&log).await;
    for seq in 1..=300 {
        writer.append(&record(seq, seq, 200)).await.unwrap();
    }
    let end = StreamEnd::new(End::Finished).with_usage(r#"{"total_tokens":7}"#.to_owned());
    writer.seal(&end).await.unwrap();
    let (running, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 40, 900)).await.unwrap();
    let before = log.status(&ended).await.unwrap();
    log.close().await.unwrap();

    let log = open_log(&path, options()).await;
    let after = log.status(&ended).await.unwrap();
    let (
        LogStatus::Ended { expires: old, .. },
        LogStatus::Ended {
            meta,
            tail,
            end: kept,
            expires,
        },
    ) = (before, after)
    else {
        panic!("not ended");
    };
    assert_eq!((&*meta, tail, kept), (&crate::meta(), Seq(300), end));
    let moved = expires
        .duration_since(old)
        .unwrap_or_else(|error| error.duration());
    assert!(moved < Duration::from_secs(10), "{moved:?}");
    for cursor in [0, 1, 150, 299, 300, 1000] {
        assert_eq!(read_to_end(&log, &ended, cursor).await, cursor.max(300));
    }
    // No other process can hold the lease, so there is nothing to wait for.
    let lost = log.status(&running).await.unwrap();
    assert!(
        matches!(&lost, LogStatus::Ended { tail: Seq(40), end, .. } if end.end == End::ProducerLost),
        "{lost:?}"
    );
    assert_eq!(read_to_end(&log, &running, 0).await, 40);
    // The writer of the first log is fenced, whatever it does: its log is closed.
    assert!(
        writer
            .append(&record(41, 41, 1))
            .await
            .unwrap_err()
            .is_temporary()
    );
    let opened = log.open(&running, &crate::meta()).await;
    assert_eq!(opened.err(), Some(LogError::Exists));
}

#[tokio::test]
async fn a_reader_of_a_stream_that_nobody_can_write_any_more_ends() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(&folder.path().join("streams.log"), options()).await;
    let (id, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 1, 10)).await.unwrap();
    let mut records = log.read(&id, Seq::START);
    assert!(records.next().await.is_some_and(|record| record.is_ok()));
    drop((writer, log));
    let read = tokio::time::timeout(Duration::from_secs(30), records.next());
    let error = read.await.unwrap().unwrap().unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

#[tokio::test]
async fn a_stream_expires_at_its_time_although_the_log_was_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let options = options().with_ttl(Duration::from_millis(1500));
    let log = open_log(&path, options.clone()).await;
    let key = ClaimKey::new("alice", "/v1/completions", "k", [3; 32]);
    let id = StreamId::random().unwrap();
    assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    let meta = meta().with_claim(key.clone());
    let mut writer = log.open(&id, &meta).await.unwrap();
    writer.append(&record(1, 9, 100)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert!(log.bytes() > 900);
    log.close().await.unwrap();

    let log = open_log(&path, options).await;
    assert!(log.bytes() > 900, "it is counted again");
    let other = StreamId::random().unwrap();
    let held = log.claim(&key, &other).await.unwrap();
    assert!(matches!(held, Claim::Held { id: holder, .. } if holder == id));
    sleep(Duration::from_millis(1600)).await;
    assert_eq!(
        log.status(&id).await,
        Ok(LogStatus::Expired { meta: meta.into() })
    );
    let mut records = log.read(&id, Seq::START);
    assert_eq!(records.next().await, Some(Err(LogError::Expired)));
    // The sweep follows within a second or two.
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(log.bytes(), 0);
    assert_eq!(log.claim(&key, &other).await, Ok(Claim::Acquired));
}

#[tokio::test]
async fn a_claim_without_a_stream_ends_with_its_process_or_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let options = options().with_claim_pending(Duration::from_millis(300));
    let log = open_log(&path, options.clone()).await;
    let key = ClaimKey::new("alice", "/v1/completions", "k", [3; 32]);
    let [one, two, three] = [0; 3].map(|_| StreamId::random().unwrap());
    assert_eq!(log.claim(&key, &one).await, Ok(Claim::Acquired));
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(log.claim(&key, &two).await, Ok(Claim::Acquired));
    log.close().await.unwrap();
    let log = open_log(&path, options).await;
    assert_eq!(log.claim(&key, &three).await, Ok(Claim::Acquired));
}

#[tokio::test]
async fn many_streams_share_transactions_and_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let log = open_log(&path, options()).await;
    // 40 MB in all: the records of running streams move to their streams several times.
    let streams = join_all((0..100).map(|_| open_stream(&log))).await;
    let ids: Vec<StreamId> = streams.iter().map(|(id, _)| id.clone()).collect();
    let produced = streams
        .into_iter()
        .enumerate()
        .map(|(number, (_, mut writer))| async move {
            for turn in 0..100 {
                let first = turn * 4 + 1;
                let appended = writer.append(&record(first, first + 3, 1000)).await;
                assert_eq!(appended, Ok(Appended::New));
            }
            if number % 2 == 0 {
                writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
            }
        });
    join_all(produced).await;
    log.close().await.unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 160_000_000, "{length} bytes");

    let log = open_log(&path, options()).await;
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(read_to_end(&log, id, 0).await, 400);
        let LogStatus::Ended { end, .. } = log.status(id).await.unwrap() else {
            panic!("not ended");
        };
        let expected = [End::Finished, End::ProducerLost][number % 2];
        assert_eq!(end.end, expected);
    }
}

#[tokio::test]
async fn an_append_whose_future_was_dropped_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(&folder.path().join("streams.log"), options()).await;
    let (id, mut writer) = open_stream(&log).await;
    for seq in 1..=100 {
        let record = record(seq, seq, 10);
        // The request is sent with the first poll, and repeated while the first one may be in flight.
        let mut dropped = writer.append(&record);
        let _answer = futures::poll!(&mut dropped);
        drop(dropped);
        writer.append(&record).await.unwrap();
    }
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_to_end(&log, &id, 0).await, 100);
}

#[tokio::test]
async fn a_stream_whose_opening_was_not_answered_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(&folder.path().join("streams.log"), options()).await;
    assert_eq!(log.backend(), "file");
    let (id, mut lost) = open_stream(&log).await;
    lost.append(&record(1, 3, 10)).await.unwrap();
    let mut writer = log.reopen(&id, &meta()).await.unwrap();
    assert_eq!(
        writer.append(&record(3, 3, 10)).await,
        Ok(Appended::Duplicate)
    );
    writer.append(&record(4, 4, 10)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_to_end(&log, &id, 0).await, 4);
    let again = log.reopen(&id, &meta()).await;
    assert_eq!(again.err(), Some(LogError::Exists));
    let new = StreamId::random().unwrap();
    assert!(log.reopen(&new, &meta()).await.is_ok());
}

#[tokio::test]
async fn a_seal_does_not_make_a_loss_final() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let log = open_log(&path, options()).await;
    let (id, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 3, 10)).await.unwrap();
    log.close().await.unwrap();
    std::fs::remove_file(&path).unwrap();
    log.open_file().await.unwrap();
    let end = StreamEnd::new(End::Finished);
    let gap = LogError::Gap {
        tail: Seq::START,
        first: Seq(3),
    };
    assert_eq!(writer.seal(&end).await, Err(gap));
    writer.append(&record(1, 3, 10)).await.unwrap();
    assert_eq!(writer.seal(&end).await, Ok(()));
    assert_eq!(read_to_end(&log, &id, 0).await, 3);
}

#[tokio::test]
async fn above_the_bound_the_streams_that_ended_first_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let options = options().with_max_bytes(100_000);
    let log = open_log(&folder.path().join("streams.log"), options).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let (id, mut writer) = open_stream(&log).await;
        writer.append(&record(1, 10, 1000)).await.unwrap();
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
        ids.push(id);
    }
    assert!(log.bytes() <= 100_000);
    let mut kept = Vec::new();
    for id in &ids {
        kept.push(matches!(
            log.status(id).await.unwrap(),
            LogStatus::Ended { .. }
        ));
    }
    let first = kept.iter().position(|kept| *kept).unwrap();
    assert!((10..=12).contains(&first), "{kept:?}");
    assert!(kept[first..].iter().all(|kept| *kept), "{kept:?}");
}

#[tokio::test]
async fn space_that_expired_is_used_again_and_returned_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let options = options().with_max_bytes(8_000_000);
    let log = open_log(&path, options.clone()).await;
    let mut lengths = Vec::new();
    for _ in 0..4 {
        for _ in 0..20 {
            let (_, mut writer) = open_stream(&log).await;
            for turn in 0..4 {
                let first = turn * 100 + 1;
                writer
                    .append(&record(first, first + 99, 4000))
                    .await
                    .unwrap();
            }
            writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
        }
        lengths.push(std::fs::metadata(&path).unwrap().len());
    }
    // 128 MB were written.
    assert!(
        lengths.iter().all(|length| *length < 100_000_000),
        "{lengths:?}"
    );
    log.compact().await.unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 30_000_000, "{length} bytes");
    log.close().await.unwrap();
    assert!(open_log(&path, options).await.bytes() > 1_000_000);
}

#[tokio::test]
async fn a_log_continues_with_an_older_copy_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (
        folder.path().join("streams.log"),
        folder.path().join("copy"),
    );
    let log = open_log(&path, options()).await;
    let (id, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 5, 10)).await.unwrap();
    log.close().await.unwrap();
    std::fs::copy(&path, &copy).unwrap();
    log.open_file().await.unwrap();
    writer.append(&record(6, 9, 10)).await.unwrap();
    let mut reader = log.read(&id, Seq(9));
    log.close().await.unwrap();
    std::fs::copy(&copy, &path).unwrap();
    log.open_file().await.unwrap();
    // The producer appends again what the copy does not contain.
    let gap = LogError::Gap {
        tail: Seq(5),
        first: Seq(10),
    };
    assert_eq!(writer.append(&record(10, 10, 10)).await, Err(gap));
    assert_eq!(writer.append(&record(6, 10, 10)).await, Ok(Appended::New));
    let interrupted = reader.next().await.unwrap().unwrap_err();
    assert!(interrupted.is_temporary(), "{interrupted}");
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_to_end(&log, &id, 0).await, 10);
}

#[tokio::test]
async fn a_reader_of_an_ended_stream_does_not_wait_for_a_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let log = open_log(&path, FileOptions::default()).await;
    let (id, mut writer) = open_stream(&log).await;
    writer.append(&record(1, 1000, 400)).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let writes = async {
        let mut streams = join_all((0..32).map(|_| open_stream(&log))).await;
        for turn in 1..=20 {
            let record = record(turn, turn, 50_000);
            let appends = streams.iter_mut().map(|(_, writer)| writer.append(&record));
            join_all(appends).await;
        }
    };
    let reads = async {
        let mut reads = 0;
        for _ in 0..20 {
            assert_eq!(read_to_end(&log, &id, 0).await, 1000);
            reads += 1;
        }
        reads
    };
    let (reads, ()) = futures::future::join(reads, writes).await;
    assert_eq!(reads, 20);
}

/// A gateway renews each claim once a second, and a transaction is synced.
#[tokio::test]
async fn a_claim_is_renewed_without_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let log = open_log(&path, FileOptions::default()).await;
    let key = |name| ClaimKey::new("alice", "/v1/completions", name, [3; 32]);
    let id = StreamId::random().unwrap();
    assert_eq!(log.claim(&key("k"), &id).await, Ok(Claim::Acquired));
    let written = std::fs::read(&path).unwrap();
    assert_eq!(log.claim(&key("k"), &id).await, Ok(Claim::Acquired));
    assert!(std::fs::read(&path).unwrap() == written);
    assert_eq!(log.claim(&key("other"), &id).await, Ok(Claim::Acquired));
    assert!(std::fs::read(&path).unwrap() != written);
}
