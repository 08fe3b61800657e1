//! A server that loses a stream whose producer is gone: nobody writes it again.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::{Instant, sleep};
use unbraid_log::{Follower, LogError, LogStore, Seq};
use unbraid_log_nats::NatsLog;
use unbraid_testkit::servers::nats::NatsServer;

use crate::support::{meta, new_id, options, record, server};

/// Longer than a pause between two checks, so that a lease that begins twice shows.
const LEASE: Duration = Duration::from_secs(4);

async fn connect(server: &NatsServer) -> NatsLog {
    let options = options().with_lease(LEASE);
    NatsLog::connect(&server.url(), options).await.unwrap()
}

/// Empties the server, and kills it once more after this time, if any.
async fn check_lost_stream(again: Option<Duration>) {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    writer.append(&record(1, 3)).await.unwrap();
    let follower = Follower::start(Arc::new(other), id, LEASE);
    while follower.journal().tail() != Seq(3) {
        sleep(Duration::from_millis(10)).await;
    }
    drop((writer, log));
    server.empty().await;
    if let Some(again) = again {
        sleep(again).await;
        server.kill();
        sleep(Duration::from_millis(300)).await;
        server.restart().await;
    }
    let back = Instant::now();
    let latest = LEASE + Duration::from_secs(2);
    while follower.journal().end().is_none() {
        assert!(back.elapsed() < latest, "{again:?}: no end");
        sleep(Duration::from_millis(10)).await;
    }
    let end = follower.journal().end().unwrap();
    assert_eq!(end, Err(LogError::Unknown), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_stream_that_is_lost_for_good_ends_within_its_lease_and_two_seconds() {
    let pauses = [None, Some(300), Some(600), Some(1_000), Some(2_000)];
    let checks = pauses.map(|pause| {
        let again = pause.map(Duration::from_millis);
        tokio::spawn(check_lost_stream(again))
    });
    for check in join_all(checks).await {
        check.unwrap();
    }
}
