//! `Window`: the part of a log that was read, but not decoded yet.
//!
//! A [`Journal`](crate::Journal) keeps a stream for readers that arrive later. The handles of one completion have one reader
//! which decodes each record once, so a log that is faster than its reader has to wait.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::AbortHandle,
};

use crate::{
    Batch, LogError, LogStore, Record, StreamEnd, StreamId,
    follower::{FollowerSink, FollowerTask, stopped},
};

/// How many bytes of records wait to be decoded: a few reads, so that decoding and the log overlap.
const WINDOW_BYTES: usize = 256 * 1024;

/// A record, with the room that it takes until it is decoded.
struct Waiting(Record, Option<OwnedSemaphorePermit>);

enum Item {
    Record(Waiting),
    End(Result<StreamEnd, LogError>),
}

/// The end of the task that reads the log.
struct WindowSender {
    room: Arc<Semaphore>,
    /// The room bounds it.
    items: UnboundedSender<Item>,
}

/// The end of the task that decodes. Dropping it ends the other one.
pub(super) struct Window {
    items: UnboundedReceiver<Item>,
    /// The end, if records before it were returned with the last batch.
    end: Option<Result<StreamEnd, LogError>>,
    task: AbortHandle,
}

impl FollowerSink for WindowSender {
    async fn append(&self, record: Record) {
        // A record that is longer waits until it is alone.
        let bytes = record.encoded().len().min(WINDOW_BYTES);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let permit = Arc::clone(&self.room).acquire_many_owned(bytes).await;
        // A reader that is gone ends the task soon.
        let _gone = self.items.send(Item::Record(Waiting(record, permit.ok())));
    }

    fn close(&self, end: Result<StreamEnd, LogError>) {
        let _gone = self.items.send(Item::End(end));
    }
}

impl Window {
    /// Starts to read a stream from its first event, in the runtime of this task.
    pub(super) fn start(log: Arc<dyn LogStore>, id: StreamId, lease: Duration) -> Self {
        let (sender, items) = unbounded_channel();
        let sink = WindowSender {
            room: Arc::new(Semaphore::new(WINDOW_BYTES)),
            items: sender,
        };
        let task = FollowerTask::new(log, id, lease, sink);
        Self {
            items,
            end: None,
            task: tokio::spawn(task.run()).abort_handle(),
        }
    }

    /// The next records, up to about `max` bytes and at least one, or the end.
    pub(super) fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Batch, LogError>> {
        let mut batch = Batch::default();
        let mut bytes = 0;
        while self.end.is_none() && bytes < max {
            match self.items.poll_recv(cx) {
                Poll::Ready(Some(Item::Record(Waiting(record, room)))) => {
                    // The batch is decoded at once.
                    drop(room);
                    bytes += record.encoded().len();
                    batch.records.push(record);
                }
                Poll::Ready(Some(Item::End(end))) => self.end = Some(end),
                Poll::Ready(None) => self.end = Some(Err(stopped())),
                Poll::Pending if batch.records.is_empty() => return Poll::Pending,
                Poll::Pending => return Poll::Ready(Ok(batch)),
            }
        }
        match self.end.take() {
            // After the records before it.
            Some(Err(error)) if !batch.records.is_empty() => self.end = Some(Err(error)),
            Some(Err(error)) => return Poll::Ready(Err(error)),
            Some(Ok(end)) => batch.end = Some(end),
            None => {}
        }
        Poll::Ready(Ok(batch))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
