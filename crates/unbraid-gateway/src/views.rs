//! Finds the view of a stream, of which there is one at a time in this gateway, whatever log keeps it.

mod reports;
mod write_check;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use futures::StreamExt;
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{
    Follower, Journal, LogError, LogStatus, LogStore, MemoryLog, Meta, Seq, StreamId,
};

use self::reports::LogReports;
#[cfg(test)]
pub(crate) use self::reports::tests::Lines;
pub(crate) use self::{reports::WriteReports, write_check::WriteCheck};
use crate::{
    api_error::ApiError,
    decoding::Decoding,
    limits::{CHECK_TIMEOUT, LACK_TIMEOUT, LOG_TIMEOUT},
    streams::Streams,
    view::StreamView,
};

/// How often a stream is looked up again that a log which was away may not have yet.
const LOOKUP_PAUSE: Duration = Duration::from_millis(250);

/// How old a gateway is when a log that was started a moment ago was started again. Before that, both are probably new, and
/// nobody holds a claim.
const NEW_GATEWAY: Duration = Duration::from_secs(5);

/// How long a key is not claimed after an outage of the log. Holders of claims repeat them every second.
const CLAIMS_BACK: Duration = Duration::from_secs(4);

/// The views that have readers, and the log behind them.
#[derive(Clone)]
pub(crate) struct Views {
    store: Arc<dyn LogStore>,
    /// The same log, if it is in this process: its journals are read directly.
    memory: Option<MemoryLog>,
    /// The streams that this gateway produces.
    streams: Streams,
    lease: Duration,
    decoding: Decoding,
    open: Arc<Mutex<HashMap<StreamId, Weak<StreamView>>>>,
    reports: Arc<LogReports>,
    started: Instant,
}

/// A stream that is kept.
pub(crate) struct Found {
    pub(crate) view: Arc<StreamView>,
    /// When it expires, once it has ended.
    pub(crate) expires: Option<SystemTime>,
}

impl Views {
    pub(crate) fn new(
        store: Arc<dyn LogStore>,
        memory: Option<MemoryLog>,
        streams: Streams,
        lease: Duration,
        decoding: Decoding,
    ) -> Self {
        Self {
            store,
            memory,
            streams,
            lease,
            decoding,
            open: Arc::default(),
            reports: Arc::default(),
            started: Instant::now(),
        }
    }

    /// Finds a stream that `may_read` accepts. One that it refuses is answered like one that does not exist.
    pub(crate) async fn find(
        &self,
        id: &StreamId,
        may_read: impl Fn(&Meta) -> bool,
    ) -> Result<Found, ApiError> {
        // A stream that this gateway produces is read although its log fails.
        if let Some(local) = self.streams.local(id) {
            if !may_read(&local.meta) {
                return Err(ApiError::STREAM_NOT_FOUND);
            }
            let journal = local.producer.journal().clone();
            let decoding = self.decoding.clone();
            let view = self.entered(id, || Ok(StreamView::new(journal, local.meta, decoding)))?;
            let expires = None;
            return Ok(Found { view, expires });
        }
        let status = self.status(id).await?;
        if status == LogStatus::Unknown
            && self
                .streams
                .given_up(id)
                .is_some_and(|meta| may_read(&meta))
        {
            return Err(ApiError::STREAM_EXPIRED);
        }
        if !status.meta().is_some_and(may_read) {
            return Err(ApiError::STREAM_NOT_FOUND);
        }
        let status = self.seal_if_lost(id, status).await;
        let (meta, tail, expires) = match status {
            LogStatus::Running { meta, tail, .. } => (meta, tail, None),
            LogStatus::Ended {
                meta,
                tail,
                expires,
                ..
            } => (meta, tail, Some(expires)),
            LogStatus::Expired { .. } => return Err(ApiError::STREAM_EXPIRED),
            _ => return Err(ApiError::STREAM_NOT_FOUND),
        };
        let view = self.view(id, meta)?;
        if self.memory.is_none() {
            let caught_up = catch_up(view.journal(), tail, expires.is_some());
            caught_up.await.map_err(|error| self.failed(error))?;
        }
        Ok(Found { view, expires })
    }

    /// Seals a stream whose producer is lost, and returns its status. The copy that readers share does the same, but a client
    /// that only polls has none that lasts for as long as a lease.
    async fn seal_if_lost(&self, id: &StreamId, status: LogStatus) -> LogStatus {
        let is_running = matches!(status, LogStatus::Running { .. });
        if !is_running || self.memory.is_some() || self.is_read(id) {
            return status;
        }
        match timeout(LOG_TIMEOUT, self.store.seal_lost(id)).await {
            Ok(Ok(sealed)) if sealed != LogStatus::Unknown => sealed,
            // It is running as far as is known, and the next request asks again.
            Ok(Ok(_) | Err(_)) | Err(_) => status,
        }
    }

