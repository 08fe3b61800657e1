//! Servers that die or forget, and networks that cut, delay and lose.

mod evictions;
mod leases;

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use unbraid_log::{
    Appended, Claim, ClaimKey, Command, End, LogError, LogStatus, LogStore, LogWriter, Seq,
    StreamEnd, StreamId,
};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::{Proxy, RedisServer};

use crate::support::{LEASE, append, blocking, connect, meta, open, options, read_all, record};

/// How long a call may take, on a busy machine.
const CALL: Duration = Duration::from_millis(2500);

/// Appends events up to this number, repairs what the server has lost, and seals the stream.
async fn produce(mut writer: Box<dyn LogWriter>, last: u64, pause: Duration) {
    let mut next = 1;
    while next <= last {
        match append(&mut *writer, &record(next, next)).await {
            Ok(_) => next += 1,
            // Merged, as a producer's memory merges them.
            Err(LogError::Gap { tail, .. }) => {
                let repaired = append(&mut *writer, &record(tail.0 + 1, next)).await;
                if repaired.is_ok() {
                    next += 1;
                }
            }
            Err(error) => panic!("{error}"),
        }
        sleep(pause).await;
    }
    loop {
        match writer.seal(&StreamEnd::new(End::Finished)).await {
            Ok(()) => return,
            Err(LogError::Gap { tail, .. }) => {
                let repaired = append(&mut *writer, &record(tail.0 + 1, last)).await;
                assert!(repaired.is_ok(), "{repaired:?}");
            }
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    }
}

/// Produces a stream while a fault is caused again and again. Readers of two gateways, an early and a late one, get everything
/// exactly once.
async fn check(url: &str, last: u64, fault: impl AsyncFn()) {
    let producer = RedisLog::connect(url, options()).await.unwrap();
    let gateways = [
        RedisLog::connect(url, options()).await.unwrap(),
        RedisLog::connect(url, options()).await.unwrap(),
    ];
    let (id, writer) = open(&producer).await;
    let readers = gateways.map(|gateway| {
        let id = id.clone();
        tokio::spawn(async move {
            let read = read_all(&gateway, &id).await;
            (read, read_all(&gateway, &id).await)
        })
    });
    let produced = tokio::spawn(produce(writer, last, Duration::from_millis(10)));
    for _ in 0..3 {
        sleep(Duration::from_millis(300)).await;
        fault().await;
    }
    produced.await.unwrap();
    for reader in readers {
        let (early, late) = reader.await.unwrap();
        assert_eq!(early, Ok((1..=last).collect()));
        assert_eq!(late, Ok((1..=last).collect()));
    }
}

#[tokio::test]
async fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let url = server.url();
    let kill = async || {
        let restart = |server: &RedisServer| {
            server.kill();
            server.start();
        };
        blocking(&server, restart).await;
    };
    check(&url, 200, kill).await;
}

#[tokio::test]
async fn a_server_that_restarts_empty_is_filled_again() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let url = server.url();
    let empty = async || {
        let restart = |server: &RedisServer| {
            server.kill();
            server.delete_data();
            server.start();
        };
        blocking(&server, restart).await;
    };
    check(&url, 200, empty).await;
}

#[tokio::test]
async fn a_server_that_is_flushed_is_filled_again() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    // No connection breaks, so nobody is notified.
    check(&server.url(), 200, async || {
        assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_cut_every_three_seconds_loses_nothing() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", server.port())).await;
    proxy.cut_after(Some(Duration::from_secs(3)));
    let url = format!("redis://{}", proxy.address());
    check(&url, 600, async || {
        sleep(Duration::from_millis(500)).await;
        proxy.cut();
    })
    .await;
}

#[tokio::test]
async fn a_network_that_refuses_and_loses_packets_delays_everything_and_loses_nothing() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", server.port())).await;
    let url = format!("redis://{}", proxy.address());
    check(&url, 200, async || {
        proxy.refuse(true);
        sleep(Duration::from_millis(300)).await;
        proxy.refuse(false);
        sleep(Duration::from_millis(300)).await;
        proxy.hold(true);
        sleep(Duration::from_millis(1500)).await;
        proxy.hold(false);
    })
    .await;
}

