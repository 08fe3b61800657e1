//! A server that refuses writes, and goes on answering: its producers live.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{
    Claim, ClaimKey, End, LogError, LogStatus, LogStore, Meta, OnFailure, Producer,
    ProducerOptions, Seq, StreamEnd, StreamId,
};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::RedisServer;

use crate::support::{LEASE, PATIENCE, connect, meta, open, read_all, record};

fn set(server: &RedisServer, name: &str, value: &str) {
    assert_eq!(server.command(&["CONFIG", "SET", name, value]), "+OK");
}

/// Starts a producer that goes on without its log, as those of a gateway.
async fn start(log: &RedisLog, meta: &Meta) -> (StreamId, Producer) {
    let id = StreamId::random().unwrap();
    let options = ProducerOptions::default().with_lease(LEASE);
    let log: Arc<dyn LogStore> = Arc::new(log.clone());
    let opened = Producer::open(log, &id, meta, options).await;
    (id, opened.unwrap())
}

/// Asks again and again, for longer than a lease, whether the producers of these streams are lost.
async fn check_running(judge: &RedisLog, ids: &[StreamId]) {
    let until = Instant::now() + 2 * LEASE;
    while Instant::now() < until {
        for id in ids {
            let status = judge.seal_lost(id).await;
            let is_running = matches!(status, Ok(LogStatus::Running { .. }));
            assert!(is_running, "{status:?}");
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Everything is written once the log is back, and readers get it.
async fn check_written(log: &RedisLog, ids: &[StreamId], producers: &[Producer], last: u64) {
    for (id, producer) in ids.iter().zip(producers) {
        let read = timeout(PATIENCE, read_all(log, id)).await;
        assert_eq!(read.unwrap(), Ok((1..=last).collect()));
        timeout(PATIENCE, producer.sealed()).await.unwrap();
        let status = log.status(id).await;
        let end = match &status {
            Ok(LogStatus::Ended { end, .. }) => Some(end.end),
            _ => None,
        };
        assert_eq!(end, Some(End::Finished), "{status:?}");
    }
}

#[tokio::test]
async fn producers_whose_events_a_full_server_refuses_are_not_lost() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (mut ids, mut producers) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let claim = ClaimKey::new("alice", "/", &number.to_string(), [0; 32]);
        let (id, producer) = start(&log, &meta().with_claim(claim)).await;
        producer.append(record(1, 1));
        producer.flushed().await.unwrap();
        ids.push(id);
        producers.push(producer);
    }
    let readers = ids.clone().into_iter().map(|id| {
        let other = other.clone();
        tokio::spawn(async move { read_all(&other, &id).await })
    });
    let readers: Vec<_> = readers.collect();
    set(&server, "maxmemory", "1");
    for producer in &producers {
        producer.append(record(2, 3));
        producer.finish(StreamEnd::new(End::Finished));
        timeout(PATIENCE, producer.flushed())
            .await
            .unwrap()
            .unwrap();
        assert!(producer.is_degraded());
    }
    check_running(&other, &ids).await;
    set(&server, "maxmemory", "0");
    for id in &ids {
        let status = other.seal_lost(id).await;
        let is_lost =
            matches!(&status, Ok(LogStatus::Ended { end, .. }) if end.end != End::Finished);
        assert!(!is_lost, "{status:?}");
    }
    check_written(&other, &ids, &producers, 3).await;
    for reader in readers {
        assert_eq!(reader.await.unwrap(), Ok(vec![1, 2, 3]));
    }
}

#[tokio::test]
async fn with_the_policy_fail_an_event_that_a_full_server_refuses_does_not_delay_the_end() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let options = ProducerOptions::default().with_on_failure(OnFailure::Fail);
    let id = StreamId::random().unwrap();
    let store: Arc<dyn LogStore> = Arc::new(log.clone());
    let producer = Producer::open(store, &id, &meta(), options).await.unwrap();
    producer.append(record(1, 1));
    producer.flushed().await.unwrap();
    set(&server, "maxmemory", "1");
    producer.append(record(2, 3));
    let refused = timeout(PATIENCE, producer.flushed()).await.unwrap();
    assert_eq!(refused, Err(LogError::Full));
    producer.finish(StreamEnd::new(End::ServerError));
    timeout(PATIENCE, producer.sealed()).await.unwrap();
    assert_eq!(read_all(&log, &id).await, Ok(vec![1]));
    assert_eq!(producer.journal().tail(), Seq(1));
}

#[tokio::test]
async fn a_stream_whose_opening_a_full_server_refuses_is_written_later() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    set(&server, "maxmemory", "1");
    let (id, producer) = start(&log, &meta()).await;
    producer.append(record(1, 2));
    producer.finish(StreamEnd::new(End::Finished));
    timeout(PATIENCE, producer.flushed())
        .await
        .unwrap()
        .unwrap();
    let until = Instant::now() + 2 * LEASE;
    while Instant::now() < until {
        assert_eq!(other.seal_lost(&id).await, Ok(LogStatus::Unknown));
        sleep(Duration::from_millis(100)).await;
    }
    set(&server, "maxmemory", "0");
    timeout(PATIENCE, producer.sealed()).await.unwrap();
    check_written(&other, &[id], &[producer], 2).await;
}

#[tokio::test]
async fn a_full_server_takes_the_end_of_a_stream_whose_events_it_has() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    writer.append(&record(1, 1)).await.unwrap();
    set(&server, "maxmemory", "1");
    let refused = writer.append(&record(2, 2)).await;
    assert_eq!(refused, Err(LogError::Full));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(read_all(&log, &id).await, Ok(vec![1]));
}

#[tokio::test]
async fn a_claim_is_renewed_although_the_server_is_full() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let claim = ClaimKey::new("alice", "/", "k", [3; 32]);
    let (id, next) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
    set(&server, "maxmemory", "1");
    let until = Instant::now() + 2 * LEASE;
    while Instant::now() < until {
        assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
        let held = Claim::Held {
            id: id.clone(),
            fingerprint: [3; 32],
        };
        assert_eq!(other.claim(&claim, &next).await, Ok(held));
        sleep(Duration::from_millis(200)).await;
    }
    let another = ClaimKey::new("alice", "/", "another", [3; 32]);
    let refused = log.claim(&another, &next).await;
    assert!(matches!(refused, Err(LogError::Unavailable { .. })));
}
