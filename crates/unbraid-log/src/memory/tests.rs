//! What expires, what is evicted, and who holds a claim, under a paused clock.

mod counts;
mod ids;
mod wakers;
mod writers;

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::time::advance;
use unbraid_core::ChoiceIndex;

use super::{MemoryLog, MemoryOptions};
use crate::{
    Claim, ClaimKey, Command, End, Event, LogError, LogStatus, LogStore, LogWriter, Meta,
    RecordBuilder, Seq, StreamEnd, StreamId,
};

const HOUR: Duration = Duration::from_secs(3600);

fn log() -> MemoryLog {
    MemoryLog::new(MemoryOptions::default())
}

async fn open(log: &MemoryLog) -> (StreamId, Box<dyn LogWriter>) {
    let id = StreamId::random().unwrap();
    let writer = log
        .open(&id, &Meta::new("/v1/completions", 1))
        .await
        .unwrap();
    (id, writer)
}

async fn append(writer: &mut dyn LogWriter, first: u64, bytes: usize) {
    let mut builder = RecordBuilder::new(Seq(first));
    builder.push(&Event::chunk(&[ChoiceIndex(0)], &vec![b'x'; bytes]));
    writer.append(&builder.take().unwrap()).await.unwrap();
}

async fn seal(writer: &mut dyn LogWriter) {
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
}

