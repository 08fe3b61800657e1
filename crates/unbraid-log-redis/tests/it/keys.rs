//! Which keys exist, and how long.

use std::time::Duration;

use unbraid_log::{
    Appended, Claim, ClaimKey, End, LogError, LogStatus, LogStore, Seq, StreamEnd, StreamId,
};
use unbraid_testkit::servers::RedisServer;

use crate::support::{LEASE, append, connect, meta, open, read_all, record};

const HOUR: u64 = 3_600_000;

/// The milliseconds until a key expires.
#[track_caller]
fn check_ttl(server: &RedisServer, key: &str, expected: u64) {
    check_answer(key, &server.command(&["PTTL", key]), expected);
}

/// The same for the only claim.
#[track_caller]
fn check_claim_ttl(server: &RedisServer, expected: u64) {
    let script = "return redis.call('PTTL', redis.call('KEYS', 'unbraid:claim:*')[1])";
    check_answer("claim", &server.command(&["EVAL", script, "0"]), expected);
}

#[track_caller]
fn check_answer(key: &str, answer: &str, expected: u64) {
    let ttl: i64 = answer.strip_prefix(':').unwrap().parse().unwrap();
    let expected = i64::try_from(expected).unwrap();
    assert!(
        (expected - 20_000..=expected).contains(&ttl),
        "{key}: {ttl}"
    );
}

fn key(id: &StreamId, role: &str) -> String {
    format!("unbraid:{{{id}}}:{role}")
}

#[tokio::test]
async fn keys_expire_a_day_after_the_last_sign_of_life_and_after_the_seal_sooner() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let claim = ClaimKey::new("alice", "/v1/completions", "k", [7; 32]);
    let id = StreamId::random().unwrap();
    assert_eq!(log.claim(&claim, &id).await, Ok(Claim::Acquired));
    check_claim_ttl(&server, HOUR / 4);
    let meta = meta().with_claim(claim);
    let mut writer = log.open(&id, &meta).await.unwrap();
    append(&mut *writer, &record(1, 1)).await.unwrap();
    check_ttl(&server, &key(&id, "log"), 24 * HOUR);
    check_ttl(&server, &key(&id, "meta"), 48 * HOUR + 60_000);
    check_ttl(&server, &key(&id, "lease"), LEASE.as_millis() as u64);
    check_claim_ttl(&server, 24 * HOUR);
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    check_claim_ttl(&server, 60_000);
    check_ttl(&server, &key(&id, "log"), 60_000);
    check_ttl(&server, &key(&id, "meta"), 24 * HOUR + 60_000);
    assert_eq!(server.command(&["EXISTS", &key(&id, "lease")]), ":0");
    assert_eq!(server.command(&["DBSIZE"]), ":3", "no other key is left");
}

#[tokio::test]
async fn an_append_writes_lost_meta_data_and_a_lost_lease_again() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    let (lease, meta_key) = (key(&id, "lease"), key(&id, "meta"));
    assert_eq!(server.command(&["DEL", &lease, &meta_key]), ":2");
    assert_eq!(writer.append(&record(2, 2)).await, Ok(Appended::New));
    let status = log.seal_lost(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Running { .. })),
        "{status:?}"
    );
    assert_eq!(status.unwrap().meta(), Some(&meta()));
}

#[tokio::test]
async fn a_seal_after_a_loss_is_a_gap_until_the_log_is_repaired() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 4)).await.unwrap();
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    let end = StreamEnd::new(End::Finished);
    let gap = LogError::Gap {
        tail: Seq::START,
        first: Seq(5),
    };
    assert_eq!(writer.seal(&end).await, Err(gap));
    assert_eq!(log.status(&id).await, Ok(LogStatus::Unknown));
    assert_eq!(writer.append(&record(1, 4)).await, Ok(Appended::New));
    assert_eq!(writer.seal(&end).await, Ok(()));
    assert_eq!(writer.seal(&end).await, Ok(()));
    assert_eq!(read_all(&log, &id).await, Ok(vec![1, 2, 3, 4]));
}

#[tokio::test]
async fn a_full_server_opens_nothing_and_stops_no_producer_for_good() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    let full = log.open(&StreamId::random().unwrap(), &meta()).await;
    assert_eq!(full.err(), Some(LogError::Full));
    let refused = writer.append(&record(2, 2)).await;
    assert_eq!(refused, Err(LogError::Full));
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    assert_eq!(writer.append(&record(2, 2)).await, Ok(Appended::New));
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_all(&log, &id).await, Ok(vec![1, 2]));
}

#[tokio::test]
async fn a_record_with_other_boundaries_is_appended_once() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    for part in [record(1, 2), record(3, 3), record(4, 6)] {
        append(&mut *writer, &part).await.unwrap();
    }
    // A repair merges records, and may begin before the tail that the server has kept.
    assert_eq!(writer.append(&record(2, 5)).await, Ok(Appended::Duplicate));
    assert_eq!(writer.append(&record(3, 8)).await, Ok(Appended::New));
    assert_eq!(writer.append(&record(3, 8)).await, Ok(Appended::Duplicate));
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(writer.append(&record(8, 8)).await, Ok(Appended::Duplicate));
    assert_eq!(writer.append(&record(8, 9)).await, Err(LogError::Sealed));
    assert_eq!(read_all(&log, &id).await, Ok((1..=8).collect()));
}

#[tokio::test]
async fn only_one_of_two_writers_of_a_stream_continues() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut first) = open(&log).await;
    // A server that was emptied accepts the id again, as if a second gateway had opened it.
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    let mut second = log.open(&id, &meta()).await.unwrap();
    assert_eq!(second.append(&record(1, 2)).await, Ok(Appended::New));
    let other = {
        let mut builder = unbraid_log::RecordBuilder::new(Seq(1));
        builder.push(&unbraid_log::Event::chunk(&[0.into()], b"another text"));
        builder.take().unwrap()
    };
    let fenced = LogError::Fenced { first: Seq(1) };
    assert_eq!(first.append(&other).await, Err(fenced));
    assert_eq!(second.append(&record(3, 3)).await, Ok(Appended::New));
    second.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_all(&log, &id).await, Ok(vec![1, 2, 3]));
}

#[tokio::test]
async fn a_lease_is_not_needed_before_it_expires() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    tokio::time::sleep(LEASE + Duration::from_millis(500)).await;
    // The producer was late, but nobody has declared it lost.
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    let status = log.seal_lost(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Running { .. })),
        "{status:?}"
    );
}

#[tokio::test]
async fn a_stream_is_opened_again_by_the_gateway_that_has_opened_it() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    assert_eq!(log.backend(), "redis");
    let (id, _lost) = open(&log).await;
    let mut writer = log.reopen(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 2)).await, Ok(Appended::New));
    // After a loss, the stream is created again.
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    let mut writer = log.reopen(&id, &meta()).await.unwrap();
    let status = log.status(&id).await;
    assert!(
        matches!(
            status,
            Ok(LogStatus::Running {
                tail: Seq::START,
                ..
            })
        ),
        "{status:?}"
    );
    assert_eq!(writer.append(&record(1, 2)).await, Ok(Appended::New));
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let sealed = log.reopen(&id, &meta()).await;
    assert_eq!(sealed.err(), Some(LogError::Exists));
    log.erase(&id).await.unwrap();
    let erased = log.reopen(&id, &meta()).await;
    assert_eq!(erased.err(), Some(LogError::Exists));
    assert_eq!(read_all(&log, &id).await, Err(LogError::Expired));
}
