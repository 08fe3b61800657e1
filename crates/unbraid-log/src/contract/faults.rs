//! An engine that stops, starts again, or forgets.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{
    Engine,
    fixture::{Follower, Opened, open, record, status},
};
use crate::{Appended, End, LogError, LogStatus, LogStore, Record, Seq, StreamEnd};

/// How long a call may wait for an engine that is gone, on a busy machine.
const ANSWER: Duration = Duration::from_secs(8);

/// Repeats the append of one record until the engine answers, as a producer does.
async fn append_until_answered(stream: &mut Opened, record: &Record) -> Result<Appended, LogError> {
    loop {
        match stream.writer.append(record).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(100)).await,
            result => return result,
        }
    }
}

pub(super) async fn a_stopped_engine_is_unavailable_and_loses_nothing(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 3).await;
    engine.stop().await;
    let next = record(4, 5);
    let asked = Instant::now();
    let refused = stream
        .writer
        .append(&next)
        .await
        .expect_err("the engine is stopped");
    assert!(refused.is_temporary(), "{refused}");
    let status = stream
        .log
        .status(&stream.id)
        .await
        .expect_err("the engine is stopped");
    assert!(status.is_temporary(), "{status}");
    assert!(asked.elapsed() < 2 * ANSWER, "{:?}", asked.elapsed());
    engine.start().await;
    // The append may have arrived or not: repeated, the record is there once.
    assert!(append_until_answered(&mut stream, &next).await.is_ok());
    assert_eq!(stream.writer.append(&record(6, 6)).await, Ok(Appended::New));
    assert_eq!(stream.writer.renew().await, Ok(()));
    stream.seal(End::Finished).await;
    assert_eq!(stream.read(0).await.len(), 6);
}

pub(super) async fn a_reader_resumes_after_the_engine_was_stopped(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let other = engine.gateway().await;
    stream.append(1, 3).await;
    let mut reader = Follower::new(&*other, &stream.id, 0);
    reader.reach(3).await;
    engine.stop().await;
    sleep(Duration::from_millis(200)).await;
    engine.start().await;
    assert!(
        append_until_answered(&mut stream, &record(4, 4))
            .await
            .is_ok()
    );
    // A reader may survive the interruption, or fail with a temporary error; then it is opened again at its cursor.
    while reader.seq < 4 {
        match reader.next().await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                assert!(error.is_temporary(), "{error}");
                sleep(Duration::from_millis(100)).await;
                reader = Follower::new(&*other, &stream.id, reader.seq);
            }
            None => panic!("the stream is not sealed"),
        }
    }
    stream.seal(End::Finished).await;
    assert_eq!(reader.next().await, None);
}

pub(super) async fn the_producer_appends_again_everything_that_an_emptied_engine_has_lost(
    engine: &dyn Engine,
) {
    let mut stream = open(engine).await;
    stream.append(1, 5).await;
    engine.empty().await;
    let lost = append_until_answered(&mut stream, &record(6, 6)).await;
    let gap = LogError::Gap {
        tail: Seq::START,
        first: Seq(6),
    };
    assert_eq!(lost, Err(gap), "the engine has lost 5 events");
    // The boundaries of the records may differ: the producer has merged them.
    for repaired in [record(1, 4), record(5, 5), record(6, 6)] {
        let appended = append_until_answered(&mut stream, &repaired).await;
        assert_eq!(appended, Ok(Appended::New));
    }
    let running = status(&*stream.log, &stream.id).await;
    assert!(
        matches!(running, LogStatus::Running { tail: Seq(6), .. }),
        "{running:?}"
    );
    assert_eq!(
        stream.writer.seal(&StreamEnd::new(End::Finished)).await,
        Ok(())
    );
    assert_eq!(stream.read(0).await.len(), 6);
}

