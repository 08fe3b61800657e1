//! Many readers, long streams, and what they cost the server.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{Appended, End, LogError, LogStore, Seq, StreamEnd};

use crate::support::{connect, meta, new_id, record, server};

async fn consumers(url: &str) -> usize {
    let context = async_nats::jetstream::new(async_nats::connect(url).await.unwrap());
    let stream = context.get_stream("UNBRAID").await.unwrap();
    stream.cached_info().state.consumer_count
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_streams_are_followed_without_a_consumer() {
    const STREAMS: usize = 300;
    const EVENTS: u64 = 5;
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let ids: Vec<_> = (0..STREAMS).map(|_| new_id()).collect();
    let about = meta();
    let opened = join_all(ids.iter().map(|id| log.open(id, &about))).await;
    let readers: Vec<_> = ids
        .iter()
        .map(|id| {
            let mut records = other.read(id, Seq::START);
            tokio::spawn(async move {
                let mut seq = 0;
                while let Some(record) = records.next().await {
                    let record = record.unwrap();
                    assert_eq!(record.first(), Seq(seq + 1));
                    seq = record.last().0;
                }
                seq
            })
        })
        .collect();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(consumers(&server.url()).await, 0);
    let produced = join_all(opened.into_iter().map(|writer| async move {
        let mut writer = writer.unwrap();
        for seq in 1..=EVENTS {
            assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
        }
        assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    }));
    produced.await;
    for reader in readers {
        let read = timeout(Duration::from_secs(20), reader).await;
        assert_eq!(read.expect("a reader hangs").unwrap(), EVENTS);
    }
    assert_eq!(consumers(&server.url()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_stream_is_replayed_in_batches_from_any_cursor() {
    const EVENTS: u64 = 3000;
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (id, neighbour) = (new_id(), new_id());
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let mut beside = log.open(&neighbour, &meta()).await.unwrap();
    let started = Instant::now();
    for seq in 1..=EVENTS {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
        if seq % 10 == 0 {
            let seq = seq / 10;
            assert_eq!(beside.append(&record(seq, seq)).await, Ok(Appended::New));
        }
    }
    println!(
        "{:?} for each append",
        started.elapsed() / (EVENTS as u32 + EVENTS as u32 / 10)
    );
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    for after in [0, 1, 7, 1500, 2990, 2999, 3000, 9000] {
        let started = Instant::now();
        let mut records = other.read(&id, Seq(after));
        let mut seq = after.min(EVENTS);
        let mut first_after = None;
        while let Some(record) = records.next().await {
            let record = record.unwrap();
            assert_eq!(record.first(), Seq(seq + 1), "after {after}");
            seq = record.last().0;
            first_after.get_or_insert_with(|| started.elapsed());
        }
        assert_eq!(seq, EVENTS);
        println!(
            "after {after}: first {first_after:?}, all {:?}",
            started.elapsed()
        );
        assert!(started.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(consumers(&server.url()).await, 0, "consumers are removed");
}

/// A subscription holds a bounded number of messages. A reader that is slower finds the others in the stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_misses_nothing() {
    const EVENTS: u64 = 1000;
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let mut records = other.read(&id, Seq::START);
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    assert_eq!(records.next().await.unwrap().unwrap().last(), Seq(1));
    // The reader waits for the next message, and then not any more.
    assert!(
        timeout(Duration::from_millis(100), records.next())
            .await
            .is_err()
    );
    for seq in 2..=EVENTS {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    let started = Instant::now();
    for seq in 2..=EVENTS {
        assert_eq!(records.next().await.unwrap().unwrap().last(), Seq(seq));
    }
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert!(records.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_copy_reaches_no_reader() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let mut records = log.read(&id, Seq::START);
    assert!(
        timeout(Duration::from_millis(300), records.next())
            .await
            .is_err()
    );
    let client = async_nats::connect(server.url()).await.unwrap();
    client
        .publish(format!("unbraid.live.{id}"), "forged".into())
        .await
        .unwrap();
    client.flush().await.unwrap();
    assert!(
        timeout(Duration::from_millis(300), records.next())
            .await
            .is_err()
    );
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    assert_eq!(records.next().await.unwrap().unwrap().last(), Seq(1));
}

/// The copies of messages that a server has lost wait in the reader's subscription, and have the numbers of those that replace
/// them.
#[tokio::test(flavor = "multi_thread")]
async fn copies_of_messages_that_the_server_has_lost_are_discarded() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let mut records = other.read(&id, Seq::START);
    let short = Duration::from_millis(300);
    for seq in 1..=3 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
        assert_eq!(records.next().await, Some(Ok(record(seq, seq))));
    }
    assert!(timeout(short, records.next()).await.is_err(), "it follows");
    for seq in 4..=9 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    sleep(short).await; // the copies arrive
    server.empty().await;
    // The producer repairs the log, as far as the reader has read.
    let next = record(10, 10);
    while !matches!(writer.append(&next).await, Err(LogError::Gap { .. })) {
        sleep(Duration::from_millis(20)).await;
    }
    for seq in 1..=3 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    let mut last = 3;
    while let Ok(Some(record)) = timeout(short, records.next()).await {
        last = record.unwrap().last().0;
    }
    // The producer writes the rest in fewer records.
    assert_eq!(writer.append(&record(4, 9)).await, Ok(Appended::New));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    let rest = async {
        while let Some(record) = records.next().await {
            last = record.unwrap().last().0;
        }
        last
    };
    let last = timeout(Duration::from_secs(15), rest).await;
    assert_eq!(last.expect("the reader hangs"), 9);
}
