//! Three servers with a copy of each stream, which are killed in turn.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use unbraid_log::{End, Follower, Producer, ProducerOptions, StreamEnd};
use unbraid_log_nats::NatsLog;
use unbraid_testkit::servers::nats::NatsCluster;

use crate::support::{LEASE, meta, new_id, options, record};

/// NATS takes up to nine seconds to notice that a leader is gone and to elect another, and much longer on a busy machine or while the
/// cluster starts.
const PATIENCE: Duration = Duration::from_secs(150);

async fn connect(cluster: &NatsCluster) -> NatsLog {
    let start = Instant::now();
    loop {
        match NatsLog::connect(&cluster.url(), options().with_replicas(3)).await {
            Ok(log) => return log,
            // The servers have not elected a leader.
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until it holds, and appends a record every 50 ms meanwhile.
async fn produce_until(producer: &Producer, last: &mut u64, mut is_done: impl FnMut(u64) -> bool) {
    let start = Instant::now();
    while !is_done(*last) {
        assert!(start.elapsed() < PATIENCE, "it does not continue");
        *last += 1;
        producer.append(record(*last, *last));
        sleep(Duration::from_millis(50)).await;
    }
}

/// The stream has no leader for longer than a lease, in which its producer cannot renew. It is not lost for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_outlives_each_server_of_a_cluster() {
    let Some(cluster) = NatsCluster::start().await else {
        return;
    };
    let log = Arc::new(connect(&cluster).await);
    let other = Arc::new(connect(&cluster).await);
    let id = new_id();
    let options = ProducerOptions::default().with_lease(LEASE);
    let opened = Producer::open(log, &id, &meta(), options).await;
    let producer = opened.unwrap();
    let follower = Follower::start(other, id, LEASE);
    let mut last = 0;
    for server in cluster.servers() {
        server.kill();
        // The reader on the other connection continues.
        let missing = last + 1;
        let tail = || follower.journal().tail().0;
        produce_until(&producer, &mut last, |_| tail() > missing).await;
        server.restart().await;
        // Until the server has what it has missed, another one must not be killed.
        let restarted = Instant::now();
        let has_caught_up = |_| restarted.elapsed() > 2 * LEASE;
        produce_until(&producer, &mut last, has_caught_up).await;
    }
    producer.finish(StreamEnd::new(End::Finished));
    let start = Instant::now();
    while follower.journal().end().is_none() {
        assert!(start.elapsed() < PATIENCE, "the reader hangs");
        sleep(Duration::from_millis(10)).await;
    }
    let end = follower.journal().end().unwrap().unwrap();
    assert_eq!(
        (end.end, follower.journal().tail().0),
        (End::Finished, last)
    );
    assert_eq!(producer.failure(), None);
}
