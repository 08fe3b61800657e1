//! What an append must notice although the same connection has acknowledged the one before it.

use unbraid_log::{
    Appended, End, LogError, LogStatus, LogStore, LogWriter, Seq, StreamEnd, StreamId,
};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::RedisServer;

use crate::support::{LEASE, connect, meta, open, read_all, record};

/// How many times the server has run a command.
fn calls(server: &RedisServer, command: &str) -> u64 {
    let script = "local info = redis.call('INFO', 'commandstats') \
                  return tonumber(string.match(info, 'cmdstat_' .. ARGV[1] .. ':calls=(%d+)') or 0)";
    let answer = server.command(&["EVAL", script, "0", command]);
    answer.strip_prefix(':').unwrap().parse().unwrap()
}

/// A stream with the records 1, 2 to 4, and 5.
async fn open_with_five(log: &RedisLog) -> (StreamId, Box<dyn LogWriter>) {
    let (id, mut writer) = open(log).await;
    for (first, last) in [(1, 1), (2, 4), (5, 5)] {
        let appended = writer.append(&record(first, last)).await;
        assert_eq!(appended, Ok(Appended::New));
    }
    (id, writer)
}

fn gap(tail: u64, first: u64) -> Result<Appended, LogError> {
    Err(LogError::Gap {
        tail: Seq(tail),
        first: Seq(first),
    })
}

#[tokio::test]
async fn an_append_that_follows_the_last_one_reads_no_entry() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open_with_five(&log).await;
    let before = calls(&server, "xrevrange");
    for seq in 6..=20 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    assert_eq!(calls(&server, "xrevrange"), before);
    // One that is repeated is looked up, and so is the one after it.
    let repeated = writer.append(&record(20, 20)).await;
    assert_eq!(repeated, Ok(Appended::Duplicate));
    assert_eq!(writer.append(&record(21, 21)).await, Ok(Appended::New));
    assert_eq!(calls(&server, "xrevrange"), before + 2);
    assert_eq!(writer.append(&record(22, 22)).await, Ok(Appended::New));
    assert_eq!(calls(&server, "xrevrange"), before + 2);
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_all(&log, &id).await, Ok((1..=22).collect()));
}

#[tokio::test]
async fn an_append_after_a_lost_log_is_a_gap() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    for renews in [false, true] {
        let (id, mut writer) = open_with_five(&log).await;
        assert_eq!(server.command(&["FLUSHALL"]), "+OK");
        if renews {
            // It opens the log again, empty.
            assert_eq!(writer.renew().await, Ok(()));
        }
        assert_eq!(writer.append(&record(6, 6)).await, gap(0, 6), "{renews}");
        assert_eq!(writer.append(&record(1, 6)).await, Ok(Appended::New));
        assert_eq!(writer.append(&record(7, 7)).await, Ok(Appended::New));
        writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
        assert_eq!(read_all(&log, &id).await, Ok((1..=7).collect()));
    }
}

/// A failover, or a server that becomes a replica for a moment, need not break a connection.
#[tokio::test]
async fn an_append_after_a_lost_record_is_a_gap() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open_with_five(&log).await;
    let key = format!("unbraid:{{{id}}}:log");
    assert_eq!(server.command(&["XDEL", &key, "5-5"]), ":1");
    assert_eq!(writer.append(&record(6, 6)).await, gap(4, 6));
    assert_eq!(writer.append(&record(5, 6)).await, Ok(Appended::New));
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_all(&log, &id).await, Ok((1..=6).collect()));
}

/// As one that was sent before a timeout, after which another attempt repaired the log.
#[tokio::test]
async fn an_append_that_arrives_late_is_refused() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let end = StreamEnd::new(End::Finished);
    // What the repair has written so far, in records with boundaries of its own.
    for repaired in [&[][..], &[(1, 1)], &[(1, 4)], &[(1, 1), (2, 4)]] {
        let (id, mut late) = open_with_five(&log).await;
        assert_eq!(server.command(&["FLUSHALL"]), "+OK");
        let mut writer = log.open(&id, &meta()).await.unwrap();
        for (first, last) in repaired {
            let appended = writer.append(&record(*first, *last)).await;
            assert_eq!(appended, Ok(Appended::New));
        }
        let tail = repaired.last().map_or(0, |(_, last)| *last);
        assert_eq!(late.append(&record(6, 6)).await, gap(tail, 6));
        let rest = writer.append(&record(tail + 1, 6)).await;
        assert_eq!(rest, Ok(Appended::New));
        assert_eq!(writer.append(&record(7, 7)).await, Ok(Appended::New));
        let appended = late.append(&record(6, 6)).await;
        assert_eq!(appended, Ok(Appended::Duplicate));
        writer.seal(&end).await.unwrap();
        assert_eq!(read_all(&log, &id).await, Ok((1..=7).collect()));
    }
}

/// The same, where the repair has as many records as the log had, and more events.
#[tokio::test]
async fn an_append_that_the_log_has_already_is_found() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut late) = open_with_five(&log).await;
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    let mut writer = log.open(&id, &meta()).await.unwrap();
    for (first, last) in [(1, 6), (7, 7), (8, 8)] {
        let appended = writer.append(&record(first, last)).await;
        assert_eq!(appended, Ok(Appended::New));
    }
    let appended = late.append(&record(6, 6)).await;
    assert_eq!(appended, Ok(Appended::Duplicate));
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    assert_eq!(read_all(&log, &id).await, Ok((1..=8).collect()));
}

#[tokio::test]
async fn an_append_after_one_of_another_writer_is_fenced() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let log = connect(&server).await;
    let (id, mut writer) = open_with_five(&log).await;
    let mut other = log.reopen(&id, &meta()).await.unwrap();
    let mut builder = unbraid_log::RecordBuilder::new(Seq(6));
    builder.push(&unbraid_log::Event::chunk(&[0.into()], b"another event"));
    let record_of_other = builder.take().unwrap();
    assert_eq!(other.append(&record_of_other).await, Ok(Appended::New));
    // The same first event, and a greater last one.
    let fenced = LogError::Fenced { first: Seq(6) };
    assert_eq!(writer.append(&record(6, 7)).await, Err(fenced));
    assert_eq!(other.append(&record(7, 7)).await, Ok(Appended::New));
}

#[tokio::test]
async fn an_append_after_the_end_is_refused() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (id, mut writer) = open_with_five(&log).await;
    let lease = format!("unbraid:{{{id}}}:lease");
    assert_eq!(server.command(&["DEL", &lease]), ":1");
    // A server that was started a moment ago proves nothing.
    tokio::time::sleep(2 * LEASE).await;
    let status = other.seal_lost(&id).await;
    let is_sealed = matches!(status, Ok(LogStatus::Ended { tail: Seq(5), .. }));
    assert!(is_sealed, "{status:?}");
    assert_eq!(writer.append(&record(6, 6)).await, Err(LogError::Sealed));
    let (id, mut writer) = open_with_five(&log).await;
    other.erase(&id).await.unwrap();
    assert_eq!(writer.append(&record(6, 6)).await, Err(LogError::Expired));
}
