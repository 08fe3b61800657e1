//! Followers of a log that fails, forgets, or has lost its producer.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use futures::executor::block_on;
use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, sleep, timeout},
};
use unbraid_log::{
    End, Event, Follower, Journal, LogError, LogStore, LogWriter, Meta, Record, RecordBuilder, Seq,
    StreamEnd, StreamId,
    internal::scripted::{Engine, Fault, TestLog, payloads},
};

const LEASE: Duration = Duration::from_secs(15);

/// A stream whose producer is the test, and its copy in another gateway.
struct Followed {
    engine: Engine,
    id: StreamId,
    writer: Box<dyn LogWriter>,
    other: Arc<TestLog>,
    follower: Follower,
}

fn record(first: u64, last: u64) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for number in first..=last {
        let text = number.to_string();
        builder.push(&Event::chunk(&[0.into()], text.as_bytes()));
    }
    builder.take().unwrap()
}

async fn start() -> Followed {
    let engine = Engine::new(LEASE);
    let log = engine.gateway();
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/chat/completions", 1);
    let mut writer = log.open(&id, &meta).await.unwrap();
    writer.append(&record(1, 3)).await.unwrap();
    let other = engine.gateway();
    let store = Arc::clone(&other) as Arc<dyn LogStore>;
    let follower = Follower::start(store, id.clone(), LEASE);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(texts(follower.journal()), ["1", "2", "3"]);
    Followed {
        engine,
        id,
        writer,
        other,
        follower,
    }
}

fn texts(journal: &Journal) -> Vec<String> {
    payloads(&journal.records(Seq::START))
}

