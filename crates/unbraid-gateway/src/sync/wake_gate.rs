//! `WakeGate`: waits for what is rarely ready without polling it each time that its task runs.
//!
//! A gateway has thousands of tasks, and the memory of one has left the caches when its next delta arrives. What such a task
//! examines for each delta costs more than what it computes.

use std::{
    sync::PoisonError,
    task::{Context, Poll, Wake, Waker},
};

use super::primitives::{Arc, AtomicBool, Mutex, Ordering};

/// Polls something only after it has woken this task.
pub(crate) struct WakeGate {
    flag: Arc<Flag>,
    /// Sets the flag.
    waker: Waker,
    /// The task that was registered last.
    task: Option<Waker>,
}

struct Flag {
    is_woken: AtomicBool,
    /// It stays here when it is woken. If a wake-up took it, one that comes late, after the poll that it is for, would leave
    /// nothing for the next one.
    task: Mutex<Option<Waker>>,
}

impl Flag {
    fn set_task(&self, task: &Waker) {
        let mut kept = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let former = kept.replace(task.clone());
        // Its drop may run foreign code.
        drop(kept);
        drop(former);
    }

    fn wake_task(&self) {
        let kept = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let task = kept.clone();
        drop(kept);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.wake_task();
    }
}

impl Default for WakeGate {
    fn default() -> Self {
        let flag = Arc::new(Flag {
            is_woken: AtomicBool::new(true),
            task: Mutex::default(),
        });
        Self {
            waker: Waker::from(Arc::clone(&flag)),
            flag,
            task: None,
        }
    }
}

impl WakeGate {
    /// Calls `poll` if it has not been called yet, was ready, or has woken the task since it was pending.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let is_registered = |task: &Waker| task.will_wake(cx.waker());
        if !self.task.as_ref().is_some_and(is_registered) {
            // Before the flag is read: what sets it later wakes this task.
            self.flag.set_task(cx.waker());
            self.task = Some(cx.waker().clone());
        }
        // Most calls end here, without a write.
        if !self.flag.is_woken.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // What wakes before this line is seen by the poll that follows.
        self.flag.is_woken.swap(false, Ordering::AcqRel);
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.flag.is_woken.store(true, Ordering::Release);
        }
        polled
    }
}
