//! A server that is suspended: its connections stay open, and it does not answer.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{
    Appended, End, Follower, LogStatus, LogStore, OnFailure, Producer, ProducerOptions, Seq,
    StreamEnd,
};

use crate::support::{LEASE, connect, meta, new_id, record, server};

/// How long the server does not answer. The client gives up a connection after four to six seconds, so these leave it as it is.
const SILENCES: [Duration; 4] = [
    Duration::from_millis(1_800),
    Duration::from_millis(2_300),
    Duration::from_millis(2_900),
    Duration::from_millis(3_600),
];

/// Suspends the server for this long while a producer has a follower on another connection.
async fn check_living_producer(silence: Duration) {
    let Some(server) = server().await else {
        return;
    };
    let log = Arc::new(connect(&server).await);
    let other = Arc::new(connect(&server).await);
    let id = new_id();
    let options = ProducerOptions::default().with_lease(LEASE);
    let opened = Producer::open(log, &id, &meta(), options).await;
    let producer = opened.unwrap();
    let follower = Follower::start(other.clone(), id.clone(), LEASE);
    let mut last = 0;
    let mut produce = async |time: Duration| {
        let start = Instant::now();
        while start.elapsed() < time {
            last += 1;
            producer.append(record(last, last));
            sleep(Duration::from_millis(50)).await;
        }
    };
    produce(LEASE / 2).await;
    server.pause();
    produce(silence).await;
    server.resume();
    produce(LEASE * 3 / 2).await;
    producer.finish(StreamEnd::new(End::Finished));
    let sealed = timeout(Duration::from_secs(10), producer.sealed()).await;
    sealed.expect("the producer hangs");
    let deadline = Instant::now() + Duration::from_secs(10);
    while follower.journal().end().is_none() {
        assert!(Instant::now() < deadline, "the reader hangs");
        sleep(Duration::from_millis(10)).await;
    }
    let read = follower.journal().tail().0;
    let end = follower.journal().end().unwrap().unwrap();
    assert_eq!((end.end, read), (End::Finished, last), "{silence:?}");
    assert_eq!(producer.failure(), None, "{silence:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_producer_survives_a_server_that_is_suspended_for_longer_than_its_lease() {
    let checks = SILENCES.map(|silence| tokio::spawn(check_living_producer(silence)));
    for check in join_all(checks).await {
        check.unwrap();
    }
}

/// The server stores what it was sent once it continues.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_policy_fail_the_end_has_the_same_number_for_readers_and_in_the_log() {
    let Some(server) = server().await else {
        return;
    };
    let log = Arc::new(connect(&server).await);
    let id = new_id();
    let options = ProducerOptions::default().with_on_failure(OnFailure::Fail);
    let opened = Producer::open(log.clone(), &id, &meta(), options).await;
    let producer = opened.unwrap();
    server.pause();
    // It may answer for another moment.
    let mut last = 0;
    while producer.flushed().await.is_ok() {
        last += 1;
        producer.append(record(last, last));
    }
    producer.finish(StreamEnd::new(End::ServerError));
    server.resume();
    let sealed = timeout(Duration::from_secs(10), producer.sealed()).await;
    sealed.expect("the producer hangs");
    assert_eq!(producer.journal().tail(), Seq(last));
    let status = log.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Ended { tail, .. }) if tail == Seq(last)),
        "{status:?}"
    );
}

/// However late the producer renews: its lease begins anew with the first answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_does_not_age_while_a_server_is_suspended() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    for silence in SILENCES {
        let id = new_id();
        let mut writer = log.open(&id, &meta()).await.unwrap();
        let status = other.seal_lost(&id).await;
        assert!(matches!(status, Ok(LogStatus::Running { .. })));
        sleep(LEASE / 4).await;
        server.pause();
        // As a reader's gateway does, or does not.
        let asks = silence != SILENCES[1];
        let start = Instant::now();
        while start.elapsed() < silence {
            if asks {
                let _no_answer = other.seal_lost(&id).await;
            }
            sleep(Duration::from_millis(50)).await;
        }
        server.resume();
        let resumed = Instant::now();
        while resumed.elapsed() < LEASE * 3 / 4 {
            match other.seal_lost(&id).await {
                Ok(LogStatus::Running { .. }) => {}
                Err(error) if error.is_temporary() => {}
                status => panic!("{status:?} after {silence:?}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(writer.renew().await, Ok(()), "{silence:?}");
        assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_producer_has_an_end_one_lease_after_the_server_answers_again() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    for silence in SILENCES {
        let id = new_id();
        let mut writer = log.open(&id, &meta()).await.unwrap();
        assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
        let other = Arc::new(connect(&server).await);
        let follower = Follower::start(other, id, LEASE);
        let mut records = follower.journal().reader(Seq::START);
        records.next_batch(1).await.unwrap();
        server.pause();
        sleep(silence).await;
        server.resume();
        let resumed = Instant::now();
        while follower.journal().end().is_none() {
            let elapsed = resumed.elapsed();
            let limit = LEASE + Duration::from_millis(1_800);
            assert!(elapsed < limit, "{elapsed:?} after {silence:?}");
            sleep(Duration::from_millis(10)).await;
        }
        let end = follower.journal().end().unwrap().unwrap();
        assert_eq!(end.end, End::ProducerLost);
        let elapsed = resumed.elapsed();
        assert!(elapsed > LEASE * 3 / 4, "{elapsed:?} after {silence:?}");
    }
}
