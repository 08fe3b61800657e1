//! Claims whose stream is not open, and streams that a server which was away does not have.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use unbraid_log::{Claim, ClaimKey, LogStatus, LogStore, StreamId, internal::REPAIR_TIME};
use unbraid_log_nats::NatsLog;

use crate::support::{LEASE, connect, meta, new_id, server};

const MARGIN: Duration = Duration::from_millis(300);

fn key() -> ClaimKey {
    ClaimKey::new("alice", "/v1/completions", "k", [7; 32])
}

/// Claims until the server answers.
async fn claim(log: &NatsLog, id: &StreamId) -> Claim {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match log.claim(&key(), id).await {
            Err(error) if error.is_temporary() && Instant::now() < deadline => {
                sleep(Duration::from_millis(20)).await;
            }
            claimed => return claimed.unwrap(),
        }
    }
}

fn held(id: &StreamId) -> Claim {
    Claim::Held {
        id: id.clone(),
        fingerprint: [7; 32],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_not_repeated_is_void_after_a_lease_and_its_holder_learns_it() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (first, second) = (new_id(), new_id());
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    for _ in 0..2 {
        assert_eq!(claim(&other, &second).await, held(&first));
        sleep(LEASE - 2 * MARGIN).await;
        assert_eq!(claim(&other, &second).await, held(&first));
        assert_eq!(claim(&log, &first).await, Claim::Acquired, "repeated");
    }
    // Each gateway judges it from the moment at which it has seen it.
    assert_eq!(claim(&other, &second).await, held(&first));
    sleep(LEASE + MARGIN).await;
    let late = connect(&server).await;
    assert_eq!(claim(&late, &new_id()).await, held(&first));
    assert_eq!(claim(&other, &second).await, Claim::Acquired);
    assert_eq!(claim(&log, &first).await, held(&second));
    // What the first one does afterwards changes nothing.
    let meta = meta().with_claim(key());
    let _opened = log.open(&first, &meta).await.unwrap();
    log.release(&key(), &first).await.unwrap();
    assert_eq!(claim(&log, &new_id()).await, held(&second));
    assert_eq!(claim(&other, &second).await, Claim::Acquired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_not_void_because_the_server_was_down() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let (first, second) = (new_id(), new_id());
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    assert_eq!(claim(&other, &second).await, held(&first));
    server.kill();
    sleep(LEASE + MARGIN).await;
    server.restart().await;
    assert_eq!(claim(&other, &second).await, held(&first));
    assert_eq!(claim(&log, &first).await, Claim::Acquired);
    assert_eq!(claim(&other, &second).await, held(&first));
    sleep(LEASE + MARGIN).await;
    assert_eq!(claim(&other, &second).await, Claim::Acquired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_may_lack_a_stream_until_its_producer_has_written_it() {
    let Some(server) = server().await else {
        return;
    };
    let (producer, reader) = (connect(&server).await, connect(&server).await);
    assert!(!reader.may_lack_streams().await);
    server.kill();
    let id = new_id();
    let opened = producer.open(&id, &meta()).await;
    assert!(opened.is_err_and(|error| error.is_temporary()));
    assert!(reader.may_lack_streams().await, "it is away");
    server.restart().await;
    let started = Instant::now();
    let status = loop {
        match reader.status(&id).await {
            Err(_) => sleep(Duration::from_millis(20)).await,
            Ok(status) => break status,
        }
    };
    assert_eq!(status, LogStatus::Unknown);
    assert!(reader.may_lack_streams().await);
    let _writer = loop {
        match producer.reopen(&id, &meta()).await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(20)).await,
            opened => break opened.unwrap(),
        }
    };
    let status = reader.status(&id).await;
    assert!(
        matches!(status, Ok(LogStatus::Running { .. })),
        "{status:?}"
    );
    while reader.may_lack_streams().await {
        assert!(started.elapsed() < REPAIR_TIME + Duration::from_secs(3));
        sleep(Duration::from_millis(100)).await;
    }
    assert!(started.elapsed() >= REPAIR_TIME - MARGIN);
}
