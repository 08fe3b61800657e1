//! What another program, or a later version, has written under the keys of a stream. It stays.

use futures::StreamExt;
use unbraid_log::{End, LogError, LogStore, Seq, StreamEnd, StreamId};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::RedisServer;

use crate::support::{connect, meta, open, record};

fn key(id: &StreamId, role: &str) -> String {
    format!("unbraid:{{{id}}}:{role}")
}

/// Every call that reads or writes the stream.
async fn errors(log: &RedisLog, id: &StreamId) -> Vec<LogError> {
    let read = log.read(id, Seq::START).next().await;
    [
        log.status(id).await.err(),
        log.seal_lost(id).await.err(),
        log.erase(id).await.err(),
        read.and_then(Result::err),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[tokio::test]
async fn a_value_of_another_type_is_reported_and_stays() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    let log_key = key(&id, "log");
    assert_eq!(server.command(&["DEL", &log_key]), ":1");
    assert_eq!(server.command(&["SET", &log_key, "mine"]), "+OK");
    let expected = LogError::InvalidRecord {
        what: "the key has another type",
        offset: 0,
    };
    assert_eq!(errors(&log, &id).await, vec![expected.clone(); 4]);
    assert_eq!(writer.append(&record(1, 1)).await, Err(expected.clone()));
    assert_eq!(writer.renew().await, Err(expected.clone()));
    assert_eq!(log.open(&id, &meta()).await.err(), Some(expected));
    assert_eq!(server.command(&["GET", &log_key]), "mine");
}

#[tokio::test]
async fn a_stream_of_another_program_is_reported_and_stays() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    let (log_key, lease) = (key(&id, "log"), key(&id, "lease"));
    assert_eq!(server.command(&["DEL", &log_key, &lease]), ":2");
    let added = server.command(&["XADD", &log_key, "1700000000000-0", "field", "mine"]);
    assert_eq!(added, "1700000000000-0");
    let found = errors(&log, &id).await;
    assert_eq!(found.len(), 4);
    for error in found {
        assert!(matches!(error, LogError::InvalidRecord { .. }), "{error}");
    }
    let end = StreamEnd::new(End::Finished);
    for refused in [
        writer.append(&record(1, 1)).await.unwrap_err(),
        writer.append(&record(2, 2)).await.unwrap_err(),
        writer.renew().await.unwrap_err(),
        writer.seal(&end).await.unwrap_err(),
    ] {
        let is_typed = matches!(refused, LogError::InvalidRecord { .. });
        assert!(is_typed, "{refused}");
    }
    assert_eq!(server.command(&["XLEN", &log_key]), ":1");
    assert_eq!(
        server.command(&["PTTL", &log_key]),
        ":-1",
        "it does not expire"
    );
}

#[tokio::test]
async fn a_record_of_a_later_version_is_reported_and_stays() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    writer.append(&record(1, 2)).await.unwrap();
    let log_key = key(&id, "log");
    assert_eq!(
        server.command(&["XADD", &log_key, "3-3", "r", "\u{9}..."]),
        "3-3"
    );
    let later = LogError::UnsupportedVersion { version: 9 };
    let mut records = log.read(&id, Seq::START);
    assert_eq!(
        records.next().await,
        Some(Ok(record(1, 2))),
        "what is readable is read"
    );
    assert_eq!(records.next().await, Some(Err(later)));
    assert!(records.next().await.is_none());
    let refused = writer.append(&record(3, 3)).await;
    assert!(
        matches!(refused, Err(LogError::UnsupportedVersion { version: 9 })),
        "{refused:?}"
    );
    assert_eq!(server.command(&["XLEN", &log_key]), ":3");
}

#[tokio::test]
async fn a_stream_of_a_later_version_is_neither_sealed_nor_erased() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let id = StreamId::random().unwrap();
    let (log_key, meta_key) = (key(&id, "log"), key(&id, "meta"));
    assert_eq!(server.command(&["SET", &meta_key, "\u{2}{}"]), "+OK");
    let header = ["XADD", &log_key, "0-1", "v", "2", "g", "other", "n", "n"];
    assert_eq!(server.command(&header), "0-1");
    let later = LogError::UnsupportedVersion { version: 2 };
    assert_eq!(log.seal_lost(&id).await, Err(later.clone()));
    assert_eq!(log.erase(&id).await, Err(later.clone()));
    // The same if only the log is of a later version.
    let meta = meta().encode();
    let meta = std::str::from_utf8(&meta).unwrap();
    assert_eq!(server.command(&["SET", &meta_key, meta]), "+OK");
    assert_eq!(log.status(&id).await, Err(later.clone()));
    assert_eq!(log.seal_lost(&id).await, Err(later.clone()));
    assert_eq!(log.erase(&id).await, Err(later));
    assert_eq!(server.command(&["XLEN", &log_key]), ":1");
}

#[tokio::test]
async fn a_gap_that_another_program_has_made_is_reported_and_not_skipped() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    for seq in 1..=5 {
        writer.append(&record(seq, seq)).await.unwrap();
    }
    assert_eq!(server.command(&["XDEL", &key(&id, "log"), "3-3"]), ":1");
    let gap = LogError::Gap {
        tail: Seq(2),
        first: Seq(4),
    };
    let check = async || {
        let mut records = log.read(&id, Seq::START);
        assert_eq!(records.next().await, Some(Ok(record(1, 1))));
        assert_eq!(records.next().await, Some(Ok(record(2, 2))));
        assert_eq!(records.next().await, Some(Err(gap.clone())));
        assert!(records.next().await.is_none());
        let mut records = log.read(&id, Seq(3));
        assert_eq!(records.next().await, Some(Ok(record(4, 4))));
    };
    check().await;
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    check().await;
    // The last event is missing: the seal says so.
    assert_eq!(server.command(&["XDEL", &key(&id, "log"), "5-5"]), ":1");
    let mut records = log.read(&id, Seq(4));
    let gap = LogError::Gap {
        tail: Seq(4),
        first: Seq(5),
    };
    assert_eq!(records.next().await, Some(Err(gap)));
}

#[tokio::test]
async fn a_log_whose_begin_another_program_has_removed_has_a_gap_and_is_not_waited_for() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open(&log).await;
    for seq in 1..=5 {
        writer.append(&record(seq, seq)).await.unwrap();
    }
    let trim = |length| server.command(&["XTRIM", &key(&id, "log"), "MAXLEN", length]);
    assert_eq!(trim("2"), ":4", "the first entry and the records 1 to 3");
    let first = async |after| log.read(&id, Seq(after)).next().await;
    let gap = |tail, first| LogError::Gap {
        tail: Seq(tail),
        first: Seq(first),
    };
    for _ in 0..2 {
        assert_eq!(first(0).await, Some(Err(gap(0, 4))));
        assert_eq!(first(2).await, Some(Err(gap(2, 4))));
        assert_eq!(first(3).await, Some(Ok(record(4, 4))));
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    }
    // Only the seal is left.
    assert_eq!(trim("1"), ":2");
    assert_eq!(first(0).await, Some(Err(gap(0, 5))));
    assert_eq!(first(5).await, None);
}
