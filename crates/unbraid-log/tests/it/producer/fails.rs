//! The policy that ends a stream with its log.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::{sleep, timeout};
use unbraid_log::{
    End, LogStatus, LogStore, Meta, OnFailure, Producer, ProducerOptions, StreamEnd, StreamId,
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
    for fault in [Fault::Full, Fault::Foreign] {
        let mut running = start_with(OnFailure::Fail, None).await;
        running.push_flushed(2).await;
        running.log.set(fault);
        running.push();
        running.failed().await;
        running.push();
        running.producer.finish(StreamEnd::new(End::ServerError));
        sleep(Duration::from_millis(1)).await;
        assert_eq!(running.released(), 2, "{fault:?}");
        assert_eq!(running.local_end(), Some(End::ServerError));
        running.log.set(None);
        timeout(PATIENCE, running.producer.sealed()).await.unwrap();
        assert_eq!(running.kept(), 2, "{fault:?}");
    }
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

/// A log whose replicas are missing answers everything but writes: readers elsewhere would wait for as long as the lease is
/// renewed.
#[tokio::test(start_paused = true)]
async fn with_the_policy_fail_a_stream_is_left_to_others_a_lease_after_its_end() {
    let mut running = start_with(OnFailure::Fail, None).await;
    running.push_flushed(1).await;
    running.log.set(Fault::Full);
    running.push();
    running.failed().await;
    let failed = tokio::time::Instant::now();
    running.producer.finish(StreamEnd::new(End::ServerError));
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert!(
        failed.elapsed() <= LEASE + Duration::from_secs(1),
        "{:?}",
        failed.elapsed()
    );
    assert!(running.producer.has_given_up());
    assert_eq!(running.local_end(), Some(End::ServerError));
    running.log.set(None);
    sleep(LEASE + Duration::from_secs(1)).await;
    let status = running.engine.gateway().seal_lost(&running.id).await;
    assert!(
        matches!(
            status,
            Ok(LogStatus::Ended {
                end: StreamEnd {
                    end: End::ProducerLost,
                    ..
                },
                ..
            })
        ),
        "{status:?}"
    );
}

#[test]
fn events_that_wait_for_the_log_when_the_process_ends_are_reported_as_dropped() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let running = runtime.block_on(async {
        let mut running = start_with(OnFailure::Degrade, None).await;
        running.push_flushed(1).await;
        running.log.set(Fault::Down);
        running.push();
        sleep(Duration::from_secs(1)).await;
        assert!(running.producer.is_degraded());
        running
    });
    drop(runtime);
    assert_eq!(running.reports.given_up.load(Ordering::Relaxed), 1);
    assert_eq!(running.reports.degraded.load(Ordering::Relaxed), 0);
}