/// Every call ends in time with a temporary error.
async fn check_unavailable(log: &RedisLog, writer: &mut dyn LogWriter) {
    let id = StreamId::random().unwrap();
    let claim = ClaimKey::new("alice", "/", "k", [0; 32]);
    let end = StreamEnd::new(End::Finished);
    let mut failures = Vec::new();
    let started = Instant::now();
    let mut note = |error: Option<LogError>| failures.push((error, started.elapsed()));
    note(writer.append(&record(2, 2)).await.err());
    note(writer.renew().await.err());
    note(writer.seal(&end).await.err());
    note(log.open(&id, &meta()).await.err());
    note(log.status(&id).await.err());
    note(log.seal_lost(&id).await.err());
    note(log.erase(&id).await.err());
    note(log.claim(&claim, &id).await.err());
    note(log.release(&claim, &id).await.err());
    note(log.send_command(&id, Command::Cancel(None)).await.err());
    let mut before = Duration::ZERO;
    for (error, after) in failures {
        let error = error.expect("the server does not answer");
        assert!(error.is_temporary(), "{error}");
        assert!(after - before < CALL, "{:?}: {error}", after - before);
        before = after;
    }
}

#[tokio::test]
async fn a_server_that_answers_after_five_seconds_is_unavailable_until_it_is_faster() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", server.port())).await;
    let url = format!("redis://{}", proxy.address());
    let log = RedisLog::connect(&url, options()).await.unwrap();
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    proxy.delay(Duration::from_secs(5));
    check_unavailable(&log, &mut *writer).await;
    proxy.delay(Duration::ZERO);
    // The append has arrived, although its answer has not.
    let again = append(&mut *writer, &record(2, 2)).await;
    assert_eq!(again, Ok(Appended::Duplicate));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(read_all(&log, &id).await, Ok(vec![1, 2]));
}

#[tokio::test]
async fn a_suspended_server_is_unavailable_until_it_is_resumed() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    server.pause();
    check_unavailable(&log, &mut *writer).await;
    server.resume();
    let again = append(&mut *writer, &record(2, 2)).await;
    assert!(matches!(again, Ok(_) | Err(LogError::Sealed)), "{again:?}");
    let status = log.status(&id).await;
    assert!(
        matches!(
            status,
            Ok(LogStatus::Ended { .. } | LogStatus::Running { .. })
        ),
        "{status:?}"
    );
}

#[tokio::test]
async fn a_stopped_server_is_reported_at_once_and_found_again() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    blocking(&server, RedisServer::stop).await;
    let started = Instant::now();
    check_unavailable(&log, &mut *writer).await;
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "calls do not wait after a refusal"
    );
    blocking(&server, RedisServer::start).await;
    assert_eq!(append(&mut *writer, &record(2, 2)).await, Ok(Appended::New));
    // A call after a pause uses the first connection that works.
    blocking(&server, |server| {
        server.kill();
        server.start();
    })
    .await;
    let status = log.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Running { tail: Seq(2), .. })),
        "{status:?}"
    );
}

#[tokio::test]
async fn commands_are_kept_while_the_server_restarts() {
    use futures::StreamExt;
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (id, _writer) = open(&log).await;
    let mut commands = log.commands();
    let all = Command::Cancel(None);
    assert_eq!(other.send_command(&id, all).await, Ok(()));
    assert_eq!(commands.next().await, Some((id.clone(), all)));
    for choice in 0..3_u32 {
        let command = Command::Cancel(Some(choice.into()));
        assert_eq!(other.send_command(&id, command).await, Ok(()));
        blocking(&server, |server| {
            server.kill();
            server.start();
        })
        .await;
        assert_eq!(commands.next().await, Some((id.clone(), command)));
    }
    let key = format!("unbraid:commands:{}", log.gateway());
    sleep(Duration::from_millis(100)).await;
    assert_eq!(
        server.command(&["XLEN", &key]),
        ":0",
        "what was delivered is removed"
    );
}

