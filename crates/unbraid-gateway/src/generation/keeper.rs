//! Writes the log of one generation, and seals it whatever happens.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, StreamExt};
use tokio::time::Instant;
use unbraid_log::{End, Journal, LogError, LogWriter, Producer, RecordBuilder, Seq, StreamEnd};

use crate::metrics::{AppendResult, Metrics};

/// Where a generation is written.
pub(crate) enum GenerationLog {
    /// The memory of this process. Every append is complete when it returns.
    Memory(Box<dyn LogWriter>),
    /// A log that other processes read: a task of its own writes it.
    Shared(Arc<Producer>),
}

/// Owns the log of a generation. Dropping it seals the log as `producer_lost`, because then its actor was killed or panicked.
pub(super) struct Keeper {
    log: Option<GenerationLog>,
    /// Events that were not appended yet.
    pub(super) events: RecordBuilder,
    appended_bytes: u64,
    metrics: Metrics,
}

impl Keeper {
    pub(super) fn new(log: GenerationLog, metrics: Metrics) -> Self {
        Self {
            log: Some(log),
            events: RecordBuilder::new(Seq(1)),
            appended_bytes: 0,
            metrics,
        }
    }

    /// The bytes of the stream so far.
    pub(super) fn bytes(&self) -> u64 {
        self.appended_bytes + self.events.bytes() as u64
    }

    /// Whether readers in this process have everything: what the log has acknowledged, or more if the log fails.
    pub(super) fn is_flushed(&self) -> bool {
        let is_shared = match &self.log {
            Some(GenerationLog::Shared(producer)) => producer.is_flushed(),
            Some(GenerationLog::Memory(_)) | None => true,
        };
        is_shared && self.events.is_empty()
    }

    /// Whether an append costs enough that events may wait for more: readers of a log in memory, and of a log that fails, get
    /// them at once.
    pub(super) fn may_linger(&self) -> bool {
        match &self.log {
            Some(GenerationLog::Shared(producer)) => !producer.is_degraded(),
            Some(GenerationLog::Memory(_)) | None => false,
        }
    }

    /// Whether a shared log does not accept events for now.
    pub(super) fn log_fails(&self) -> bool {
        matches!(&self.log, Some(GenerationLog::Shared(producer)) if producer.is_degraded())
    }

    /// Ready once the log refuses events or, if that is waited for, readers have everything.
    pub(super) fn poll_log(&self, cx: &mut Context<'_>, waits: bool) -> Poll<()> {
        let Some(GenerationLog::Shared(producer)) = &self.log else {
            return Poll::Pending;
        };
        if producer.poll_failed(cx).is_ready() {
            return Poll::Ready(());
        }
        if waits && self.events.is_empty() {
            return producer.poll_flushed(cx).map(|_result| ());
        }
        Poll::Pending
    }

    /// Appends what has arrived. A shared log gets it in the background.
    pub(super) async fn flush(&mut self) -> Result<(), LogError> {
        let log = self.log.as_mut().ok_or(LogError::Sealed)?;
        if let GenerationLog::Shared(producer) = log
            && let Some(error) = producer.failure()
        {
            return Err(error);
        }
        while let Some(record) = self.events.take() {
            self.appended_bytes += record.encoded().len() as u64;
            match log {
                GenerationLog::Memory(writer) => {
                    let started = Instant::now();
                    let result = writer.append(&record).await;
                    let kind = AppendResult::of(result.as_ref().copied());
                    self.metrics.appended(kind, started.elapsed());
                    result?;
                }
                GenerationLog::Shared(producer) => producer.append(record),
            }
        }
        Ok(())
    }

    /// Extends the lease of a log in memory. The task of a shared log does this itself.
    pub(super) async fn renew(&mut self) -> Result<(), LogError> {
        match &mut self.log {
            Some(GenerationLog::Memory(writer)) => writer.renew().await,
            Some(GenerationLog::Shared(_)) => Ok(()),
            None => Err(LogError::Sealed),
        }
    }

    /// Seals the log, and waits until readers in this process have the end. Returns the end that they have, if it is another
    /// one.
    pub(super) async fn seal(&mut self, end: StreamEnd) -> Option<End> {
        match self.log.take()? {
            GenerationLog::Memory(mut writer) => {
                seal(&mut *writer, &end).await;
                None
            }
            GenerationLog::Shared(producer) => {
                producer.finish(end);
                ended(producer.journal()).await
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let end = StreamEnd::new(End::ProducerLost);
        match self.log.take() {
            Some(GenerationLog::Memory(mut writer)) => {
                // Not in a task, because the runtime may be shutting down while readers in another one wait. A log in memory
                // is ready at once.
                let _sealed = seal(&mut *writer, &end).now_or_never();
            }
            Some(GenerationLog::Shared(producer)) => producer.finish(end),
            None => {}
        }
    }
}

async fn seal(writer: &mut dyn LogWriter, end: &StreamEnd) {
    // An erased log has no end, and a sealed one keeps its first.
    let _sealed_before = writer.seal(end).await;
}

/// Waits for the end of a stream, and returns it.
async fn ended(journal: &Journal) -> Option<End> {
    // No number is greater, so the reader gets nothing but the end.
    let mut records = journal.reader(Seq::MAX);
    while let Some(Ok(_)) = records.next().await {}
    journal.end()?.ok().map(|end| end.end)
}
