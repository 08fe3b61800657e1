//! What a producer and its task share.

use std::{
    any::Any,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::task::AtomicWaker;
use tokio::sync::{Notify, watch};

use crate::{Journal, LogError, Record, Seq, StreamEnd};

pub(super) struct Shared {
    pub(super) journal: Journal,
    input: Mutex<Input>,
    /// Wakes the task.
    pub(super) wake: Notify,
    progress: watch::Sender<Progress>,
    /// Wakes the owner of the producer.
    pub(super) flush_waker: AtomicWaker,
    pub(super) failure_waker: AtomicWaker,
}

/// What was given to the producer, and not taken by its task.
#[derive(Default)]
struct Input {
    queue: Vec<Record>,
    pushed: Seq,
    end: Option<StreamEnd>,
    held: Vec<Box<dyn Any + Send>>,
    is_closed: bool,
}

/// How far the task is.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) released: Seq,
    pub(super) is_degraded: bool,
    pub(super) failure: Option<LogError>,
    pub(super) is_done: bool,
    pub(super) has_given_up: bool,
}

impl Shared {
    pub(super) fn new(is_degraded: bool) -> Self {
        Self {
            journal: Journal::new(),
            input: Mutex::default(),
            wake: Notify::new(),
            progress: watch::Sender::new(Progress {
                is_degraded,
                ..Progress::default()
            }),
            flush_waker: AtomicWaker::new(),
            failure_waker: AtomicWaker::new(),
        }
    }

    fn input(&self) -> MutexGuard<'_, Input> {
        // Every change is complete before anything that could panic.
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, record: Record) {
        let mut input = self.input();
        if input.end.is_some() || input.is_closed || record.first() != input.pushed.next() {
            return;
        }
        input.pushed = record.last();
        input.queue.push(record);
        drop(input);
        self.wake.notify_one();
    }

    pub(super) fn finish(&self, end: StreamEnd) {
        self.input().end.get_or_insert(end);
        self.wake.notify_one();
    }

    pub(super) fn pushed(&self) -> Seq {
        self.input().pushed
    }

    /// Takes what was given since the last call.
    pub(super) fn take(&self, queue: &mut Vec<Record>) -> Option<StreamEnd> {
        let mut input = self.input();
        queue.append(&mut input.queue);
        input.end.clone()
    }

    pub(super) fn hold(&self, value: Box<dyn Any + Send>) {
        let mut input = self.input();
        // Once the task is done, nothing is kept.
        if !input.is_closed {
            input.held.push(value);
        }
    }

    pub(super) fn progress(&self) -> watch::Ref<'_, Progress> {
        self.progress.borrow()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Changes how far the task is, and wakes the tasks that wait for it.
    pub(super) fn report(&self, change: impl FnOnce(&mut Progress)) {
        let mut failed = false;
        self.progress.send_modify(|progress| {
            let had_failed = progress.failure.is_some();
            change(progress);
            failed = !had_failed && progress.failure.is_some();
        });
        self.flush_waker.wake();
        if failed {
            self.failure_waker.wake();
        }
    }

    /// The task is done.
    pub(super) fn close(&self) {
        let mut input = self.input();
        input.is_closed = true;
        let held = std::mem::take(&mut input.held);
        let queue = std::mem::take(&mut input.queue);
        drop(input);
        drop((held, queue));
        self.report(|progress| progress.is_done = true);
    }
}