/// What the engine had sent to a reader before may have the numbers of what replaces it.
pub(super) async fn a_late_reader_of_an_emptied_engine_reads_what_was_written_again(
    engine: &dyn Engine,
) {
    const PAUSE: Duration = Duration::from_millis(300);
    let mut stream = open(engine).await;
    let other = engine.gateway().await;
    stream.append(1, 3).await;
    let mut reader = Follower::new(&*other, &stream.id, 0);
    reader.reach(3).await;
    assert!(timeout(PAUSE, reader.next()).await.is_err(), "it follows");
    stream.append(4, 9).await;
    sleep(PAUSE).await; // it does not read what arrives
    engine.empty().await;
    let lost = append_until_answered(&mut stream, &record(10, 10)).await;
    assert!(matches!(lost, Err(LogError::Gap { .. })), "{lost:?}");
    stream.append(1, 3).await;
    while let Ok(next) = timeout(PAUSE, reader.next()).await {
        follow(&mut reader, next, &*other, &stream).await;
    }
    // The producer writes the rest in fewer records than before.
    assert_eq!(stream.writer.append(&record(4, 9)).await, Ok(Appended::New));
    stream.seal(End::Finished).await;
    while let Some(next) = reader.next().await {
        follow(&mut reader, Some(next), &*other, &stream).await;
    }
    assert_eq!(reader.seq, 9);
}

/// What replaces the lost records has fewer of them, so a place between them is not that of the same event.
pub(super) async fn a_reader_that_is_behind_in_an_emptied_engine_loses_nothing(
    engine: &dyn Engine,
) {
    let mut stream = open(engine).await;
    let other = engine.gateway().await;
    for seq in 1..=20 {
        stream.append(seq, seq).await;
    }
    let mut reader = Follower::new(&*other, &stream.id, 0);
    reader.reach(3).await;
    engine.empty().await;
    let lost = append_until_answered(&mut stream, &record(21, 21)).await;
    assert!(matches!(lost, Err(LogError::Gap { .. })), "{lost:?}");
    for first in [1, 6, 11, 16] {
        stream.append(first, first + 4).await;
    }
    stream.append(21, 21).await;
    stream.seal(End::Finished).await;
    while let Some(next) = reader.next().await {
        follow(&mut reader, Some(next), &*other, &stream).await;
    }
    assert_eq!(reader.seq, 21);
}

/// Opens a reader again at its cursor after an error.
async fn follow(
    reader: &mut Follower,
    next: Option<Result<(), LogError>>,
    log: &dyn LogStore,
    stream: &Opened,
) {
    if let Err(error) = next.expect("the stream is not sealed") {
        let is_lost = error == LogError::Unknown;
        assert!(error.is_temporary() || is_lost, "{error}");
        sleep(Duration::from_millis(100)).await;
        *reader = Follower::new(log, &stream.id, reader.seq);
    }
}

pub(super) async fn a_seal_does_not_make_a_loss_final(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 5).await;
    engine.empty().await;
    let end = StreamEnd::new(End::Finished);
    let refused = loop {
        match stream.writer.seal(&end).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(100)).await,
            result => break result,
        }
    };
    let lost = matches!(
        refused,
        Err(LogError::Gap {
            tail: Seq::START,
            ..
        })
    );
    assert!(lost, "the engine has lost 5 events: {refused:?}");
    let repaired = append_until_answered(&mut stream, &record(1, 5)).await;
    assert_eq!(repaired, Ok(Appended::New));
    assert_eq!(stream.writer.seal(&end).await, Ok(()));
    assert_eq!(stream.read(0).await.len(), 5);
}

/// GATEWAY.md, section 8: no reader hangs for longer than the lease and two seconds.
pub(super) async fn a_stream_that_is_lost_with_its_producer_ends_its_readers(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 5).await;
    let other = engine.gateway().await;
    let follower = crate::Follower::start(other, stream.id.clone(), engine.lease());
    while follower.journal().tail() != Seq(5) {
        sleep(Duration::from_millis(10)).await;
    }
    engine.empty().await;
    drop(stream);
    let back = Instant::now();
    let end = loop {
        if let Some(end) = follower.journal().end() {
            break end;
        }
        let elapsed = back.elapsed();
        assert!(
            elapsed < engine.lease() + Duration::from_secs(2),
            "no end after {elapsed:?}"
        );
        sleep(Duration::from_millis(10)).await;
    };
    // A log in this process notices that the writer is dropped.
    let is_lost = match &end {
        Ok(end) => end.end == End::ProducerLost,
        Err(error) => *error == LogError::Unknown,
    };
    assert!(is_lost, "{end:?}");
}