#[tokio::test]
async fn a_claim_of_a_lost_server_is_restored_with_its_stream() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let claim = ClaimKey::new("alice", "/", "k", [3; 32]);
    let (id, next) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
    let meta = meta().with_claim(claim.clone());
    let mut writer = log.open(&id, &meta).await.unwrap();
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    assert_eq!(writer.renew().await, Ok(()));
    let held = Claim::Held {
        id: id.clone(),
        fingerprint: [3; 32],
    };
    assert_eq!(other.claim(&claim, &next).await, Ok(held));
    let status = other.seal_lost(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Running { .. })),
        "{status:?}"
    );
}

#[tokio::test]
async fn readers_end_when_the_server_does_not_come_back() {
    use futures::StreamExt;
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    let mut records = other.read(&id, Seq::START);
    assert_eq!(records.next().await, Some(Ok(record(1, 1))));
    blocking(&server, RedisServer::kill).await;
    let ended = tokio::time::timeout(Duration::from_secs(15), records.next()).await;
    let error = ended.expect("the reader ends").unwrap().unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert!(records.next().await.is_none());
    let again = other.read(&id, Seq(1)).next().await.unwrap().unwrap_err();
    assert!(again.is_temporary(), "{again}");
}

#[tokio::test]
async fn readers_of_a_stream_that_is_lost_for_good_end() {
    use futures::StreamExt;
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let mut readers = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (id, mut writer) = open(&log).await;
        append(&mut *writer, &record(1, 1)).await.unwrap();
        let mut records = other.read(&id, Seq::START);
        assert_eq!(records.next().await, Some(Ok(record(1, 1))));
        readers.push(records);
        ids.push(id);
    }
    // The producer is dead, so nobody repairs it. An evicted log leaves its meta data, a flushed server nothing.
    assert_eq!(
        server.command(&["DEL", &format!("unbraid:{{{}}}:log", ids[0])]),
        ":1"
    );
    let lost: Vec<_> = ["log", "meta"]
        .map(|role| format!("unbraid:{{{}}}:{role}", ids[1]))
        .into();
    assert_eq!(server.command(&["DEL", &lost[0], &lost[1]]), ":2");
    for (mut records, expected) in readers
        .into_iter()
        .zip([LogError::Expired, LogError::Unknown])
    {
        let ended = tokio::time::timeout(Duration::from_secs(25), records.next()).await;
        assert_eq!(ended.expect("the reader ends"), Some(Err(expected)));
    }
}

#[tokio::test]
async fn a_stream_whose_opening_was_not_answered_is_opened_once() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let proxy = Proxy::start(format!("127.0.0.1:{}", server.port())).await;
    let url = format!("redis://{}", proxy.address());
    let log = RedisLog::connect(&url, options()).await.unwrap();
    // The server knows the script after that, so that the next request is the opening.
    let _first = open(&log).await;
    proxy.delay(Duration::from_millis(400));
    let cut = async {
        sleep(Duration::from_millis(200)).await;
        assert_eq!(server.command(&["DBSIZE"]), ":6", "both streams exist");
        proxy.delay(Duration::ZERO);
        proxy.cut();
    };
    let ((id, mut writer), ()) = futures::future::join(open(&log), cut).await;
    assert_eq!(append(&mut *writer, &record(1, 1)).await, Ok(Appended::New));
    assert_eq!(log.open(&id, &meta()).await.err(), Some(LogError::Exists));
}

#[test]
fn a_log_survives_the_runtime_that_has_connected_it() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let (log, id, mut writer) = first.block_on(async {
        let log = connect(&server).await;
        let (id, writer) = open(&log).await;
        (log, id, writer)
    });
    drop(first);
    runtime().block_on(async {
        assert_eq!(append(&mut *writer, &record(1, 1)).await, Ok(Appended::New));
        let status = log.status(&id).await;
        assert!(
            matches!(status, Ok(LogStatus::Running { tail: Seq(1), .. })),
            "{status:?}"
        );
    });
}
