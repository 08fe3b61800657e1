//! What is removed, and when.

use std::time::Duration;

use async_nats::jetstream;
use tokio::time::{Instant, sleep};
use unbraid_log::{Appended, Claim, ClaimKey, End, LogError, LogStatus, LogStore, StreamEnd};
use unbraid_log_nats::NatsLog;

use crate::support::{TTL, connect, meta, new_id, options, record, server};

/// The number of messages of the stream of the records, and of that of the values.
async fn messages(url: &str) -> (u64, u64) {
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    let log = context.get_stream("UNBRAID").await.unwrap();
    let values = context.get_stream("UNBRAID_KV").await.unwrap();
    let count = |stream: &jetstream::stream::Stream| stream.cached_info().state.messages;
    (count(&log), count(&values))
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_streams_are_removed_by_any_gateway() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let id = new_id();
        let mut writer = log.open(&id, &meta()).await.unwrap();
        for seq in 1..=20 {
            assert_eq!(writer.append(&record(seq, seq)).await, Ok(Appended::New));
        }
        assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
        ids.push(id);
    }
    drop(log);
    assert_eq!(messages(&server.url()).await.0, 5 * 21);
    // Another gateway, which has never seen them.
    let other = connect(&server).await;
    let started = Instant::now();
    while messages(&server.url()).await.0 > 5 {
        assert!(started.elapsed() < TTL * 4, "they are kept");
        sleep(Duration::from_millis(200)).await;
    }
    assert!(started.elapsed() > TTL / 2, "{:?}", started.elapsed());
    for id in &ids {
        let status = other.status(id).await;
        assert!(
            matches!(status, Ok(LogStatus::Expired { .. })),
            "{status:?}"
        );
        assert_eq!(other.open(id, &meta()).await.err(), Some(LogError::Exists));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_a_stream_is_free_after_a_while() {
    let Some(server) = server().await else {
        return;
    };
    let short = options().with_claim_pending(Duration::from_secs(1));
    let log = NatsLog::connect(&server.url(), short).await.unwrap();
    let key = ClaimKey::new("alice", "/v1", "k", [7; 32]);
    let (first, second) = (new_id(), new_id());
    assert_eq!(log.claim(&key, &first).await, Ok(Claim::Acquired));
    assert!(matches!(
        log.claim(&key, &second).await,
        Ok(Claim::Held { .. })
    ));
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(log.claim(&key, &second).await, Ok(Claim::Acquired));
    assert!(matches!(
        log.claim(&key, &first).await,
        Ok(Claim::Held { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_expires_with_its_stream() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let key = ClaimKey::new("alice", "/v1", "k", [7; 32]);
    let (id, next) = (new_id(), new_id());
    assert_eq!(log.claim(&key, &id).await, Ok(Claim::Acquired));
    let mut writer = log
        .open(&id, &meta().with_claim(key.clone()))
        .await
        .unwrap();
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    assert!(matches!(
        log.claim(&key, &next).await,
        Ok(Claim::Held { .. })
    ));
    sleep(TTL + Duration::from_secs(1)).await;
    assert_eq!(log.claim(&key, &next).await, Ok(Claim::Acquired));
}
