//! `Follower`: copies a stream of another producer into a journal.

use std::{fmt, sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use crate::{
    Journal, LogError, LogStatus, LogStore, Record, Seq, StreamEnd, StreamId,
    protocol::{FAR, ReaderAction, ReaderMachine, ReaderRules, Span, Take},
};

/// The longest silence after which a lease is checked. An engine may have to see a lease twice to know that it is not
/// renewed, and readers end within two seconds after the lease of a lost producer.
const MAX_CHECK: Duration = Duration::from_millis(750);

/// How long a log may be unavailable at least, before the readers of a stream are cut off. A failover takes less.
const MIN_PATIENCE: Duration = Duration::from_secs(30);

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A stream of another producer, in memory: one task reads it for all readers in this process.
///
/// The journal contains the log's events in order, without a gap and without repetition. It ends with the log: the task
/// checks a silent producer's lease, and seals the stream as lost once that has expired. If the log is not available for
/// two leases (and at least 30 seconds), has forgotten the stream for a lease, or has a gap, the journal fails with the
/// log's error, so that no reader waits forever.
///
/// Dropping it ends the task. A journal that has no end by then fails, and so it does if the task ends with its runtime, or
/// because the log panics.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use unbraid_log::{End, Event, Follower, LogStore, MemoryLog, MemoryOptions, Meta, RecordBuilder, Seq, StreamEnd, StreamId};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
/// let id = StreamId::random()?;
/// let mut writer = log.open(&id, &Meta::new("/v1/completions", 1)).await?;
/// let follower = Follower::start(Arc::clone(&log), id, Duration::from_secs(15));
///
/// let mut builder = RecordBuilder::new(Seq(1));
/// builder.push(&Event::chunk(&[0.into()], b"{}"));
/// writer.append(&builder.take().unwrap()).await?;
/// writer.seal(&StreamEnd::new(End::Finished)).await?;
///
/// let batch = follower.journal().reader(Seq::START).next_batch(1000).await?;
/// assert_eq!(batch.records[0].last(), Seq(1));
/// # Ok::<(), unbraid_log::LogError>(())
/// # }).unwrap();
/// ```
pub struct Follower {
    journal: Journal,
    task: AbortHandle,
}

impl Follower {
    /// Starts to copy a stream, from its first event, in the runtime of this task. The lease is that of the log.
    #[must_use]
    pub fn start(log: Arc<dyn LogStore>, id: StreamId, lease: Duration) -> Self {
        let journal = Journal::new();
        let task = FollowerTask::new(log, id, lease, journal.clone());
        let task = tokio::spawn(task.run()).abort_handle();
        Self { journal, task }
    }

    /// What has been read.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

/// Where a follower puts what it reads.
pub(crate) trait FollowerSink: Send + 'static {
    /// Takes the next record, as soon as there is room for it.
    fn append(&self, record: Record) -> impl Future<Output = ()> + Send;

    /// Takes the end, after the last record.
    fn close(&self, end: Result<StreamEnd, LogError>);
}

/// A journal keeps everything, for readers that arrive later.
impl FollowerSink for Journal {
    async fn append(&self, record: Record) {
        // It follows the journal's tail, so it is not refused.
        let _appended = Self::append(self, &record);
    }

    fn close(&self, end: Result<StreamEnd, LogError>) {
        match end {
            Ok(end) => self.seal(end),
            Err(error) => self.fail(error),
        };
    }
}

pub(crate) struct FollowerTask<S: FollowerSink> {
    log: Arc<dyn LogStore>,
    id: StreamId,
    sink: S,
    machine: ReaderMachine,
    started: Instant,
    records: Option<BoxStream<'static, Result<Record, LogError>>>,
    /// Whether the sink has its end.
    is_closed: bool,
}

impl<S: FollowerSink> FollowerTask<S> {
    pub(crate) fn new(log: Arc<dyn LogStore>, id: StreamId, lease: Duration, sink: S) -> Self {
        let lease = lease.min(FAR);
        let rules = ReaderRules {
            check_every: (lease / 3).min(MAX_CHECK).max(Duration::from_millis(1)),
            patience: lease.saturating_mul(2).max(MIN_PATIENCE),
            unknown_patience: lease,
        };
        Self {
            log,
            id,
            sink,
            machine: ReaderMachine::new(rules, Seq::START, Duration::ZERO),
            started: Instant::now(),
            records: None,
            is_closed: false,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            match self.machine.poll(self.now()) {
                ReaderAction::Read { after } => {
                    self.records = Some(self.log.read(&self.id, after));
                }
                ReaderAction::Next(until) => self.next(until).await,
                ReaderAction::Check => {
                    let status = timeout(CALL_TIMEOUT, self.log.seal_lost(&self.id)).await;
                    self.checked(status.unwrap_or_else(|_| Err(slow())));
                }
                ReaderAction::Status => {
                    let status = timeout(CALL_TIMEOUT, self.log.status(&self.id)).await;
                    self.checked(status.unwrap_or_else(|_| Err(slow())));
                }
                ReaderAction::Wait(until) => sleep_until(self.started + until).await,
                ReaderAction::Done(end) => {
                    self.is_closed = true;
                    return self.sink.close(end);
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn checked(&mut self, status: Result<LogStatus, LogError>) {
        let now = self.now();
        self.machine.checked(status, now);
    }

    async fn next(&mut self, until: Duration) {
        let Some(records) = &mut self.records else {
            let now = self.now();
            return self.machine.ended(Some(slow()), now);
        };
        let next = timeout_at(self.started + until, records.next()).await;
        let now = self.now();
        match next {
            Ok(Some(Ok(record))) => self.take(&record, now).await,
            Ok(Some(Err(error))) => self.machine.ended(Some(error), now),
            Ok(None) => self.machine.ended(None, now),
            // The machine checks the lease.
            Err(_elapsed) => {}
        }
    }

    async fn take(&mut self, record: &Record, now: Duration) {
        let span = Span {
            first: record.first(),
            last: record.last(),
        };
        if let Take::After(after) = self.machine.record(span, now)
            && let Some(record) = record.after(after)
        {
            self.sink.append(record).await;
        }
    }
}

impl<S: FollowerSink> Drop for FollowerTask<S> {
    fn drop(&mut self) {
        // Its runtime has ended, the log has panicked, or nobody follows any more.
        if !self.is_closed {
            self.sink.close(Err(stopped()));
        }
    }
}

fn slow() -> LogError {
    LogError::unavailable("the log did not answer in time")
}

/// The error of a stream whose follower has ended before it.
pub(crate) fn stopped() -> LogError {
    LogError::unavailable("the log is not read any more")
}
