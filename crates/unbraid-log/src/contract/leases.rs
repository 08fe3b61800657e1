//! Who may declare a producer lost, and when.

use std::collections::HashSet;

use futures::future::join_all;
use tokio::time::sleep;

use super::{
    Engine,
    fixture::{Follower, end_of, open, record},
};
use crate::{End, LogError, LogStatus, StreamEnd};

pub(super) async fn a_live_producer_is_not_lost(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let other = engine.gateway().await;
    // A reader that arrives at once must not declare it lost: the lease exists before the stream does.
    let status = other.seal_lost(&stream.id).await;
    assert!(
        matches!(status, Ok(LogStatus::Running { .. })),
        "{status:?}"
    );
    for seq in 1..=6 {
        sleep(engine.lease() / 2).await;
        assert_eq!(stream.writer.renew().await, Ok(()));
        let status = other.seal_lost(&stream.id).await;
        assert!(
            matches!(status, Ok(LogStatus::Running { .. })),
            "{status:?}"
        );
        stream.append(seq, seq).await;
    }
    stream.seal(End::Finished).await;
}

pub(super) async fn a_silent_producer_is_lost_after_its_lease(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    let other = engine.gateway().await;
    stream.append(1, 1).await;
    let mut reader = Follower::new(&*other, &stream.id, 0);
    reader.reach(1).await;
    // Twice: an engine may have to watch a lease for its full duration before it knows that it is not renewed.
    let _first = other.seal_lost(&stream.id).await;
    sleep(engine.lease() * 2).await;
    let _second = other.seal_lost(&stream.id).await;
    sleep(engine.lease() * 2).await;
    let status = other.seal_lost(&stream.id).await.expect("the engine runs");
    assert_eq!(end_of(&status), Some(End::ProducerLost));
    assert_eq!(reader.next().await, None, "the reader ends");
    // The producer wakes up: it is fenced, and the end stays.
    assert_eq!(
        stream.writer.append(&record(2, 2)).await,
        Err(LogError::Sealed)
    );
    assert_eq!(stream.writer.renew().await, Err(LogError::Sealed));
    stream.seal(End::Finished).await;
    let status = other.status(&stream.id).await.expect("the engine runs");
    assert_eq!(end_of(&status), Some(End::ProducerLost));
    assert_eq!(stream.read(0).await, [1]);
}

pub(super) async fn gateways_that_seal_at_once_agree(engine: &dyn Engine) {
    let mut stream = open(engine).await;
    stream.append(1, 1).await;
    let gateways = join_all((0..4).map(|_| engine.gateway())).await;
    let _first = join_all(gateways.iter().map(|log| log.seal_lost(&stream.id))).await;
    sleep(engine.lease() * 2).await;
    let finished = StreamEnd::new(End::Finished);
    let producer = stream.writer.seal(&finished);
    let lost = join_all(gateways.iter().map(|log| log.seal_lost(&stream.id)));
    let (sealed, _) = futures::future::join(producer, lost).await;
    assert_eq!(sealed, Ok(()));
    let mut ends = HashSet::new();
    for log in &gateways {
        let status = log.status(&stream.id).await.expect("the engine runs");
        ends.insert(end_of(&status));
    }
    assert!(ends.len() == 1 && !ends.contains(&None), "{ends:?}");
}
