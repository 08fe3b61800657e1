//! A server that is suspended, and stores what it was sent once it continues.

use std::sync::Arc;

use tokio::time::timeout;
use unbraid_log::{
    End, LogStatus, LogStore, OnFailure, Producer, ProducerOptions, Seq, StreamEnd, StreamId,
};
use unbraid_testkit::servers::RedisServer;

use crate::support::{PATIENCE, blocking, connect, meta, read_all, record};

#[tokio::test]
async fn with_the_policy_fail_the_end_has_the_same_number_for_readers_and_in_the_log() {
    let Some(server) = RedisServer::new().map(Arc::new) else {
        return;
    };
    let log = connect(&server).await;
    let id = StreamId::random().unwrap();
    let options = ProducerOptions::default().with_on_failure(OnFailure::Fail);
    let store: Arc<dyn LogStore> = Arc::new(log.clone());
    let producer = Producer::open(store, &id, &meta(), options).await.unwrap();
    blocking(&server, RedisServer::pause).await;
    // It may answer for another moment.
    let mut last = 0;
    while timeout(PATIENCE, producer.flushed()).await.unwrap().is_ok() {
        last += 1;
        producer.append(record(last, last));
    }
    producer.finish(StreamEnd::new(End::ServerError));
    blocking(&server, RedisServer::resume).await;
    timeout(PATIENCE, producer.sealed()).await.unwrap();
    assert_eq!(producer.journal().tail(), Seq(last));
    let status = log.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Ended { tail, .. }) if tail == Seq(last)),
        "{status:?}"
    );
    assert_eq!(read_all(&log, &id).await, Ok((1..=last).collect()));
}
