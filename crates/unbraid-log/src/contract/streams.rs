//! Appending, reading, sealing, and what becomes of a stream.

use std::time::{Duration, SystemTime};

use futures::{StreamExt, future::join_all};
use tokio::time::sleep;
use unbraid_core::ChoiceIndex;

use super::{
    Engine,
    fixture::{Follower, end_of, meta, new_id, open, read_to_end, record, record_with, status},
};
use crate::{Appended, Command, End, Event, LogError, LogStatus, RecordBuilder, Seq, StreamEnd};

pub(super) async fn a_reader_gets_what_was_appended(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let running = status(&*stream.log, &stream.id).await;
    assert_eq!(
        running,
        LogStatus::Running {
            meta: meta().into(),
            tail: Seq::START
        }
    );
    stream.append(1, 3).await;
    assert_eq!(stream.writer.append(&record(4, 9)).await, Ok(Appended::New));
    assert_eq!(stream.tail().await, Seq(9));
    let mut reader = Follower::new(&*stream.log, &stream.id, 0);
    reader.reach(9).await;
    stream.seal(End::Finished).await;
    assert_eq!(reader.next().await, None);
    let ended = status(&*stream.log, &stream.id).await;
    let LogStatus::Ended {
        tail,
        end,
        expires,
        meta: kept,
    } = ended
    else {
        panic!("not ended: {ended:?}");
    };
    assert_eq!(
        (tail, end, &*kept),
        (Seq(9), StreamEnd::new(End::Finished), &meta())
    );
    let remaining = expires
        .duration_since(SystemTime::now())
        .unwrap_or_default();
    assert!(
        remaining <= engine.ttl() + Duration::from_secs(5),
        "{remaining:?}"
    );
}

pub(super) async fn a_reader_follows_the_log_and_ends_after_the_seal(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let mut early = Follower::new(&*stream.log, &stream.id, 0);
    for seq in 1..=20 {
        stream.append(seq, seq).await;
        early.reach(seq).await;
    }
    stream.seal(End::Interrupted).await;
    assert_eq!(early.next().await, None);
    assert_eq!(stream.read(0).await.len(), 20);
}

pub(super) async fn every_cursor_gets_the_rest(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 2).await;
    assert_eq!(stream.writer.append(&record(3, 7)).await, Ok(Appended::New));
    stream.append(8, 8).await;
    // A cursor beyond the log waits for greater numbers.
    let mut far = Follower::new(&*stream.log, &stream.id, 9);
    stream.append(9, 9).await;
    stream.append(10, 10).await;
    far.reach(10).await;
    stream.seal(End::Finished).await;
    for after in 0..=10 {
        let expected: Vec<u64> = (after + 1..=10).collect();
        assert_eq!(stream.read(after).await, expected, "after {after}");
    }
    assert!(
        stream.read(1000).await.is_empty(),
        "a sealed log ends for every cursor"
    );
}

pub(super) async fn readers_of_several_gateways_get_the_same(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let (other, third) = (engine.gateway().await, engine.gateway().await);
    let (id, second_id) = (stream.id.clone(), stream.id.clone());
    let produce = async {
        for seq in 1..=100 {
            stream.append(seq, seq).await;
        }
        stream.seal(End::Finished).await;
    };
    let readers = join_all([
        read_to_end(&*other, &id, 0),
        read_to_end(&*other, &id, 40),
        read_to_end(&*third, &second_id, 0),
    ]);
    let ((), events) = futures::future::join(produce, readers).await;
    let lengths: Vec<usize> = events.iter().map(Vec::len).collect();
    assert_eq!(lengths, [100, 60, 100]);
}

pub(super) async fn a_repeated_record_is_a_duplicate(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 2).await;
    let last = record(3, 5);
    assert_eq!(stream.writer.append(&last).await, Ok(Appended::New));
    assert_eq!(stream.writer.append(&last).await, Ok(Appended::Duplicate));
    stream.append(6, 6).await;
    stream.seal(End::Finished).await;
    assert_eq!(stream.read(0).await.len(), 6);
}

