//! What is known about the requests and the writes of a connection.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Waker,
    time::Duration,
};

use futures::task::AtomicWaker;
use hyper::Version;
use tokio::time::Instant;

/// The requests of a connection, and what its socket accepts.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests whose responses have not ended.
    active: AtomicUsize,
    /// Those of them that were begun before the drain.
    early: AtomicUsize,
    is_draining: AtomicBool,
    /// Requests so far.
    started: AtomicU64,
    /// Bodies of requests whose ends were not read.
    unread: AtomicUsize,
    is_http2: AtomicBool,
    /// Woken when no request is active any more, or none of before the drain.
    idle: AtomicWaker,
    /// When a request has last ended.
    ended: Mutex<Option<Instant>>,
    /// Writes that the socket has accepted.
    writes: AtomicU64,
    /// Whether the socket accepts nothing at the moment.
    is_blocked: AtomicBool,
}

impl Activity {
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }

    /// Whether a request is active that was begun before the drain.
    pub(super) fn has_early(&self) -> bool {
        self.early.load(Ordering::Acquire) > 0
    }

    /// The requests that follow are begun during the drain. To be called by the task that begins them.
    pub(super) fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Acquire)
    }

    /// Whether what arrives may be the body of a request, and not the head of the next one.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.load(Ordering::Acquire) > 0
    }

    /// For how long no request has been active, if none is; `None` if there was none.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        let ended = self.ended.lock();
        ended
            .unwrap_or_else(PoisonError::into_inner)
            .map(|ended| ended.elapsed())
    }

    /// Wakes a task when the requests have ended.
    pub(super) fn register(&self, waker: &Waker) {
        self.idle.register(waker);
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Acquire)
    }

    /// The socket has accepted a write.
    pub(super) fn has_written(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }
}

/// A request that is being answered, or whose body is being read.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    activity: Arc<Activity>,
    is_early: bool,
}

impl ActiveRequest {
    pub(super) fn new(activity: &Arc<Activity>, version: Version) -> Self {
        if version == Version::HTTP_2 {
            activity.is_http2.store(true, Ordering::Release);
        }
        activity.started.fetch_add(1, Ordering::AcqRel);
        let is_early = !activity.is_draining.load(Ordering::Acquire);
        Self::counted(activity, is_early)
    }

    fn counted(activity: &Arc<Activity>, is_early: bool) -> Self {
        activity.active.fetch_add(1, Ordering::AcqRel);
        if is_early {
            activity.early.fetch_add(1, Ordering::AcqRel);
        }
        Self {
            activity: Arc::clone(activity),
            is_early,
        }
    }
}

/// The body of a request whose end was not read.
#[derive(Debug)]
pub(super) struct UnreadBody(Arc<Activity>);

impl UnreadBody {
    pub(super) fn new(request: &ActiveRequest) -> Self {
        request.activity.unread.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(&request.activity))
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        self.0.unread.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Clone for ActiveRequest {
    fn clone(&self) -> Self {
        Self::counted(&self.activity, self.is_early)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let activity = &*self.activity;
        // Before the counts: another thread that sees that none is active reads the time next.
        let mut ended = activity
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *ended = Some(Instant::now());
        drop(ended);
        let is_last_early = self.is_early && activity.early.fetch_sub(1, Ordering::AcqRel) == 1;
        if activity.active.fetch_sub(1, Ordering::AcqRel) == 1 || is_last_early {
            activity.idle.wake();
        }
    }
}
