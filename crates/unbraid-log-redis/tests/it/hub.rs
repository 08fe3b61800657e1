//! Readers of other gateways share connections.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::{Instant, timeout};
use unbraid_log::{Command, End, LogStore, Seq, StreamEnd};
use unbraid_testkit::servers::RedisServer;

use crate::support::{PATIENCE, append, connect, open, read_all, record};

/// The connections that wait for entries.
fn blocked(server: &RedisServer) -> usize {
    let clients = server.command(&["CLIENT", "LIST"]);
    clients
        .lines()
        .filter(|client| client.contains("cmd=xread"))
        .count()
}

async fn wait_for_blocked(server: &RedisServer, expected: usize) {
    let reached = async {
        while blocked(server) != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "{} instead of {expected}", blocked(server));
}

#[tokio::test]
async fn three_hundred_streams_are_followed_on_three_connections() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (producer, reader) = (connect(&server).await, connect(&server).await);
    let mut streams = join_all((0..300).map(|_| open(&producer))).await;
    let followers = streams.iter().map(|(id, _)| {
        // Two readers of one stream share its place.
        let (reader, id) = (reader.clone(), id.clone());
        tokio::spawn(async move {
            futures::future::join(read_all(&reader, &id), read_all(&reader, &id)).await
        })
    });
    let followers: Vec<_> = followers.collect();
    wait_for_blocked(&server, 3).await;
    for seq in 1..=5 {
        for (_, writer) in &mut streams {
            append(&mut **writer, &record(seq, seq)).await.unwrap();
        }
    }
    for (_, writer) in &mut streams {
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    }
    for follower in join_all(followers).await {
        let (one, other) = follower.unwrap();
        assert_eq!((one, other), (Ok((1..=5).collect()), Ok((1..=5).collect())));
    }
    // Nothing is followed any more.
    wait_for_blocked(&server, 0).await;
}

#[tokio::test]
async fn a_stream_that_is_added_wakes_a_waiting_connection() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (producer, reader) = (connect(&server).await, connect(&server).await);
    let (first, _writer) = open(&producer).await;
    let mut waiting = reader.read(&first, Seq::START);
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let (id, mut writer) = open(&producer).await;
        let mut records = reader.read(&id, Seq::START);
        let started = Instant::now();
        let append = async {
            // The reader has caught up, and follows.
            tokio::time::sleep(Duration::from_millis(50)).await;
            append(&mut *writer, &record(1, 1)).await
        };
        let both = futures::future::join(append, records.next());
        tokio::select! {
            (appended, read) = both => {
                assert!(appended.is_ok());
                assert_eq!(read, Some(Ok(record(1, 1))));
            }
            _ = waiting.next() => panic!("nothing is appended to the first stream"),
        }
        slowest = slowest.max(started.elapsed());
    }
    // Without the wake-up it would be up to two seconds.
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[tokio::test]
async fn a_reader_that_stops_reading_misses_nothing() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (producer, gateway) = (connect(&server).await, connect(&server).await);
    let (id, mut writer) = open(&producer).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    let mut slow = gateway.read(&id, Seq::START);
    assert_eq!(slow.next().await, Some(Ok(record(1, 1))));
    // It follows now, and is left behind by more than the hub keeps for it.
    let waits = timeout(Duration::from_millis(200), slow.next()).await;
    assert!(waits.is_err());
    for seq in 2..=500 {
        append(&mut *writer, &record(seq, seq)).await.unwrap();
    }
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_all(&gateway, &id).await, Ok((1..=500).collect()));
    let mut next = 2;
    while let Some(read) = timeout(PATIENCE, slow.next()).await.unwrap() {
        assert_eq!(read, Ok(record(next, next)));
        next += 1;
    }
    assert_eq!(next, 501);
}

#[tokio::test]
async fn dropping_the_log_closes_its_connections() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (producer, gateway) = (connect(&server).await, connect(&server).await);
    let (id, _writer) = open(&producer).await;
    let mut records = gateway.read(&id, Seq::START);
    let mut commands = gateway.commands();
    let waits = timeout(Duration::from_millis(500), async {
        tokio::select! {
            _ = records.next() => {}
            _ = commands.next() => {}
        }
    });
    assert!(waits.await.is_err());
    assert_eq!(blocked(&server), 2);
    drop((records, gateway));
    let closed = timeout(Duration::from_secs(1), wait_for_blocked(&server, 0)).await;
    assert!(closed.is_ok(), "a connection outlives the log");
    // The stream of commands is the only one that never ends.
    assert!(
        timeout(Duration::from_millis(100), commands.next())
            .await
            .is_err()
    );
}

#[test]
fn a_log_outlives_the_runtime_in_which_it_was_first_read() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let (log, id, mut writer, mut records) = first.block_on(async {
        let log = connect(&server).await;
        let (id, mut writer) = open(&log).await;
        append(&mut *writer, &record(1, 1)).await.unwrap();
        let mut records = log.read(&id, Seq::START);
        assert_eq!(records.next().await, Some(Ok(record(1, 1))));
        let mut commands = log.commands();
        let waits = timeout(Duration::from_millis(300), async {
            tokio::select! {
                _ = records.next() => {}
                _ = commands.next() => {}
            }
        });
        assert!(waits.await.is_err());
        (log, id, writer, records)
    });
    drop(first);
    second.block_on(async {
        // Its connection is gone.
        let failed = timeout(PATIENCE, records.next()).await.unwrap();
        assert!(failed.is_some_and(|read| read.is_err_and(|error| error.is_temporary())));
        let mut records = log.read(&id, Seq(1));
        let append = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            append(&mut *writer, &record(2, 2)).await
        };
        let read = timeout(PATIENCE, futures::future::join(append, records.next()));
        assert_eq!(read.await.unwrap().1, Some(Ok(record(2, 2))));
        let mut commands = log.commands();
        log.send_command(&id, Command::Read).await.unwrap();
        let received = timeout(PATIENCE, commands.next()).await;
        assert_eq!(received, Ok(Some((id, Command::Read))));
    });
}

#[tokio::test]
async fn a_repair_that_merges_records_reaches_a_reader_although_nothing_follows() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (producer, gateway) = (connect(&server).await, connect(&server).await);
    let (id, mut writer) = open(&producer).await;
    let mut records = gateway.read(&id, Seq::START);
    for seq in 1..=5 {
        append(&mut *writer, &record(seq, seq)).await.unwrap();
        assert_eq!(records.next().await, Some(Ok(record(seq, seq))));
    }
    // The id of the merged record is less than that of the last one, so `XREAD` does not report it.
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    append(&mut *writer, &record(1, 6)).await.unwrap();
    let next = timeout(PATIENCE, records.next()).await;
    assert_eq!(next, Ok(Some(Ok(record(6, 6)))));
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(timeout(PATIENCE, records.next()).await, Ok(None));
}
