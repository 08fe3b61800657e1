//! Finding streams while their log fails or lacks them.

use unbraid_log::{
    End, Event, MemoryOptions, RecordBuilder, StreamEnd,
    internal::scripted::{Engine, Fault},
};

use super::*;
use crate::{metrics::Metrics, streams::StreamLimits};

fn record(builder: &mut RecordBuilder) -> unbraid_log::Record {
    builder.push(&Event::chunk(&[], b"{}"));
    builder.take().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_copy_may_take_long_as_long_as_it_grows() {
    let journal = Journal::new();
    let growing = journal.clone();
    let copying = tokio::spawn(async move {
        let mut builder = RecordBuilder::new(Seq(1));
        for _ in 0..4 {
            sleep(LOG_TIMEOUT * 3 / 4).await;
            growing.append(&record(&mut builder)).unwrap();
        }
    });
    assert_eq!(catch_up(&journal, Seq(4), false).await, Ok(()));
    copying.await.unwrap();
    let stands_still = catch_up(&journal, Seq(5), false).await;
    assert_eq!(stands_still, Err(slow()));
    let not_sealed = catch_up(&journal, Seq(4), true).await;
    assert_eq!(not_sealed, Err(slow()));
}

fn views_of(store: Arc<dyn LogStore>) -> Views {
    let limits = StreamLimits {
        streams: 1,
        streams_per_principal: 1,
        readers: 1,
    };
    let streams = Streams::new(limits, Metrics::new("other"));
    let lease = Duration::from_secs(15);
    Views::new(store, None, streams, lease, Decoding::default())
}

#[tokio::test]
async fn a_hundred_readers_of_a_log_that_is_down_are_one_line() {
    let lines = Lines::default();
    let _captured = tracing::subscriber::set_default(lines.clone());
    let log = Engine::new(Duration::from_secs(15)).gateway();
    let views = views_of(Arc::clone(&log) as Arc<dyn LogStore>);
    let id = StreamId::random().unwrap();
    log.set(Fault::Down);
    for _ in 0..100 {
        let found = views.find(&id, |_| true).await;
        assert_eq!(found.err(), Some(ApiError::LOG_UNAVAILABLE));
    }
    assert_eq!(lines.count(), 1);
    log.set(None);
    for _ in 0..2 {
        let found = views.find(&id, |_| true).await;
        assert_eq!(found.err(), Some(ApiError::STREAM_NOT_FOUND));
    }
    assert_eq!(lines.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_a_producer_is_about_to_write_is_waited_for() {
    let engine = Engine::new(Duration::from_secs(15));
    let (log, producer) = (engine.gateway(), engine.gateway());
    let views = views_of(log);
    let (late, never) = (StreamId::random().unwrap(), StreamId::random().unwrap());
    let lacks = Duration::from_secs(4);
    let begin = || {
        engine.lack_streams(lacks);
        Instant::now()
    };
    let started = begin();
    let written = tokio::spawn({
        let id = late.clone();
        async move {
            sleep(Duration::from_secs(2)).await;
            let meta = Meta::new("/v1/chat/completions", 7);
            producer.open(&id, &meta).await.unwrap()
        }
    });
    let found = views.find(&late, |_| true).await;
    assert!(found.is_ok() && started.elapsed() < Duration::from_secs(3));
    let _writer = written.await.unwrap();
    let started = begin();
    let unknown = views.find(&never, |_| true).await;
    assert_eq!(unknown.err(), Some(ApiError::STREAM_NOT_FOUND));
    assert!(
        started.elapsed() >= lacks,
        "not before producers had the time"
    );
    // No key is claimed before that, except at a gateway that was started with its log.
    let started = begin();
    assert_eq!(views.wait_for_claims().await, Ok(()));
    assert!(started.elapsed() >= lacks);
    engine.lack_streams(10 * lacks);
    let started = Instant::now();
    assert_eq!(views.wait_for_claims().await, Ok(()));
    assert!(started.elapsed() < 2 * lacks, "and no longer");
    let new = views_of(engine.gateway());
    let started = begin();
    assert_eq!(new.wait_for_claims().await, Ok(()));
    assert_eq!(started.elapsed(), Duration::ZERO);
    // A log that never recovers is unavailable.
    engine.lack_streams(10 * LACK_TIMEOUT);
    let unknown = views.find(&never, |_| true).await;
    assert_eq!(unknown.err(), Some(ApiError::LOG_RECOVERING));
}

#[tokio::test(start_paused = true)]
async fn claims_are_not_waited_for_while_the_log_is_away() {
    let engine = Engine::new(Duration::from_secs(15));
    let log = engine.gateway();
    let views = views_of(Arc::clone(&log) as Arc<dyn LogStore>);
    sleep(NEW_GATEWAY).await;
    engine.lack_streams(10 * CLAIMS_BACK);
    for (fault, most) in [(Fault::Down, Duration::ZERO), (Fault::Hang, CHECK_TIMEOUT)] {
        log.set(fault);
        let started = Instant::now();
        let waited = views.wait_for_claims().await;
        assert_eq!(waited, Err(ApiError::LOG_UNAVAILABLE));
        assert!(started.elapsed() <= most, "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_copy_is_complete_when_it_is_found_and_ends_with_its_view() {
    let store: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
    let views = views_of(Arc::clone(&store));
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/chat/completions", 7);
    let mut writer = store.open(&id, &meta).await.unwrap();
    let mut builder = RecordBuilder::new(Seq(1));
    let mut seqs = Vec::new();
    let mut journals = Vec::new();
    for _ in 0..3 {
        writer.append(&record(&mut builder)).await.unwrap();
        let found = views.find(&id, |_| true).await.unwrap();
        seqs.push(found.view.status(2048).seq);
        journals.push(found.view.journal().clone());
    }
    assert_eq!(seqs, [Seq(1), Seq(2), Seq(3)]);
    sleep(Duration::from_millis(50)).await;
    let tails: Vec<_> = journals.iter().map(Journal::tail).collect();
    assert_eq!(tails, seqs, "nothing follows the stream without a view");
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let found = views.find(&id, |_| true).await.unwrap();
    assert_eq!(found.view.status(2048).seq, Seq(4));
    assert!(found.expires.is_some() && found.view.journal().end().is_some());
}
