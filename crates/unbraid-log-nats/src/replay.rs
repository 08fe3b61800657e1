//! Reads many messages of a log at once.

use std::time::Duration;

use async_nats::jetstream::{
    Message,
    consumer::{AckPolicy, DeliverPolicy, PullConsumer, ReplayPolicy, pull},
    stream::Stream,
};
use futures::StreamExt;
use tokio::{runtime::Handle, time::timeout};
use unbraid_log::{LogError, StreamId};

use crate::{
    api::{ANSWER, Failure, Store},
    connection::SUBSCRIPTION_CAPACITY,
    entry::Entry,
    inner::Inner,
};

/// How many messages are read at once, which a subscription has to hold, and about how many bytes: what a slow reader keeps
/// in memory.
const BATCH: usize = SUBSCRIPTION_CAPACITY - 16;
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// The server removes a consumer that was not used for this time, if this process could not.
const UNUSED: Duration = Duration::from_secs(5);

/// A consumer on the server that exists while a reader is behind. Dropping it removes it from the server.
pub(crate) struct Replay {
    stream: Stream<()>,
    consumer: PullConsumer,
    /// How many messages it has delivered.
    delivered: u64,
}

impl Replay {
    /// Begins after the message with this number.
    pub(crate) async fn new(inner: &Inner, id: &StreamId, after: u64) -> Result<Self, LogError> {
        let stream = inner.api.stream(Store::Log).await?;
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: after + 1,
            },
            ack_policy: AckPolicy::None,
            replay_policy: ReplayPolicy::Instant,
            filter_subject: inner.names.records(id),
            inactive_threshold: UNUSED,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let created = stream.create_consumer(config).await;
        let consumer = created.map_err(|error| Failure::Unavailable(error.to_string()))?;
        Ok(Self {
            stream,
            consumer,
            delivered: 0,
        })
    }

    /// Reads the next messages. They may be fewer than there are; none says nothing.
    pub(crate) async fn next_batch(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let batch = self.consumer.fetch().max_messages(BATCH);
        let Ok(mut messages) = batch.max_bytes(BATCH_BYTES).messages().await else {
            return entries;
        };
        // What has arrived before a failure, a hole or a foreign message is complete, and the caller reads on after it.
        while let Ok(Some(Ok(message))) = timeout(ANSWER, messages.next()).await {
            let Some(entry) = self.decode(message) else {
                break;
            };
            self.delivered += 1;
            entries.push(entry);
        }
        entries
    }

    /// `None` unless it is the message that follows those which were read, and can be read.
    fn decode(&self, message: Message) -> Option<Entry> {
        let info = message.info().ok()?;
        let sequence = info.stream_sequence;
        if info.consumer_sequence != self.delivered + 1 {
            return None;
        }
        let headers = message.message.headers.unwrap_or_default();
        Entry::from_parts(sequence, &headers, message.message.payload).ok()
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let (stream, name) = (
            self.stream.clone(),
            self.consumer.cached_info().name.clone(),
        );
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // If this fails, the server removes it a little later.
                let _removed = stream.delete_consumer(&name).await;
            });
        }
    }
}