/// Waits for the end of a journal, and returns it and when it came.
async fn ended(journal: &Journal) -> (Result<StreamEnd, LogError>, Duration) {
    let started = Instant::now();
    loop {
        if let Some(end) = journal.end() {
            return (end, started.elapsed());
        }
        assert!(started.elapsed() < Duration::from_secs(3600), "it hangs");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_copies_the_log_and_ends_with_it() {
    let mut followed = start().await;
    followed.writer.append(&record(4, 4)).await.unwrap();
    followed.writer.append(&record(5, 9)).await.unwrap();
    followed
        .writer
        .seal(&StreamEnd::new(End::Finished))
        .await
        .unwrap();
    let (end, _) = ended(followed.follower.journal()).await;
    assert_eq!(end, Ok(StreamEnd::new(End::Finished)));
    assert_eq!(texts(followed.follower.journal()).len(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_readers_of_a_lost_producer_end_within_two_seconds_after_its_lease() {
    let followed = start().await;
    // The lease began when the stream was opened.
    let (end, after) = ended(followed.follower.journal()).await;
    assert_eq!(end, Ok(StreamEnd::new(End::ProducerLost)));
    assert!(after <= LEASE + Duration::from_secs(2), "{after:?}");
    assert_eq!(followed.engine.end(&followed.id), Some(End::ProducerLost));
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_renews_its_lease_is_followed_for_hours() {
    let mut followed = start().await;
    for _ in 0..1000 {
        sleep(LEASE / 3).await;
        followed.writer.renew().await.unwrap();
    }
    assert_eq!(followed.follower.journal().end(), None);
}

#[tokio::test(start_paused = true)]
async fn a_follower_survives_a_log_that_is_down_for_a_while() {
    for fault in [Fault::Down, Fault::Hang] {
        let mut followed = start().await;
        followed.other.set(fault);
        for number in 4..14 {
            followed
                .writer
                .append(&record(number, number))
                .await
                .unwrap();
            followed.writer.renew().await.unwrap();
            sleep(Duration::from_secs(2)).await;
        }
        followed.other.set(None);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(texts(followed.follower.journal()).len(), 13, "{fault:?}");
        followed
            .writer
            .seal(&StreamEnd::new(End::Finished))
            .await
            .unwrap();
        let (end, _) = ended(followed.follower.journal()).await;
        assert!(end.is_ok());
    }
}

/// Some engines count a lease from the moment at which a reader sees it.
#[tokio::test(start_paused = true)]
async fn a_follower_asks_again_soon_after_its_log_is_back() {
    // A call that hangs takes a second.
    for (fault, limit) in [(Fault::Down, 1_400), (Fault::Hang, 2_400)] {
        for outage in [20_000, 20_600, 21_200, 21_800] {
            let followed = start().await;
            followed.other.set(fault);
            sleep(Duration::from_millis(outage)).await;
            followed.other.set(None);
            let (end, after) = ended(followed.follower.journal()).await;
            assert_eq!(end, Ok(StreamEnd::new(End::ProducerLost)));
            let limit = Duration::from_millis(limit);
            assert!(after <= limit, "{fault:?}: {after:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_reader_waits_forever_for_a_log_that_never_comes_back() {
    for fault in [Fault::Down, Fault::Hang] {
        let followed = start().await;
        followed.other.set(fault);
        let (end, after) = ended(followed.follower.journal()).await;
        assert!(end.unwrap_err().is_temporary());
        assert!(
            after >= Duration::from_secs(28) && after < Duration::from_secs(36),
            "{after:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_has_forgotten_the_stream_ends_its_readers_after_a_lease() {
    let followed = start().await;
    followed.engine.empty();
    let (end, after) = ended(followed.follower.journal()).await;
    assert_eq!(end, Err(LogError::Unknown));
    // The log is asked every 750 ms, and once more when the lease has passed since the first of these answers.
    let latest = LEASE + Duration::from_millis(800);
    assert!(after >= LEASE && after <= latest, "{after:?}");
}

/// A producer cannot append again what the log has lost before it is back.
#[tokio::test(start_paused = true)]
async fn a_log_that_comes_back_empty_after_more_than_a_lease_is_waited_for() {
    let mut followed = start().await;
    followed.other.set(Fault::Down);
    sleep(LEASE + Duration::from_secs(5)).await;
    followed.engine.empty();
    followed.other.set(None);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(followed.follower.journal().end(), None);
    followed.writer.append(&record(1, 4)).await.unwrap();
    let end = StreamEnd::new(End::Finished);
    followed.writer.seal(&end).await.unwrap();
    let (end, _) = ended(followed.follower.journal()).await;
    assert_eq!(end, Ok(StreamEnd::new(End::Finished)));
    assert_eq!(texts(followed.follower.journal()), ["1", "2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_has_more_than_a_log_that_lost_its_tail_gets_the_end_and_nothing_twice() {
    let mut followed = start().await;
    followed.writer.append(&record(4, 4)).await.unwrap();
    sleep(Duration::from_millis(50)).await;
    followed.engine.lose(1);
    let (end, _) = ended(followed.follower.journal()).await;
    assert_eq!(end, Ok(StreamEnd::new(End::ProducerLost)));
    assert_eq!(texts(followed.follower.journal()).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tail_that_is_lost_and_repaired_is_read_once() {
    let mut followed = start().await;
    followed.engine.lose(1);
    followed.writer.append(&record(1, 3)).await.unwrap();
    followed.writer.append(&record(4, 4)).await.unwrap();
    followed
        .writer
        .seal(&StreamEnd::new(End::Finished))
        .await
        .unwrap();
    let (end, _) = ended(followed.follower.journal()).await;
    assert!(end.is_ok());
    assert_eq!(texts(followed.follower.journal()), ["1", "2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn an_erased_stream_is_expired() {
    let followed = start().await;
    followed.other.erase(&followed.id).await.unwrap();
    let (end, _) = ended(followed.follower.journal()).await;
    assert_eq!(end, Err(LogError::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_follower_reads_nothing_more() {
    let Followed {
        follower, other, ..
    } = start().await;
    drop(follower);
    sleep(Duration::from_millis(1)).await;
    let calls = other.calls();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(other.calls(), calls);
    let waits = timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
    assert!(waits.is_err());
}

/// The pauses between attempts are longer than the interval of checks, and a check must not replace every attempt.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_unknown_for_a_while_is_read_again() {
    let mut followed = start().await;
    followed.engine.empty();
    sleep(Duration::from_secs(5)).await;
    followed.writer.append(&record(1, 3)).await.unwrap();
    followed.writer.append(&record(4, 4)).await.unwrap();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(texts(followed.follower.journal()).len(), 4);
    followed
        .writer
        .seal(&StreamEnd::new(End::Finished))
        .await
        .unwrap();
    let (end, _) = ended(followed.follower.journal()).await;
    assert!(end.is_ok());
}

/// The last records and the seal arrive while the reader pauses.
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_during_a_pause_is_read_to_its_end() {
    let mut followed = start().await;
    followed.engine.empty();
    sleep(Duration::from_millis(1700)).await;
    followed.writer.append(&record(1, 3)).await.unwrap();
    followed.writer.append(&record(4, 4)).await.unwrap();
    followed
        .writer
        .seal(&StreamEnd::new(End::Finished))
        .await
        .unwrap();
    let (end, after) = ended(followed.follower.journal()).await;
    assert!(
        end.is_ok() && after < Duration::from_secs(3),
        "{end:?} {after:?}"
    );
    assert_eq!(texts(followed.follower.journal()).len(), 4);
}

/// deer-flow 4426: a gap that is skipped silently.
#[tokio::test(start_paused = true)]
async fn a_log_with_a_gap_is_an_error() {
    let mut followed = start().await;
    followed.writer.append(&record(4, 4)).await.unwrap();
    followed.engine.lose_first();
    let store = Arc::clone(&followed.other) as Arc<dyn LogStore>;
    let second = Follower::start(store, followed.id.clone(), LEASE);
    let (end, _) = ended(second.journal()).await;
    let gap = LogError::Gap {
        tail: Seq::START,
        first: Seq(4),
    };
    assert_eq!(end, Err(gap));
    assert!(texts(second.journal()).is_empty());
}

/// The task ends with its runtime, with a panic of the log, or with the follower.
#[test]
fn no_reader_waits_for_a_follower_whose_task_has_ended() {
    let ends: [fn(Runtime, Follower); 2] = [
        |runtime, _| runtime.shutdown_background(),
        |runtime, follower| {
            drop(follower);
            runtime.block_on(async { sleep(Duration::from_secs(1)).await });
        },
    ];
    for end in ends {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let followed = runtime.block_on(start());
        let mut reader = followed.follower.journal().reader(Seq(3));
        let (sender, read) = mpsc::channel();
        thread::spawn(move || sender.send(block_on(reader.next_batch(1))));
        end(runtime, followed.follower);
        let read = read.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(
            matches!(read, Err(LogError::Unavailable { .. })),
            "{read:?}"
        );
    }
}
