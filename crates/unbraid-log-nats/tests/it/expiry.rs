//! What is removed, and when.

use std::time::Duration;

use async_nats::jetstream;
use futures::future::join_all;
use tokio::time::{Instant, sleep};
use unbraid_log::{Appended, Claim, ClaimKey, End, LogError, LogStatus, LogStore, StreamEnd};
use unbraid_log_nats::{NatsLog, NatsOptions};
use unbraid_testkit::servers::nats::NatsServer;

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

/// The options of a gateway that sweeps every quarter of its ttl. The pauses of others are longer, by their names.
fn exact(ttl: Duration) -> NatsOptions {
    options().with_ttl(ttl).with_gateway("P0")
}

/// Ends streams that are kept for some time.
async fn end_streams(server: &NatsServer, count: usize, ttl: Duration) {
    let log = NatsLog::connect(&server.url(), options().with_ttl(ttl)).await;
    let log = log.unwrap();
    // At once, so that the first one is still kept when the last one ends.
    let ended = (0..count).map(|_| async {
        let mut writer = log.open(&new_id(), &meta()).await.unwrap();
        assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
        assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    });
    join_all(ended).await;
}

/// Waits until the streams have at most this many messages.
async fn wait_for_messages(server: &NatsServer, most: u64, deadline: Duration) {
    let started = Instant::now();
    while messages(&server.url()).await.0 > most {
        assert!(started.elapsed() < deadline, "they are kept");
        sleep(Duration::from_millis(100)).await;
    }
}

/// A stream that has expired keeps one message, which says so.
#[tokio::test(flavor = "multi_thread")]
async fn many_expired_streams_are_removed_in_one_sweep() {
    const STREAMS: usize = 80;
    /// How many are removed before the sweep yields to other tasks.
    const BATCH: u64 = 64;
    let Some(server) = server().await else {
        return;
    };
    // It sweeps every ten seconds. By the first time, all have expired.
    let pause = Duration::from_secs(10);
    end_streams(&server, STREAMS, pause * 3 / 4).await;
    let all = 2 * STREAMS as u64;
    assert_eq!(messages(&server.url()).await.0, all);
    let log = NatsLog::connect(&server.url(), exact(4 * pause)).await;
    let _log = log.unwrap();
    wait_for_messages(&server, all - BATCH, 4 * pause).await;
    wait_for_messages(&server, all - BATCH - 4, pause * 3 / 4).await;
    wait_for_messages(&server, STREAMS as u64, 2 * pause).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_message_does_not_hold_up_the_removal() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let foreign = ["unbraid.ended.hello", "unbraid.ended.st_hello"];
    for subject in foreign {
        let published = context.publish(subject, "hello".into()).await.unwrap();
        published.await.unwrap();
    }
    let mut writer = log.open(&new_id(), &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    assert_eq!(writer.seal(&StreamEnd::new(End::Finished)).await, Ok(()));
    wait_for_messages(&server, 1, 4 * TTL).await;
    let values = context.get_stream("UNBRAID_KV").await.unwrap();
    for subject in foreign {
        let kept = values.get_last_raw_message_by_subject(subject).await;
        assert_eq!(
            kept.unwrap().payload,
            "hello",
            "what something else has written stays"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_with_a_longer_ttl_do_not_hold_up_others() {
    const LONG: usize = 100;
    const SHORT: usize = 3;
    let Some(server) = server().await else {
        return;
    };
    end_streams(&server, LONG, Duration::from_secs(3600)).await;
    let ttl = Duration::from_secs(4);
    end_streams(&server, SHORT, ttl).await;
    let log = NatsLog::connect(&server.url(), exact(ttl)).await;
    let _log = log.unwrap();
    let all = 2 * (LONG + SHORT) as u64;
    wait_for_messages(&server, all - SHORT as u64, 4 * ttl).await;
    assert_eq!(messages(&server.url()).await.0, all - SHORT as u64);
    // Those that end later are removed, too.
    end_streams(&server, SHORT, ttl).await;
    wait_for_messages(&server, all, 4 * ttl).await;
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
