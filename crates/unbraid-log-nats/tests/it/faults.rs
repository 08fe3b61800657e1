//! Servers that die, forget, or come back, and producers that meet another one.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{
    Appended, End, Event, LogError, LogStatus, LogStore, RecordBuilder, Seq, StreamEnd,
};
use unbraid_log_nats::NatsLog;

use crate::support::{LEASE, connect, meta, new_id, options, record, server};

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_notices_a_restarted_server_within_two_seconds() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    let mut records = other.read(&id, Seq::START);
    assert_eq!(records.next().await.unwrap().unwrap().last(), Seq(1));
    for seq in 2..5 {
        server.kill();
        server.restart().await;
        let started = Instant::now();
        while writer.append(&record(seq, seq)).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
        let next = timeout(Duration::from_secs(10), records.next()).await;
        assert_eq!(next.unwrap().unwrap().unwrap().last(), Seq(seq));
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_server_that_stays_away_ends_with_a_temporary_error() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    let _writer = log.open(&id, &meta()).await.unwrap();
    let mut records = log.read(&id, Seq::START);
    assert!(
        timeout(Duration::from_millis(300), records.next())
            .await
            .is_err()
    );
    server.kill();
    let ended = timeout(Duration::from_secs(6), records.next()).await;
    assert!(ended.unwrap().unwrap().unwrap_err().is_temporary());
    assert!(records.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_to_a_server_that_is_gone_fails_within_about_a_second() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let (id, other) = (new_id(), new_id());
    let mut writer = log.open(&id, &meta()).await.unwrap();
    server.kill();
    let key = unbraid_log::ClaimKey::new("a", "/v1", "k", [1; 32]);
    let cancel = unbraid_log::Command::Cancel(None);
    let started = Instant::now();
    let mut errors = vec![
        writer.append(&record(1, 1)).await.err(),
        writer.renew().await.err(),
        writer.seal(&StreamEnd::new(End::Finished)).await.err(),
        log.open(&other, &meta()).await.err(),
        log.status(&id).await.err(),
        log.seal_lost(&id).await.err(),
        log.erase(&id).await.err(),
        log.claim(&key, &id).await.err(),
        log.release(&key, &id).await.err(),
        log.send_command(&id, cancel).await.err(),
    ];
    errors.push(log.read(&id, Seq::START).next().await.unwrap().err());
    let elapsed = started.elapsed();
    for error in &errors {
        assert!(
            error.as_ref().is_some_and(LogError::is_temporary),
            "{error:?}"
        );
    }
    assert!(
        elapsed < Duration::from_millis(1200) * errors.len() as u32,
        "{elapsed:?}"
    );
    server.restart().await;
    while writer.append(&record(1, 1)).await.is_err() {
        sleep(Duration::from_millis(50)).await;
    }
    assert!(
        log.open(&other, &meta()).await.is_ok(),
        "an attempt that failed is repeated"
    );
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
}

/// The producer appends everything again, and merges what it has; a reader on another machine loses and repeats nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_continues_after_the_producer_has_repaired_an_emptied_server() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    for seq in 1..=5 {
        assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
    }
    let mut records = other.read(&id, Seq::START);
    for seq in 1..=3 {
        assert_eq!(records.next().await.unwrap().unwrap().last(), Seq(seq));
    }
    // Two more have been read by the reader or not. The others are merged with them.
    server.empty().await;
    let gap = loop {
        match writer.append(&record(6, 6)).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(20)).await,
            result => break result,
        }
    };
    let first = Seq(6);
    assert_eq!(
        gap,
        Err(LogError::Gap {
            tail: Seq::START,
            first
        })
    );
    let sealed = writer.seal(&StreamEnd::new(End::Finished)).await;
    assert!(
        matches!(sealed, Err(LogError::Gap { .. })),
        "it would cut the stream: {sealed:?}"
    );
    assert_eq!(writer.append(&record(1, 4)).await, Ok(Appended::New));
    assert_eq!(
        writer.append(&record(3, 8)).await,
        Ok(Appended::New),
        "its rest is new"
    );
    assert_eq!(writer.append(&record(2, 7)).await, Ok(Appended::Duplicate));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    let mut seq = 3;
    while let Some(record) = timeout(Duration::from_secs(10), records.next())
        .await
        .unwrap()
    {
        let record = record.unwrap();
        assert_eq!(record.first(), Seq(seq + 1));
        seq = record.last().0;
    }
    assert_eq!(seq, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_does_not_age_a_lease() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert!(matches!(
        other.seal_lost(&id).await,
        Ok(LogStatus::Running { .. })
    ));
    server.kill();
    sleep(LEASE + Duration::from_millis(500)).await;
    server.restart().await;
    // The producer could not renew. It gets a full lease to do so.
    let status = loop {
        match other.seal_lost(&id).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(20)).await,
            status => break status,
        }
    };
    assert!(
        matches!(status, Ok(LogStatus::Running { .. })),
        "{status:?}"
    );
    while writer.renew().await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_finds_a_silent_producer_one_lease_after_its_last_renewal() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let mut records = other.read(&id, Seq::START);
    let reader = tokio::spawn(async move { records.next().await });
    for _ in 0..4 {
        sleep(LEASE / 3).await;
        assert_eq!(writer.renew().await, Ok(()));
    }
    let silent_since = Instant::now();
    while matches!(other.seal_lost(&id).await, Ok(LogStatus::Running { .. })) {
        sleep(Duration::from_millis(100)).await;
    }
    let lost_after = silent_since.elapsed();
    assert!(
        lost_after >= LEASE - Duration::from_millis(200),
        "{lost_after:?}"
    );
    assert!(
        lost_after < LEASE + Duration::from_millis(1500),
        "{lost_after:?}"
    );
    assert!(
        timeout(Duration::from_secs(5), reader)
            .await
            .unwrap()
            .unwrap()
            .is_none()
    );
    // The producer learns it at its next renewal, too, without an append.
    assert_eq!(writer.renew().await, Err(LogError::Sealed));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_producer_learns_by_its_renewal_that_its_stream_was_erased() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(other.erase(&id).await, Ok(()));
    assert_eq!(writer.renew().await, Err(LogError::Expired));
}

