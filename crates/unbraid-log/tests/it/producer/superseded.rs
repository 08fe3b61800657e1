//! Producers whose stream another gateway seals or erases.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_degraded_producer_that_is_declared_lost_is_fenced() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.push_flushed(3).await;
    running.log.set(Fault::Down);
    running.push();
    sleep(LEASE * 2).await;
    assert_eq!(
        (running.released(), running.kept()),
        (4, 3),
        "it cannot know"
    );
    other.seal_lost(&running.id).await.unwrap();
    running.log.set(None);
    let failed = std::future::poll_fn(|cx| running.producer.poll_failed(cx));
    assert_eq!(timeout(PATIENCE, failed).await, Ok(LogError::Sealed));
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert_eq!(running.local_end(), Some(End::ProducerLost));
    assert_eq!(
        (running.released(), running.kept()),
        (4, 3),
        "nothing is taken back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_seal_of_another_gateway_is_not_reported_as_our_own() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.push_flushed(3).await;
    tokio::time::advance(LEASE * 2).await;
    other.seal_lost(&running.id).await.unwrap();
    running.finish().await;
    assert_eq!(
        running.local_end(),
        Some(End::ProducerLost),
        "its seal came too late"
    );
}

#[tokio::test(start_paused = true)]
async fn an_erased_stream_ends_its_producer() {
    let mut running = start().await;
    running.push_flushed(3).await;
    running.log.erase(&running.id).await.unwrap();
    running.push();
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert_eq!(running.producer.failure(), Some(LogError::Expired));
    assert_eq!(
        running.producer.journal().end(),
        Some(Err(LogError::Expired))
    );
}

/// Another gateway erases a stream as soon as it sees the end, which may be before the producer does.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_erased_once_it_has_ended_ends_for_its_readers_too() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.push_flushed(3).await;
    let answer = Duration::from_millis(400);
    running.log.set(Fault::SlowAnswer(answer));
    running.producer.finish(StreamEnd::new(End::Cancelled));
    sleep(answer / 2).await;
    assert_eq!(running.engine.end(&running.id), Some(End::Cancelled));
    other.erase(&running.id).await.unwrap();
    timeout(PATIENCE, running.producer.sealed()).await.unwrap();
    assert_eq!(running.local_end(), Some(End::Cancelled));
    assert_eq!((running.released(), running.producer.failure()), (3, None));
}

/// A failover to a replica that does not have the seal.
#[tokio::test(start_paused = true)]
async fn a_producer_whose_refusal_has_passed_continues_as_long_as_its_stream() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.push_flushed(3).await;
    tokio::time::advance(LEASE * 2).await;
    other.seal_lost(&running.id).await.unwrap();
    // The renewal is refused. The engine loses the seal before the producer asks for it.
    let slow = Fault::Slow(Duration::from_secs(1));
    running.log.script([None, Some(slow)]);
    running.push();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(running.kept(), 3);
    running.engine.lose(0);
    sleep(Duration::from_secs(90)).await;
    assert_eq!(running.producer.failure(), None);
    running.push_flushed(3).await;
    running.finish().await;
    assert_eq!((running.released(), running.kept()), (7, 7));
    assert_eq!(running.local_end(), Some(End::Finished));
}