pub(super) async fn another_record_at_the_same_number_is_fenced(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 2).await;
    let other = record_with(2, 2, |_| "another producer's".to_owned());
    let refused = stream.writer.append(&other).await;
    assert_eq!(refused, Err(LogError::Fenced { first: Seq(2) }));
    stream.seal(End::Finished).await;
    assert_eq!(stream.read(0).await, [1, 2]);
}

pub(super) async fn a_record_that_leaves_a_gap_is_refused(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 2).await;
    let gap = LogError::Gap {
        tail: Seq(2),
        first: Seq(4),
    };
    assert_eq!(stream.writer.append(&record(4, 4)).await, Err(gap));
    stream.append(3, 3).await;
    assert_eq!(stream.tail().await, Seq(3));
}

pub(super) async fn nothing_is_appended_after_the_seal(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 1).await;
    stream.seal(End::Finished).await;
    assert_eq!(
        stream.writer.append(&record(2, 2)).await,
        Err(LogError::Sealed)
    );
    assert_eq!(stream.writer.renew().await, Err(LogError::Sealed));
    assert_eq!(stream.read(0).await, [1]);
    // An empty stream can be sealed, too.
    let mut empty = open(engine).await;
    empty.seal(End::Refused).await;
    assert!(empty.read(0).await.is_empty());
}