/// Two writers of one stream cannot be opened, so the second one is made by a producer that was taken for lost.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_writers_one_is_fenced() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    // After the server has forgotten the stream, another gateway may open its id.
    server.empty().await;
    let mut second = loop {
        match other.open(&id, &meta()).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(20)).await,
            opened => break opened.unwrap(),
        }
    };
    let mut builder = RecordBuilder::new(Seq(1));
    builder.push(&Event::chunk(&[0.into()], b"{\"other\":1}"));
    assert_eq!(
        second.append(&builder.take().unwrap()).await,
        Ok(Appended::New)
    );
    let fenced = loop {
        match writer.append(&record(1, 2)).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(20)).await,
            result => break result,
        }
    };
    assert_eq!(fenced, Err(LogError::Fenced { first: Seq(1) }));
    let read = other.read(&id, Seq::START).next().await.unwrap().unwrap();
    assert_eq!(read.last(), Seq(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_id_that_the_server_remembers_is_not_taken_for_the_record() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    assert_eq!(writer.append(&record(2, 2)).await, Ok(Appended::New));
    // The messages are gone, and the server's memory of their ids is not.
    let context = async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let stream = context.get_stream("UNBRAID").await.unwrap();
    stream
        .purge()
        .filter(format!("unbraid.log.{id}"))
        .await
        .unwrap();
    let gap = LogError::Gap {
        tail: Seq::START,
        first: Seq(3),
    };
    assert_eq!(writer.append(&record(3, 3)).await, Err(gap));
    for seq in 1..=3 {
        assert_eq!(
            writer.append(&record(seq, seq)).await,
            Ok(Appended::New),
            "event {seq}"
        );
    }
    assert_eq!(writer.append(&record(3, 3)).await, Ok(Appended::Duplicate));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(log.read(&id, Seq::START).count().await, 3);
}

/// Without a reconnect, and by a log that only reads.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_an_operator_has_deleted_are_created_again() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    let _writer = log.open(&id, &meta()).await.unwrap();
    let context = async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap());
    for stream in ["UNBRAID", "UNBRAID_KV"] {
        context.delete_stream(stream).await.unwrap();
    }
    let started = Instant::now();
    let status = loop {
        match log.status(&id).await {
            Err(error) if error.is_temporary() => {}
            status => break status,
        }
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "it never answers"
        );
    };
    assert_eq!(status, Ok(LogStatus::Unknown));
    assert!(context.get_stream("UNBRAID").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_log_end_with_it() {
    let Some(server) = server().await else {
        return;
    };
    let handle = tokio::runtime::Handle::current();
    let before = handle.metrics().num_alive_tasks();
    let log = NatsLog::connect(&server.url(), options()).await.unwrap();
    assert!(handle.metrics().num_alive_tasks() > before);
    drop(log);
    let started = Instant::now();
    while handle.metrics().num_alive_tasks() > before {
        assert!(started.elapsed() < Duration::from_secs(20), "tasks remain");
        sleep(Duration::from_millis(100)).await;
    }
}
