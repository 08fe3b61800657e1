//! Replicas: what is acknowledged only once they have it, and what a failover loses.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;
use unbraid_log::{
    Appended, Claim, ClaimKey, End, LogError, LogStatus, LogStore, Seq, StreamEnd, StreamId,
};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::{Proxy, RedisServer, wait_until};

use crate::support::{append, open, options, read_all, record, seal};

/// A server, and a replica of it that is up to date.
fn start_pair() -> Option<(RedisServer, RedisServer)> {
    let primary = RedisServer::new()?;
    let replica = RedisServer::start_with(&[
        "--replicaof",
        &format!("127.0.0.1 {}", primary.port()),
        "--repl-diskless-sync-delay",
        "0",
    ])?;
    wait_until("the replica is up to date", || {
        primary.command(&["WAIT", "1", "100"]) == ":1"
    });
    Some((primary, replica))
}

#[tokio::test]
async fn an_acknowledged_record_is_on_the_replica() {
    let Some((primary, replica)) = start_pair() else {
        return;
    };
    let options = options().with_replicas(1);
    let log = RedisLog::connect(&primary.url(), options).await.unwrap();
    assert!(log.warnings().is_empty(), "{:?}", log.warnings());
    let (id, mut writer) = open(&log).await;
    let key = format!("unbraid:{{{id}}}:log");
    for seq in 1..=20 {
        // On a busy machine the confirmation may be late, and the append is repeated.
        let appended = append(&mut *writer, &record(seq, seq)).await;
        assert!(appended.is_ok(), "{appended:?}");
        assert_eq!(replica.command(&["XLEN", &key]), format!(":{}", seq + 1));
    }

    // The replica stops: the record is written, but not acknowledged.
    replica.pause();
    let started = Instant::now();
    let refused = writer.append(&record(21, 21)).await.unwrap_err();
    assert!(refused.to_string().contains("replicas"), "{refused}");
    assert!(refused.is_temporary() && started.elapsed() < Duration::from_millis(1500));
    // A repetition finds the record, which proves nothing about the replica.
    assert!(
        writer
            .append(&record(21, 21))
            .await
            .unwrap_err()
            .is_temporary()
    );
    // Nor does one on a new connection, on which nothing was written.
    let kill = ["CLIENT", "KILL", "TYPE", "normal"];
    assert_eq!(primary.command(&kill), ":1");
    let refused = writer.append(&record(21, 21)).await.unwrap_err();
    assert!(refused.to_string().contains("replicas"), "{refused}");
    let claim = ClaimKey::new("alice", "/", "k", [0; 32]);
    assert!(log.claim(&claim, &id).await.unwrap_err().is_temporary());
    assert!(writer.seal(&StreamEnd::new(End::Finished)).await.is_err());
    replica.resume();
    assert_eq!(
        append(&mut *writer, &record(21, 21)).await,
        Ok(Appended::Duplicate)
    );
    assert_eq!(replica.command(&["XLEN", &key]), ":23", "with the seal");
    assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
    let end = StreamEnd::new(End::Finished);
    assert_eq!(seal(&mut *writer, &end).await, Ok(()));
}

#[tokio::test]
async fn a_missing_replica_is_warned_about() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let options = options().with_replicas(2);
    let log = RedisLog::connect(&server.url(), options).await.unwrap();
    assert!(matches!(&log.warnings()[..], [one] if one.contains("0 connected replicas")));
}

#[tokio::test]
async fn a_replica_is_not_used_as_a_primary() {
    let Some((_primary, replica)) = start_pair() else {
        return;
    };
    let error = RedisLog::connect(&replica.url(), options()).await;
    assert_eq!(error.err(), Some(unbraid_log_redis::ConnectError::Replica));
}

#[tokio::test]
async fn many_writers_share_the_confirmation_of_the_replicas() {
    let Some((primary, _replica)) = start_pair() else {
        return;
    };
    let options = options().with_replicas(1);
    let log = RedisLog::connect(&primary.url(), options).await.unwrap();
    let streams = join_all((0..50).map(|_| async {
        let (id, mut writer) = open(&log).await;
        for seq in 1..=20 {
            append(&mut *writer, &record(seq, seq)).await.unwrap();
        }
        let end = StreamEnd::new(End::Finished);
        seal(&mut *writer, &end).await.unwrap();
        id
    }));
    for id in streams.await {
        assert_eq!(read_all(&log, &id).await, Ok((1..=20).collect()));
    }
}

#[tokio::test]
async fn records_that_a_failover_loses_are_appended_again() {
    let Some((primary, replica)) = start_pair() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", primary.port())).await;
    let url = format!("redis://{}", proxy.address());
    let log = RedisLog::connect(&url, options()).await.unwrap();
    let reader = RedisLog::connect(&url, options()).await.unwrap();
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 3)).await.unwrap();
    let numbers = tokio::spawn({
        let (reader, id) = (reader.clone(), id.clone());
        async move { read_all(&reader, &id).await }
    });
    // `WAIT` covers only what its own connection has written.
    let key = format!("unbraid:{{{id}}}:log");
    wait_until("the replica has the first records", || {
        replica.command(&["XLEN", &key]) == ":2"
    });
    // The replica misses three records, of which two were delivered, and becomes the primary.
    replica.pause();
    for (first, last) in [(4, 4), (5, 6)] {
        append(&mut *writer, &record(first, last)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    primary.kill();
    replica.resume();
    assert_eq!(replica.command(&["REPLICAOF", "NO", "ONE"]), "+OK");
    proxy.redirect(format!("127.0.0.1:{}", replica.port()));
    proxy.cut();

    let lost = append(&mut *writer, &record(7, 7)).await;
    let gap = LogError::Gap {
        tail: Seq(3),
        first: Seq(7),
    };
    // The replica may have received what it was sent before the primary died.
    if lost.is_err() {
        assert_eq!(lost, Err(gap));
        assert_eq!(append(&mut *writer, &record(4, 7)).await, Ok(Appended::New));
    }
    let end = StreamEnd::new(End::Finished);
    seal(&mut *writer, &end).await.unwrap();
    assert_eq!(numbers.await.unwrap(), Ok((1..=7).collect()));
    assert!(matches!(
        log.status(&id).await,
        Ok(LogStatus::Ended { tail: Seq(7), .. })
    ));
    assert_eq!(log.erase(&StreamId::random().unwrap()).await, Ok(()));
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_left_at_once() {
    let Some((primary, replica)) = start_pair() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", primary.port())).await;
    let url = format!("redis://{}", proxy.address());
    let log = RedisLog::connect(&url, options()).await.unwrap();
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    let key = format!("unbraid:{{{id}}}:log");
    wait_until("the replica has the first record", || {
        replica.command(&["XLEN", &key]) == ":2"
    });
    // The roles change, and the name leads to the new primary. No connection breaks.
    proxy.redirect(format!("127.0.0.1:{}", replica.port()));
    assert_eq!(replica.command(&["REPLICAOF", "NO", "ONE"]), "+OK");
    let port = replica.port().to_string();
    assert_eq!(primary.command(&["REPLICAOF", "127.0.0.1", &port]), "+OK");
    let refused = writer.append(&record(2, 2)).await.unwrap_err();
    assert!(
        refused.is_temporary() && refused.to_string().contains("READONLY"),
        "{refused}"
    );
    assert_eq!(writer.append(&record(2, 2)).await, Ok(Appended::New));
    assert_eq!(replica.command(&["XLEN", &key]), ":3");
}
