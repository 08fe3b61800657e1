//! A lease of `Duration::MAX` is never over, also while the log fails.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use unbraid_log::{
    End, Event, Follower, LogStore, Meta, Producer, ProducerOptions, Record, RecordBuilder, Seq,
    StreamEnd, StreamId,
    internal::scripted::{Engine, Fault, payloads},
};

const MINUTE: Duration = Duration::from_secs(60);

fn record(number: u64) -> Record {
    let mut builder = RecordBuilder::new(Seq(number));
    builder.push(&Event::chunk(&[0.into()], number.to_string().as_bytes()));
    builder.take().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_lease_is_forever_waits_for_a_log_that_is_down_and_forgets() {
    let engine = Engine::new(Duration::from_secs(3600));
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/chat/completions", 1);
    let mut writer = engine.gateway().open(&id, &meta).await.unwrap();
    let other = engine.gateway();
    other.set(Fault::Down);
    let follower = Follower::start(
        Arc::clone(&other) as Arc<dyn LogStore>,
        id.clone(),
        Duration::MAX,
    );
    sleep(MINUTE).await;
    engine.empty();
    other.set(None);
    sleep(MINUTE).await;
    for number in 1..=2 {
        writer.append(&record(number)).await.unwrap();
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!(follower.journal().end(), None);
    assert_eq!(
        payloads(&follower.journal().records(Seq::START)),
        ["1", "2"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_producer_whose_lease_is_forever_goes_on_while_its_log_is_down() {
    let engine = Engine::new(Duration::from_secs(3600));
    let log = engine.gateway();
    let id = StreamId::random().unwrap();
    let options = ProducerOptions::default().with_lease(Duration::MAX);
    let store = Arc::clone(&log) as Arc<dyn LogStore>;
    let meta = Meta::new("/v1/chat/completions", 1);
    let producer = Producer::open(store, &id, &meta, options).await.unwrap();
    log.set(Fault::Down);
    producer.append(record(1));
    sleep(MINUTE).await;
    assert!(producer.failure().is_none() && producer.is_degraded());
    log.set(None);
    producer.finish(StreamEnd::new(End::Finished));
    timeout(10 * MINUTE, producer.sealed()).await.unwrap();
    assert_eq!(engine.payloads(&id), ["1"]);
}