    /// Whether a stream has a view, which follows its log.
    fn is_read(&self, id: &StreamId) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(id).is_some_and(|view| view.strong_count() > 0)
    }

    /// The status of a stream. One that the log does not know is looked up again while the log may lack streams, because a
    /// producer, which is another gateway, may be about to write it.
    async fn status(&self, id: &StreamId) -> Result<LogStatus, ApiError> {
        let deadline = Instant::now() + LACK_TIMEOUT;
        loop {
            let status = timeout(LOG_TIMEOUT, self.store.status(id)).await;
            let status = status.unwrap_or_else(|_elapsed| Err(slow()));
            let status = status.map_err(|error| self.failed(error))?;
            self.reports.answered();
            if status != LogStatus::Unknown || !self.store.may_lack_streams().await {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(ApiError::LOG_RECOVERING);
            }
            sleep(LOOKUP_PAUSE).await;
        }
    }

    /// Waits, before a key is claimed, until the log has the claims again that it may have lost: their holders repeat them once it
    /// is back, and would find that another gateway has asked the provider, too. They need a few seconds, so this does not wait
    /// for longer: a log that is slow again and again has lost nothing. One that does not answer is not waited for: a claim would
    /// fail as well, and a client that repeats its request loses nothing.
    pub(crate) async fn wait_for_claims(&self) -> Result<(), ApiError> {
        let deadline = Instant::now() + CLAIMS_BACK;
        while self.started.elapsed() >= NEW_GATEWAY
            && Instant::now() < deadline
            && self.store.may_lack_streams().await
        {
            self.check_log().await?;
            sleep(LOOKUP_PAUSE).await;
        }
        Ok(())
    }

    /// Whether the log answers: any id shows it.
    pub(crate) async fn check_log(&self) -> Result<(), ApiError> {
        let id = StreamId::random().map_err(|_| ApiError::INTERNAL)?;
        let status = timeout(CHECK_TIMEOUT, self.store.status(&id)).await;
        let status = status.unwrap_or_else(|_elapsed| Err(slow()));
        status.map_err(|error| self.failed(error))?;
        self.answered();
        Ok(())
    }

    /// The answer if the log refuses, or cannot be reached.
    pub(crate) fn failed(&self, error: LogError) -> ApiError {
        match error {
            // That of another process is the operator's, and not a limit of this gateway.
            LogError::Full if self.memory.is_some() => ApiError::OUT_OF_MEMORY,
            LogError::Expired => ApiError::STREAM_EXPIRED,
            LogError::Unknown => ApiError::STREAM_NOT_FOUND,
            LogError::Gap { .. } => ApiError::LOG_GAP,
            error => {
                self.reports.failed(&error);
                ApiError::LOG_UNAVAILABLE
            }
        }
    }

    /// The answer if the log does not take events.
    pub(crate) fn refused(&self, error: LogError) -> ApiError {
        match error {
            LogError::Full | LogError::Unavailable { .. } if self.memory.is_none() => {
                self.reports.refused(&error);
                ApiError::LOG_UNAVAILABLE
            }
            error => self.failed(error),
        }
    }

    /// Notes that the log takes events.
    pub(crate) fn took_event(&self) {
        self.reports.took_event();
    }

    /// Notes that the log has answered.
    pub(crate) fn answered(&self) {
        self.reports.answered();
    }

    fn view(&self, id: &StreamId, meta: Arc<Meta>) -> Result<Arc<StreamView>, ApiError> {
        let decoding = self.decoding.clone();
        self.entered(id, || match &self.memory {
            Some(memory) => {
                // It may have been evicted since its status was read.
                let journal = memory.journal(id).ok_or(ApiError::STREAM_EXPIRED)?;
                Ok(StreamView::new(journal, meta, decoding))
            }
            None => {
                let follower = Follower::start(Arc::clone(&self.store), id.clone(), self.lease);
                Ok(StreamView::with_follower(follower, meta, decoding))
            }
        })
    }

    /// The view of a stream: the one that has readers, or a new one.
    fn entered(
        &self,
        id: &StreamId,
        create: impl FnOnce() -> Result<Arc<StreamView>, ApiError>,
    ) -> Result<Arc<StreamView>, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = open.get(id).and_then(Weak::upgrade)
            // A copy that has failed stays as it is, although the log may be available again.
            && !matches!(view.journal().end(), Some(Err(_)))
        {
            return Ok(view);
        }
        let view = create()?;
        // The table holds what is read now; what was read before is removed as it grows.
        if open.len() == open.capacity() {
            open.retain(|_, view| view.strong_count() > 0);
        }
        open.insert(id.clone(), Arc::downgrade(&view));
        Ok(view)
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// The memory of the streams of other gateways that are read here, in bytes.
    pub(crate) fn followed_bytes(&self) -> usize {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let views = open.values().filter_map(Weak::upgrade);
        let followed = views.filter(|view| view.is_followed());
        followed.map(|view| view.journal().bytes()).sum()
    }
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views").finish_non_exhaustive()
    }
}

fn slow() -> LogError {
    LogError::unavailable("the log did not answer in time")
}

/// Waits until a copy has what the log had when its status was read. A long stream may take long, as long as it grows.
async fn catch_up(journal: &Journal, tail: Seq, has_ended: bool) -> Result<(), LogError> {
    let mut records = journal.reader(journal.tail());
    loop {
        match journal.end() {
            Some(Err(error)) => return Err(error),
            Some(Ok(_)) => return Ok(()),
            None if journal.tail() >= tail && !has_ended => return Ok(()),
            None => {}
        }
        let next = timeout(LOG_TIMEOUT, records.next()).await;
        if let Some(Err(error)) = next.map_err(|_elapsed| slow())? {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests;