async fn state(log: &MemoryLog, id: &StreamId) -> &'static str {
    match log.status(id).await.unwrap() {
        LogStatus::Running { .. } => "running",
        LogStatus::Ended { .. } => "ended",
        LogStatus::Expired { .. } => "expired",
        LogStatus::Unknown => "unknown",
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_kept_for_its_ttl_and_is_expired_for_a_day() {
    let log = log();
    let (id, mut writer) = open(&log).await;
    advance(2 * HOUR).await;
    writer.renew().await.unwrap();
    assert_eq!(
        state(&log, &id).await,
        "running",
        "the ttl is counted from the seal"
    );
    append(&mut *writer, 1, 100).await;
    seal(&mut *writer).await;
    advance(HOUR - Duration::from_millis(1)).await;
    assert_eq!(state(&log, &id).await, "ended");
    advance(Duration::from_millis(1)).await;
    assert_eq!(state(&log, &id).await, "expired");
    assert_eq!((log.bytes(), log.streams()), (0, 0), "its memory is free");
    advance(24 * HOUR).await;
    assert_eq!(state(&log, &id).await, "unknown");
}

/// assistant-ui 3979: a stream expires under its reader.
#[tokio::test(start_paused = true)]
async fn a_reader_continues_after_its_stream_has_expired() {
    let log = log();
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, 1, 100).await;
    let mut reader = log.journal(&id).unwrap().reader(Seq::START);
    seal(&mut *writer).await;
    advance(2 * HOUR).await;
    assert_eq!(state(&log, &id).await, "expired");
    let batch = reader.next_batch(1000).await.unwrap();
    assert!(batch.records.len() == 1 && batch.end.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_seals_expires_after_a_day_unless_its_producer_lives() {
    let log = log();
    let (lost, writer) = open(&log).await;
    drop(writer);
    let (long, mut writer) = open(&log).await;
    let mut reader = log.journal(&lost).unwrap().reader(Seq::START);
    advance(24 * HOUR - Duration::from_secs(1)).await;
    writer.renew().await.unwrap();
    advance(Duration::from_secs(1)).await;
    assert_eq!(
        (state(&log, &lost).await, state(&log, &long).await),
        ("expired", "running")
    );
    assert_eq!(
        reader.next_batch(1).await,
        Err(LogError::Expired),
        "no reader waits forever"
    );
    advance(24 * HOUR).await;
    assert_eq!(state(&log, &long).await, "expired");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_ended_streams_are_evicted_and_running_ones_never() {
    let log = MemoryLog::new(MemoryOptions::default().with_max_bytes(100_000));
    let (running, mut producer) = open(&log).await;
    let mut ended = Vec::new();
    for _ in 0..3 {
        let (id, mut writer) = open(&log).await;
        append(&mut *writer, 1, 25_000).await;
        seal(&mut *writer).await;
        ended.push(id);
    }
    append(&mut *producer, 1, 30_000).await;
    assert!(log.bytes() <= 100_000, "{}", log.bytes());
    assert_eq!(state(&log, &ended[0]).await, "expired");
    assert_eq!(
        (state(&log, &ended[1]).await, state(&log, &ended[2]).await),
        ("ended", "ended")
    );
    append(&mut *producer, 2, 200_000).await;
    assert_eq!(state(&log, &ended[2]).await, "expired");
    assert_eq!(state(&log, &running).await, "running");
    assert!(log.bytes() > 100_000, "a running stream is not refused");
    let refused = log
        .open(
            &StreamId::random().unwrap(),
            &Meta::new("/v1/completions", 1),
        )
        .await;
    assert_eq!(refused.err(), Some(LogError::Full));
    seal(&mut *producer).await;
    open(&log).await;
    assert_eq!(
        state(&log, &running).await,
        "expired",
        "the new stream needs its memory"
    );
}

#[tokio::test(start_paused = true)]
async fn all_memory_is_accounted_for() {
    let log = log();
    for length in [0, 10, 5000, 700_000] {
        let (id, mut writer) = open(&log).await;
        let mut builder = RecordBuilder::new(Seq(1));
        for _ in 0..100 {
            builder.push(&Event::chunk(&[ChoiceIndex(0)], &vec![b'x'; length / 100]));
            let record = builder.take().unwrap();
            writer.append(&record).await.unwrap();
            writer.append(&record).await.unwrap();
        }
        seal(&mut *writer).await;
        assert!(log.bytes() >= length);
        log.erase(&id).await.unwrap();
        assert_eq!(log.bytes(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_writer_is_lost_at_once_and_a_silent_one_after_its_lease() {
    let log = log();
    let (dropped, writer) = open(&log).await;
    drop(writer);
    let end = |status| match status {
        LogStatus::Ended { end, .. } => Some(end.end),
        _ => None,
    };
    assert_eq!(
        end(log.seal_lost(&dropped).await.unwrap()),
        Some(End::ProducerLost)
    );
    let (silent, mut writer) = open(&log).await;
    advance(Duration::from_secs(14)).await;
    assert_eq!(end(log.seal_lost(&silent).await.unwrap()), None);
    writer.renew().await.unwrap();
    advance(Duration::from_secs(14)).await;
    assert_eq!(end(log.seal_lost(&silent).await.unwrap()), None);
    advance(Duration::from_secs(1)).await;
    assert_eq!(
        end(log.seal_lost(&silent).await.unwrap()),
        Some(End::ProducerLost)
    );
    assert_eq!(writer.renew().await, Err(LogError::Sealed));
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_stream_expires_after_a_quarter_of_an_hour() {
    let log = log();
    let key = ClaimKey::new("a", "/v1/completions", "k", [0; 32]);
    let (one, other) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    assert_eq!(log.claim(&key, &one).await, Ok(Claim::Acquired));
    advance(Duration::from_secs(899)).await;
    assert!(matches!(
        log.claim(&key, &other).await,
        Ok(Claim::Held { .. })
    ));
    advance(Duration::from_secs(1)).await;
    assert_eq!(log.claim(&key, &other).await, Ok(Claim::Acquired));
    // The claim that expired first does not take the second one with it.
    advance(Duration::from_secs(10)).await;
    assert!(matches!(
        log.claim(&key, &one).await,
        Ok(Claim::Held { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_its_stream_as_long_as_configured_and_a_day_at_most() {
    for (pending, kept_for) in [(HOUR, HOUR), (Duration::MAX, 24 * HOUR)] {
        let log = MemoryLog::new(MemoryOptions::default().with_claim_pending(pending));
        let key = ClaimKey::new("a", "/v1/completions", "k", [0; 32]);
        let (one, other) = (StreamId::random().unwrap(), StreamId::random().unwrap());
        assert_eq!(log.claim(&key, &one).await, Ok(Claim::Acquired));
        advance(kept_for - Duration::from_secs(1)).await;
        assert!(matches!(
            log.claim(&key, &other).await,
            Ok(Claim::Held { .. })
        ));
        advance(Duration::from_secs(1)).await;
        assert_eq!(log.claim(&key, &other).await, Ok(Claim::Acquired));
    }
}

#[tokio::test(start_paused = true)]
async fn claims_that_are_repeated_leave_no_queue_behind() {
    let log = log();
    let key = ClaimKey::new("a", "/v1/completions", "k", [0; 32]);
    let id = StreamId::random().unwrap();
    for _ in 0..10_000 {
        assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
        advance(Duration::from_millis(10)).await;
    }
    let (_, pending) = log.inner.state().queued();
    assert!(pending < 1100, "{pending}");
}

#[tokio::test(start_paused = true)]
async fn the_texts_of_a_stream_count_and_are_freed_with_it() {
    let log = log();
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/completions", 1).with_model("m".repeat(10_000));
    let mut writer = log.open(&id, &meta).await.unwrap();
    let opened = log.bytes();
    assert!(opened >= 11_000, "{opened}");
    let end = StreamEnd::new(End::Refused)
        .with_error("e".repeat(20_000))
        .with_usage("u".repeat(3_000));
    for _ in 0..2 {
        writer.seal(&end).await.unwrap();
        assert_eq!(log.bytes(), opened + 46_000, "counted once");
    }
    log.erase(&id).await.unwrap();
    assert_eq!(log.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn ended_streams_and_released_claims_leave_no_queue_behind() {
    let log = log();
    let (_running, _writer) = open(&log).await;
    for index in 0..10_000 {
        let key = ClaimKey::new("a", "/v1/completions", &index.to_string(), [0; 32]);
        let (id, mut writer) = open(&log).await;
        log.claim(&key, &id).await.unwrap();
        log.release(&key, &id).await.unwrap();
        seal(&mut *writer).await;
        if index % 1000 == 0 {
            advance(2 * HOUR).await;
        }
    }
    let (opened, pending) = log.inner.state().queued();
    assert!(opened < 1100 && pending < 1100, "{opened} {pending}");
}

/// One life of a stream for each way to leave something behind.
async fn leave_something_behind(log: &MemoryLog, number: usize) {
    let name = number.to_string();
    let key = ClaimKey::new("a", "/v1/completions", &name, [0; 32]);
    let (id, other) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    log.claim(&key, &id).await.unwrap();
    // Another request with the same key, and one with a key whose stream is never opened.
    log.claim(&key, &other).await.unwrap();
    let unopened = ClaimKey::new("b", "/v1/completions", &name, [0; 32]);
    log.claim(&unopened, &other).await.unwrap();
    let meta = Meta::new("/v1/completions", 1).with_claim(key);
    let mut writer = log.open(&id, &meta).await.unwrap();
    append(&mut *writer, 1, 100).await;
    match number % 4 {
        0 => seal(&mut *writer).await,
        1 => log.erase(&id).await.unwrap(),
        2 => drop(writer),
        _ => {
            drop(writer);
            log.seal_lost(&id).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_streams_and_claims_after_everything_has_expired() {
    let log = log();
    for number in 0..2000 {
        leave_something_behind(&log, number).await;
    }
    let left = || log.inner.state().entries();
    assert!(left().iter().all(|(_, count)| *count > 0), "{:?}", left());
    // A stream that nobody seals expires after a day, and is remembered for another one.
    for _ in 0..3 {
        advance(24 * HOUR).await;
        log.sweep();
    }
    assert!(left().iter().all(|(_, count)| *count == 0), "{:?}", left());
    assert_eq!((log.bytes(), log.streams()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn expired_streams_are_remembered_in_an_eighth_of_the_memory() {
    let max = 1024 * 1024;
    let log = MemoryLog::new(MemoryOptions::default().with_max_bytes(max));
    let mut ids = Vec::new();
    for number in 0..4000 {
        let id = StreamId::random().unwrap();
        let owner = "o".repeat(number % 1000);
        let meta = Meta::new("/v1/completions", 1).with_owner(owner);
        drop(log.open(&id, &meta).await.unwrap());
        log.erase(&id).await.unwrap();
        ids.push(id);
        let entries = log.inner.state().entries();
        let of = |name| entries.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(of("expired bytes") <= max / 8, "{entries:?}");
        assert_eq!(of("streams"), of("expired"));
    }
    assert_eq!(state(&log, &ids[0]).await, "unknown");
    assert_eq!(state(&log, ids.last().unwrap()).await, "expired");
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_kept_as_long_as_its_stream() {
    let log = log();
    let key = ClaimKey::new("a", "/v1/completions", "k", [0; 32]);
    let (id, other) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    log.claim(&key, &id).await.unwrap();
    let meta = Meta::new("/v1/completions", 1).with_claim(key.clone());
    let mut writer = log.open(&id, &meta).await.unwrap();
    advance(HOUR).await;
    writer.renew().await.unwrap();
    seal(&mut *writer).await;
    advance(HOUR - Duration::from_secs(1)).await;
    assert!(matches!(
        log.claim(&key, &other).await,
        Ok(Claim::Held { .. })
    ));
    advance(Duration::from_secs(1)).await;
    assert_eq!(log.claim(&key, &other).await, Ok(Claim::Acquired));
}

#[tokio::test(start_paused = true)]
async fn commands_that_nobody_takes_are_bounded() {
    let log = log();
    let (id, _writer) = open(&log).await;
    for _ in 0..crate::commands::MAX_COMMANDS {
        log.send_command(&id, Command::Cancel(None)).await.unwrap();
    }
    let refused = log
        .send_command(&id, Command::Cancel(None))
        .await
        .unwrap_err();
    assert!(refused.is_temporary());
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_stream_that_nobody_can_write_any_more_ends() {
    let log = log();
    let (running, writer) = open(&log).await;
    let (ended, mut other) = open(&log).await;
    seal(&mut *other).await;
    let mut readers = [&running, &ended].map(|id| log.read(id, Seq::START));
    drop((log, other));
    let waits = tokio::time::timeout(HOUR, readers[0].next()).await;
    assert!(waits.is_err(), "its writer can append");
    drop(writer);
    let failed = tokio::time::timeout(HOUR, readers[0].next()).await.unwrap();
    assert!(failed.is_some_and(|read| read.is_err_and(|error| error.is_temporary())));
    assert_eq!(readers[1].next().await, None);
}

#[test]
fn it_works_without_a_runtime() {
    let log = log();
    let (id, mut writer) = open(&log).now_or_never().unwrap();
    append(&mut *writer, 1, 10).now_or_never().unwrap();
    assert_eq!(state(&log, &id).now_or_never(), Some("running"));
}

#[test]
fn its_types_are_sent_between_threads() {
    fn check<T: Send + Sync + std::fmt::Debug + 'static>() {}
    check::<MemoryLog>();
    check::<crate::Journal>();
    check::<crate::JournalReader>();
    check::<crate::Record>();
}

#[tokio::test(start_paused = true)]
async fn a_time_to_live_may_be_forever() {
    let options = MemoryOptions::default()
        .with_ttl(Duration::MAX)
        .with_lease(Duration::MAX);
    let log = MemoryLog::new(options);
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/completions", 1);
    let mut writer = log.open(&id, &meta).await.unwrap();
    writer.renew().await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert!(matches!(log.status(&id).await, Ok(LogStatus::Ended { .. })));
}
