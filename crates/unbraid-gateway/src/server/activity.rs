//! What is known about the requests of a connection.

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

/// What the socket knows about the requests of its connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests whose responses have not ended.
    active: AtomicUsize,
    /// Requests so far.
    started: AtomicU64,
    is_http2: AtomicBool,
    /// Woken when no request is active any more.
    idle: AtomicWaker,
    /// When a request has last ended.
    ended: Mutex<Option<Instant>>,
}

impl Activity {
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }

    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Acquire)
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
}

/// A request that is being answered, or whose body is being read.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Activity>);

impl ActiveRequest {
    pub(super) fn new(activity: &Arc<Activity>, version: Version) -> Self {
        if version == Version::HTTP_2 {
            activity.is_http2.store(true, Ordering::Release);
        }
        activity.active.fetch_add(1, Ordering::AcqRel);
        activity.started.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(activity))
    }
}

impl Clone for ActiveRequest {
    fn clone(&self) -> Self {
        self.0.active.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        // Before the count: another thread that sees that none is active reads the time next.
        let mut ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended = Some(Instant::now());
        drop(ended);
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.wake();
        }
    }
}
