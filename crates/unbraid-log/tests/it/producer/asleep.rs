//! Producers whose process is suspended, so that it notices late what has happened meanwhile.

use super::*;

/// What SIGSTOP does: the process is not polled while the lease passes.
#[tokio::test(start_paused = true)]
async fn events_that_a_sealed_log_refused_reach_no_reader() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.push_flushed(3).await;
    // The producer sleeps: its task is not polled, and the clock moves on.
    tokio::time::advance(LEASE * 2).await;
    other.seal_lost(&running.id).await.unwrap();
    running.push();
    running.push();
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert_eq!((running.released(), running.kept()), (3, 3));
    assert_eq!(running.local_end(), Some(End::ProducerLost));
    assert_eq!(running.producer.failure(), Some(LogError::Sealed));
}

/// The answer of the call in flight may have arrived, but the end of its time is noticed first.
#[tokio::test(start_paused = true)]
async fn a_call_that_the_process_has_slept_through_does_not_degrade_the_stream() {
    for policy in [OnFailure::Degrade, OnFailure::Fail] {
        for fault in [Fault::Hang, Fault::LostAnswer] {
            let mut running = start_with(policy, None).await;
            let other = running.engine.gateway();
            running.push_flushed(3).await;
            running.log.script([Some(fault)]);
            running.push();
            sleep(Duration::from_millis(1)).await;
            let kept = running.kept();
            // Nobody is polled, and another gateway seals the log.
            tokio::time::advance(LEASE * 2).await;
            other.seal_lost(&running.id).await.unwrap();
            running.push();
            running.push();
            running.producer.finish(StreamEnd::new(End::Finished));
            timeout(PATIENCE, running.producer.sealed()).await.unwrap();
            assert_eq!(running.released(), kept, "{fault:?}");
            assert_eq!(running.kept(), kept);
            assert_eq!(running.local_end(), Some(End::ProducerLost));
            assert_eq!(running.producer.failure(), Some(LogError::Sealed));
        }
    }
}

/// A process that is suspended again and again: the time in which it did not run says nothing about the log.
#[tokio::test(start_paused = true)]
async fn two_sleeps_are_not_a_log_that_has_failed_for_a_lease() {
    for policy in [OnFailure::Degrade, OnFailure::Fail] {
        let mut running = start_with(policy, None).await;
        let other = running.engine.gateway();
        running.push_flushed(3).await;
        running.log.script([Some(Fault::Hang), Some(Fault::Hang)]);
        for _ in 0..2 {
            running.push();
            sleep(Duration::from_millis(500)).await;
            tokio::time::advance(LEASE * 2).await;
            other.seal_lost(&running.id).await.unwrap();
        }
        timeout(PATIENCE, running.producer.sealed()).await.unwrap();
        assert_eq!((running.released(), running.kept()), (3, 3));
        assert_eq!(running.local_end(), Some(End::ProducerLost));
    }
}

/// Within the lease, too: its gateway may die before the append is repeated, and then the log has less than its readers.
#[tokio::test(start_paused = true)]
async fn a_call_that_the_process_has_slept_through_is_repeated_before_readers_get_more() {
    let mut running = start().await;
    running.push_flushed(3).await;
    running.log.script([Some(Fault::LostAnswer)]);
    running.push();
    sleep(Duration::from_millis(1)).await;
    tokio::time::advance(LEASE / 3).await;
    for _ in 0..500 {
        running.push();
        sleep(Duration::from_millis(1)).await;
        assert!(running.released() <= running.kept());
    }
    running.producer.flushed().await.unwrap();
    assert_eq!(running.reports.degraded.load(Ordering::Relaxed), 0);
    running.finish().await;
    assert_eq!(running.kept(), 504);
}

#[tokio::test(start_paused = true)]
async fn a_degraded_producer_that_sleeps_past_its_lease_asks_the_log_first() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.push_flushed(3).await;
    running.log.set(Fault::Down);
    running.push();
    sleep(Duration::from_secs(4)).await;
    assert_eq!((running.released(), running.kept()), (4, 3));
    // While it sleeps, the log comes back, and another gateway seals it.
    tokio::time::advance(LEASE * 2).await;
    other.seal_lost(&running.id).await.unwrap();
    running.log.set(None);
    running.push();
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert_eq!((running.released(), running.kept()), (4, 3));
    assert_eq!(running.local_end(), Some(End::ProducerLost));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_stays_down_after_a_sleep_delays_events_for_a_lease() {
    let mut running = start().await;
    running.push_flushed(3).await;
    running.log.set(Fault::Down);
    tokio::time::advance(LEASE * 2).await;
    running.push();
    sleep(LEASE - Duration::from_secs(2)).await;
    assert_eq!(running.released(), 3);
    sleep(Duration::from_secs(5)).await;
    assert!(running.producer.is_degraded());
    assert_eq!((running.released(), running.kept()), (4, 3));
    running.log.set(None);
    running.finish().await;
    assert_eq!(running.kept(), 4);
    assert_eq!(running.local_end(), Some(End::Finished));
}
