//! Reads many messages of a log at once.

use std::time::Duration;

use async_nats::jetstream::{
    Message,
    consumer::{AckPolicy, DeliverPolicy, PullConsumer, ReplayPolicy, pull},
};
use futures::StreamExt;
use tokio::time::timeout;
use unbraid_log::{LogError, StreamId};

use crate::{
    api::{ANSWER, Failure, Store},
    entry::Entry,
    inner::Inner,
};

/// How many messages are read at once, and about how many bytes: what a slow reader keeps in memory.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// The server removes a consumer that was not used for this time, if this process could not.
const UNUSED: Duration = Duration::from_secs(5);

impl Inner {
    /// Reads messages after a number through a consumer that exists for this call only. They may be fewer than there are;
    /// none says nothing.
    pub(crate) async fn fetch(&self, id: &StreamId, after: u64) -> Result<Vec<Entry>, LogError> {
        let failed = |error: &dyn std::fmt::Display| Failure::Unavailable(error.to_string());
        let stream = self.api.stream(Store::Log).await?;
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: after + 1,
            },
            ack_policy: AckPolicy::None,
            replay_policy: ReplayPolicy::Instant,
            filter_subject: self.names.records(id),
            inactive_threshold: UNUSED,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let created = stream.create_consumer(config).await;
        let consumer: PullConsumer = created.map_err(|error| failed(&error))?;
        let entries = read_batch(&consumer).await;
        let name = consumer.cached_info().name.clone();
        // If this fails, the server removes it a little later.
        let _removed = stream.delete_consumer(&name).await;
        entries
    }
}

async fn read_batch(consumer: &PullConsumer) -> Result<Vec<Entry>, LogError> {
    let failed = |error: &dyn std::fmt::Display| LogError::unavailable(error.to_string());
    let batch = consumer.fetch().max_messages(BATCH).max_bytes(BATCH_BYTES);
    let mut messages = batch.messages().await.map_err(|error| failed(&error))?;
    let mut entries = Vec::new();
    loop {
        match timeout(ANSWER, messages.next()).await {
            // What has arrived before a hole or a foreign message is complete, and the caller reads on after it.
            Ok(Some(Ok(message))) => match decode(message, entries.len()) {
                Some(entry) => entries.push(entry),
                None => return Ok(entries),
            },
            Ok(Some(Err(_)) | None) | Err(_) => return Ok(entries),
        }
    }
}

/// `None` unless it is the message that follows those which were read, and can be read.
fn decode(message: Message, read: usize) -> Option<Entry> {
    let info = message.info().ok()?;
    let sequence = info.stream_sequence;
    if info.consumer_sequence != read as u64 + 1 {
        return None;
    }
    let headers = message.message.headers.unwrap_or_default();
    Entry::from_parts(sequence, &headers, message.message.payload).ok()
}
