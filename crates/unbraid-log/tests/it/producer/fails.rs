//! The policy that ends a stream with its log.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use unbraid_log::{
    End, Meta, OnFailure, Producer, ProducerOptions, StreamEnd, StreamId,
    internal::scripted::{Engine, Fault},
};

use super::{LEASE, PATIENCE, start_with};

/// A broker that is suspended, for example: the record that had no answer is stored later, or not. An end with the number of that
/// record would hide it from a client that resumes after the end.
#[tokio::test(start_paused = true)]
async fn with_the_policy_fail_the_end_has_the_same_number_for_readers_and_in_the_log() {
    let late = Duration::from_secs(5);
    for fault in [
        Fault::Down,
        Fault::Hang,
        Fault::LostAnswer,
        Fault::Late(late),
    ] {
        for finishes_first in [false, true] {
            let mut running = start_with(OnFailure::Fail, None).await;
            running.push_flushed(2).await;
            running.log.set(Fault::Hang);
            running.log.script([Some(fault)]);
            running.push();
            if finishes_first {
                running.producer.finish(StreamEnd::new(End::Finished));
            }
            running.failed().await;
            running.producer.finish(StreamEnd::new(End::ServerError));
            sleep(Duration::from_millis(1)).await;
            assert_eq!(running.released(), 3, "{fault:?}");
            assert_eq!(
                running.local_end(),
                Some(End::ServerError),
                "no reader waits for the log"
            );
            running.log.set(None);
            timeout(PATIENCE, running.producer.sealed()).await.unwrap();
            sleep(late).await;
            assert_eq!(running.kept(), 3, "{fault:?}");
            assert_eq!(running.engine.end(&running.id), Some(End::ServerError));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_the_policy_fail_readers_do_not_get_what_the_log_has_refused_or_was_not_sent() {
    let mut running = start_with(OnFailure::Fail, None).await;
    running.push_flushed(2).await;
    running.log.set(Fault::Full);
    running.push();
    running.failed().await;
    running.push();
    running.producer.finish(StreamEnd::new(End::ServerError));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(running.released(), 2);
    assert_eq!(running.local_end(), Some(End::ServerError));
    running.log.set(None);
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert_eq!(running.kept(), 2);
}

#[tokio::test(start_paused = true)]
async fn with_the_policy_fail_an_opening_that_gets_no_answer_fails_within_a_second() {
    let engine = Engine::new(LEASE);
    let log = engine.gateway();
    log.set(Fault::Slow(Duration::from_secs(60)));
    let id = StreamId::random().unwrap();
    let options = ProducerOptions::default().with_on_failure(OnFailure::Fail);
    let meta = Meta::new("/v1/completions", 1);
    let started = tokio::time::Instant::now();
    let opened = Producer::open(log, &id, &meta, options).await;
    assert!(opened.unwrap_err().is_temporary());
    assert!(started.elapsed() <= Duration::from_secs(1));
}
