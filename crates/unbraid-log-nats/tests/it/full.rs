//! A server without room.

use unbraid_log::{LogError, LogStatus, LogStore, LogWriter, Seq};
use unbraid_testkit::servers::nats::{NatsConfig, NatsServer};

use crate::support::{connect, meta, new_id, record};

const EVENTS_OF_A_RECORD: u64 = 100;

/// Appends until the server refuses. Returns the number of the last event.
async fn fill(writer: &mut dyn LogWriter) -> (u64, LogError) {
    let mut tail = 0;
    loop {
        let last = tail + EVENTS_OF_A_RECORD;
        match writer.append(&record(tail + 1, last)).await {
            Ok(_) => tail = last,
            Err(error) => return (tail, error),
        }
        assert!(tail < 100_000, "the server is never full");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_has_stored_nothing_of_what_it_refuses() {
    let config = NatsConfig {
        max_stored: Some(1 << 20),
        ..NatsConfig::default()
    };
    let Some(server) = NatsServer::start(config).await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let (tail, refused) = fill(&mut *writer).await;
    assert_eq!(refused, LogError::Full);
    let status = log.status(&id).await.unwrap();
    assert!(
        matches!(status, LogStatus::Running { tail: kept, .. } if kept == Seq(tail)),
        "{status:?}, {tail}"
    );
    let opened = log.open(&new_id(), &meta()).await.map(drop);
    assert_eq!(opened, Err(LogError::Full));
}
