//! A server on which one stream of the log cannot be used, or cannot be written to. A cluster is like that while its servers
//! elect a leader for one stream, or lack a majority.

use std::time::Duration;

use async_nats::jetstream::{self, stream::Config};
use tokio::time::{Instant, sleep};
use unbraid_log::{Appended, LogStatus, LogStore};
use unbraid_testkit::servers::nats::NatsServer;

use crate::support::{LEASE, connect, meta, new_id, record, server};

/// Lets the server store nothing more in a stream, and changes it. Returns its configuration before.
async fn close(server: &NatsServer, stream: &str, change: impl FnOnce(&mut Config)) -> Config {
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let stream = context.get_stream(stream).await.unwrap();
    let before = stream.cached_info().config.clone();
    let mut config = before.clone();
    config.max_message_size = 1;
    change(&mut config);
    context.update_stream(config).await.unwrap();
    before
}

async fn restore(server: &NatsServer, before: Config) {
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    context.update_stream(before).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_although_the_records_cannot_be_reached() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let mut writer = log.open(&new_id(), &meta()).await.unwrap();
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
    let before = close(&server, "UNBRAID", |config| config.allow_direct = false).await;
    assert!(writer.append(&record(2, 2)).await.is_err());
    // The writer does not know where its log ends, and cannot ask.
    for _ in 0..3 {
        assert_eq!(writer.renew().await, Ok(()));
    }
    restore(&server, before).await;
    assert_eq!(writer.append(&record(2, 2)).await, Ok(Appended::New));
}

/// All values can be read meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_does_not_age_while_no_value_is_stored() {
    let Some(server) = server().await else {
        return;
    };
    let (log, other) = (connect(&server).await, connect(&server).await);
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let before = close(&server, "UNBRAID_KV", |_| ()).await;
    let start = Instant::now();
    while start.elapsed() < LEASE * 3 / 2 {
        assert!(writer.renew().await.is_err());
        let status = other.status(&id).await;
        assert!(matches!(status, Ok(LogStatus::Running { .. })));
        // The lease cannot be revoked either.
        let _refused = other.seal_lost(&id).await;
        sleep(Duration::from_millis(50)).await;
    }
    restore(&server, before).await;
    let restored = Instant::now();
    while restored.elapsed() < LEASE * 3 / 4 {
        let status = other.seal_lost(&id).await;
        assert!(
            matches!(status, Ok(LogStatus::Running { .. })),
            "{status:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(writer.renew().await, Ok(()));
    assert_eq!(writer.append(&record(1, 1)).await, Ok(Appended::New));
}