pub(super) async fn the_first_end_is_kept(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let first = StreamEnd::new(End::Refused)
        .with_error(r#"{"status":429}"#.to_owned())
        .with_usage(r#"{"total_tokens":3}"#.to_owned());
    assert_eq!(stream.writer.seal(&first).await, Ok(()));
    stream.seal(End::Cancelled).await;
    let lost = stream
        .log
        .seal_lost(&stream.id)
        .await
        .expect("the engine runs");
    for status in [lost, status(&*stream.log, &stream.id).await] {
        assert!(matches!(status, LogStatus::Ended { end, .. } if end == first));
    }
}

pub(super) async fn a_long_payload_is_kept_in_parts(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let payload: String = (0..1_300_000_u32)
        .map(|at| char::from(b'a' + (at % 23) as u8))
        .collect();
    let mut builder = RecordBuilder::new(Seq(1));
    let last = builder.push(&Event::chunk(&[ChoiceIndex(0)], payload.as_bytes()));
    while let Some(record) = builder.take() {
        assert_eq!(stream.writer.append(&record).await, Ok(Appended::New));
    }
    stream.seal(End::Finished).await;
    let mut records = stream.log.read(&stream.id, Seq::START);
    let mut joined = Vec::new();
    let mut tail = Seq::START;
    while let Some(record) = records.next().await {
        let record = record.expect("the engine runs");
        tail = record.last();
        let events = record.events();
        joined.extend(events.flat_map(|(_, event)| event.payload().unwrap_or_default().to_vec()));
    }
    assert!(joined == payload.as_bytes(), "{} bytes", joined.len());
    assert_eq!(tail, last);
}

pub(super) async fn an_unknown_stream_is_unknown_to_every_call(engine: &dyn Engine) {
    let log = engine.gateway().await;
    let id = new_id();
    assert_eq!(log.status(&id).await, Ok(LogStatus::Unknown));
    assert_eq!(log.seal_lost(&id).await, Ok(LogStatus::Unknown));
    assert_eq!(log.erase(&id).await, Ok(()));
    assert_eq!(log.status(&id).await, Ok(LogStatus::Unknown));
    let sent = log.send_command(&id, Command::Cancel(None)).await;
    assert_eq!(sent, Err(LogError::Unknown));
    let mut records = log.read(&id, Seq::START);
    assert_eq!(records.next().await, Some(Err(LogError::Unknown)));
    assert!(records.next().await.is_none());
}

/// assistant-ui 7201, LibreChat 13117: a stale producer writes into an id that is used again.
pub(super) async fn an_id_is_opened_once(engine: &dyn Engine) {
    let (one, other) = (engine.gateway().await, engine.gateway().await);
    let (id, meta) = (new_id(), meta());
    let opened = join_all((0..10).map(|turn| {
        let log = if turn % 2 == 0 { &one } else { &other };
        log.open(&id, &meta)
    }))
    .await;
    let errors: Vec<_> = opened
        .iter()
        .filter_map(|opened| opened.as_ref().err())
        .collect();
    assert_eq!(errors.len(), 9);
    assert!(
        errors.iter().all(|error| **error == LogError::Exists),
        "{errors:?}"
    );
    for mut writer in opened.into_iter().flatten() {
        assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    }
    assert_eq!(one.open(&id, &meta).await.err(), Some(LogError::Exists));
}

/// The answer of `open` was lost, or the engine has forgotten the stream.
pub(super) async fn a_stream_is_opened_again_by_its_opener(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 3).await;
    let again = stream.log.reopen(&stream.id, &meta()).await;
    let mut writer = again.expect("the stream is running");
    assert_eq!(writer.append(&record(3, 3)).await, Ok(Appended::Duplicate));
    assert_eq!(writer.append(&record(4, 4)).await, Ok(Appended::New));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert_eq!(stream.read(0).await.len(), 4);
    let sealed = stream.log.reopen(&stream.id, &meta()).await;
    assert_eq!(sealed.err(), Some(LogError::Exists));

    let new = new_id();
    let writer = stream.log.reopen(&new, &meta()).await;
    assert!(writer.is_ok(), "a stream that does not exist is created");
    let tail = Seq::START;
    assert!(matches!(
        status(&*stream.log, &new).await,
        LogStatus::Running { tail: found, .. } if found == tail
    ));
}

pub(super) async fn an_erased_stream_is_expired(engine: &dyn Engine) {
    let mut running = open(engine).await;
    let mut ended = open(engine).await;
    running.append(1, 1).await;
    ended.append(1, 1).await;
    ended.seal(End::Finished).await;
    let mut reader = Follower::new(&*running.log, &running.id, 0);
    reader.reach(1).await;
    for stream in [&running, &ended] {
        for _ in 0..2 {
            assert_eq!(stream.log.erase(&stream.id).await, Ok(()));
            let erased = status(&*stream.log, &stream.id).await;
            assert_eq!(
                erased,
                LogStatus::Expired {
                    meta: meta().into()
                }
            );
        }
        let mut records = stream.log.read(&stream.id, Seq::START);
        assert_eq!(records.next().await, Some(Err(LogError::Expired)));
        let opened = stream.log.open(&stream.id, &meta()).await;
        assert_eq!(opened.err(), Some(LogError::Exists));
    }
    assert_eq!(
        reader.next().await,
        Some(Err(LogError::Expired)),
        "no reader waits forever"
    );
    assert_eq!(
        running.writer.append(&record(2, 2)).await,
        Err(LogError::Expired)
    );
}

pub(super) async fn a_stream_expires_after_its_ttl(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 1).await;
    stream.seal(End::Finished).await;
    assert_eq!(
        end_of(&status(&*stream.log, &stream.id).await),
        Some(End::Finished)
    );
    sleep(engine.ttl() + Duration::from_secs(2)).await;
    let expired = status(&*stream.log, &stream.id).await;
    assert_eq!(
        expired,
        LogStatus::Expired {
            meta: meta().into()
        }
    );
    let mut records = stream.log.read(&stream.id, Seq::START);
    assert_eq!(records.next().await, Some(Err(LogError::Expired)));
    let opened = stream.log.open(&stream.id, &meta()).await;
    assert_eq!(
        opened.err(),
        Some(LogError::Exists),
        "ids are never used again"
    );
}
