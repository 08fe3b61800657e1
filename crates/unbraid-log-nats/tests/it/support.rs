//! What the tests share.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use unbraid_log::{Event, LogStore, Meta, Record, RecordBuilder, Seq, StreamId, contract::Engine};
use unbraid_log_nats::{NatsLog, NatsOptions};
use unbraid_testkit::servers::nats::{NatsConfig, NatsServer};

pub(crate) const TTL: Duration = Duration::from_secs(6);
pub(crate) const LEASE: Duration = Duration::from_secs(2);

pub(crate) fn options() -> NatsOptions {
    NatsOptions::default().with_ttl(TTL).with_lease(LEASE)
}

pub(crate) async fn server() -> Option<NatsServer> {
    NatsServer::start(NatsConfig::default()).await
}

pub(crate) async fn connect(server: &NatsServer) -> NatsLog {
    NatsLog::connect(&server.url(), options()).await.unwrap()
}

pub(crate) fn meta() -> Meta {
    Meta::new("/v1/chat/completions", 1_790_000_000)
}

pub(crate) fn new_id() -> StreamId {
    StreamId::random().unwrap()
}

/// A record of events with these numbers.
pub(crate) fn record(first: u64, last: u64) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for seq in first..=last {
        builder.push(&Event::chunk(
            &[0.into()],
            format!("{{\"seq\":{seq}}}").as_bytes(),
        ));
    }
    builder.take().unwrap()
}

/// A server as the contract suite needs it.
pub(crate) struct Nats(pub(crate) NatsServer);

impl Engine for Nats {
    fn gateway(&self) -> BoxFuture<'_, Arc<dyn LogStore>> {
        async {
            let log: Arc<dyn LogStore> = Arc::new(connect(&self.0).await);
            log
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async { self.0.kill() }.boxed()
    }

    fn start(&self) -> BoxFuture<'_, ()> {
        self.0.restart().boxed()
    }

    fn empty(&self) -> BoxFuture<'_, ()> {
        self.0.empty().boxed()
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    fn lease(&self) -> Duration {
        LEASE
    }
}
