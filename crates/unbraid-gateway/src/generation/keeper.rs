//! Writes the log of one generation, and seals it whatever happens.

use std::time::Duration;

use tokio::{
    runtime::Handle,
    time::{Instant, sleep, sleep_until},
};
use unbraid_log::{Appended, End, LogError, LogWriter, Record, RecordBuilder, Seq, StreamEnd};

use crate::{
    config::OnLogFailure,
    metrics::{AppendResult, Metrics},
};

/// The pauses between attempts of an append that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Owns the writer of a log. Dropping it seals the log as `producer_lost`, because then its actor was killed or panicked.
pub(super) struct Keeper {
    writer: Option<Box<dyn LogWriter>>,
    /// Events that were not appended yet.
    pub(super) events: RecordBuilder,
    /// A record that the log has not acknowledged. It does not change until then.
    in_flight: Option<Record>,
    /// When it is sent again, and the pause that follows if that fails, too.
    retry_at: Option<Instant>,
    pause: Duration,
    appended_bytes: u64,
    policy: OnLogFailure,
    metrics: Metrics,
    runtime: Handle,
}

impl Keeper {
    pub(super) fn new(writer: Box<dyn LogWriter>, policy: OnLogFailure, metrics: Metrics) -> Self {
        Self {
            writer: Some(writer),
            events: RecordBuilder::new(Seq(1)),
            in_flight: None,
            retry_at: None,
            pause: FIRST_PAUSE,
            appended_bytes: 0,
            policy,
            metrics,
            runtime: Handle::current(),
        }
    }

    /// The bytes of the stream so far.
    pub(super) fn bytes(&self) -> u64 {
        self.appended_bytes + self.events.bytes() as u64
    }

    /// When an append is to be repeated. Until then new events wait.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Whether the log has everything.
    pub(super) fn is_flushed(&self) -> bool {
        self.in_flight.is_none() && self.events.is_empty()
    }

    /// Appends everything, however long the log is not available.
    pub(super) async fn flush_all(&mut self) -> Result<(), LogError> {
        loop {
            self.flush().await?;
            match self.retry_at {
                Some(at) => sleep_until(at).await,
                None => return Ok(()),
            }
        }
    }

    /// Appends what has arrived. An append that fails is repeated later with the same record, so that the generation
    /// handles its commands meanwhile.
    pub(super) async fn flush(&mut self) -> Result<(), LogError> {
        let Some(writer) = &mut self.writer else {
            return Err(LogError::Sealed);
        };
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            return Ok(());
        }
        loop {
            if self.in_flight.is_none() {
                self.in_flight = self.events.take();
                let bytes = self
                    .in_flight
                    .as_ref()
                    .map_or(0, |record| record.encoded().len());
                self.appended_bytes += bytes as u64;
            }
            let Some(record) = &self.in_flight else {
                return Ok(());
            };
            let started = Instant::now();
            let result = writer.append(record).await;
            let kind = match &result {
                Ok(Appended::New) => AppendResult::new,
                Ok(Appended::Duplicate) => AppendResult::duplicate,
                Err(_) => AppendResult::error,
            };
            self.metrics.appended(kind, started.elapsed());
            match result {
                Ok(_) => {
                    self.in_flight = None;
                    self.retry_at = None;
                    self.pause = FIRST_PAUSE;
                }
                Err(error) if error.is_temporary() && self.policy == OnLogFailure::Degrade => {
                    self.retry_at = Some(Instant::now() + self.pause);
                    self.pause = (self.pause * 2).min(MAX_PAUSE);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Extends the lease. A lease that cannot be extended ends at the next append.
    pub(super) async fn renew(&mut self) -> Result<(), LogError> {
        match &mut self.writer {
            Some(writer) => writer.renew().await,
            None => Err(LogError::Sealed),
        }
    }

    /// Seals the log.
    pub(super) async fn seal(&mut self, end: StreamEnd) {
        if let Some(writer) = self.writer.take() {
            seal(writer, end).await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let end = StreamEnd::new(End::ProducerLost);
            // A runtime that shuts down drops the task, and with it every reader.
            self.runtime.spawn(seal(writer, end));
        }
    }
}

async fn seal(mut writer: Box<dyn LogWriter>, end: StreamEnd) {
    let mut pause = FIRST_PAUSE;
    loop {
        match writer.seal(&end).await {
            Err(error) if error.is_temporary() => {
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
            // An erased log has no end, and a sealed one keeps its first.
            Ok(()) | Err(_) => return,
        }
    }
}
