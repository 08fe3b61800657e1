//! Who is woken at a watched value, and what is left behind.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::{
    waiting::Due,
    watched::{Settle, Watched, Watcher},
};

impl Settle for u8 {
    fn settle(&mut self) {}
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that waits at a value, or at two places of it; how often it was woken since it was last asked.
struct Task(Arc<Count>);

impl Task {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    fn wait(&self, watcher: &Watcher<u8>) {
        let pending: Poll<()> =
            watcher.poll(&Context::from_waker(&self.waker()), |_| Poll::Pending);
        assert!(pending.is_pending());
    }

    fn woken(&self) -> u64 {
        self.0.0.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn what_is_put_wakes_each_waiting_task_once_or_else_the_owner() {
    let watched = Arc::new(Watched::new(0_u8));
    let (one, two) = (Watcher::new(&watched), Watcher::new(&watched));
    let (reader, owner) = (Task::new(), Task::new());
    let mut due = Due::default();
    let mut put = || {
        watched.put(&mut due, |value| *value += 1);
        (reader.woken(), owner.woken())
    };
    let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), |_| false);
    assert!(tended.is_pending());
    assert_eq!(put(), (0, 1), "nobody else waits");
    assert_eq!(put(), (0, 0), "the owner was told");
    reader.wait(&one);
    reader.wait(&two);
    assert_eq!(put(), (1, 0));
    assert_eq!(put(), (0, 0), "it was told, too");
    let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), |_| false);
    assert!(tended.is_pending());
    assert_eq!(put(), (0, 1), "the reader is at other work");
    reader.wait(&two);
    drop(two);
    let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), |_| false);
    assert!(tended.is_pending());
    assert_eq!(put(), (0, 1), "who is gone does not wait");
    assert_eq!(watched.read(|value| *value), 6);
}

#[test]
fn a_dropped_watcher_leaves_no_waker_behind() {
    let watched = Arc::new(Watched::new(0_u8));
    let watcher = Watcher::new(&watched);
    let cx = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        let pending: Poll<()> = watcher.poll(&cx, |_| Poll::Pending);
        assert!(pending.is_pending());
    }
    assert_eq!(watched.waiting(), 1);
    drop(watcher);
    assert_eq!(watched.waiting(), 0);
}

#[test]
fn a_waker_that_owns_a_watcher_may_be_replaced() {
    struct Owns(#[expect(dead_code, reason = "it is dropped with the waker")] Watcher<u8>);
    impl Wake for Owns {
        fn wake(self: Arc<Self>) {}
    }
    let watched = Arc::new(Watched::new(0_u8));
    let watcher = Watcher::new(&watched);
    for _ in 0..3 {
        let owning = Waker::from(Arc::new(Owns(watcher.clone())));
        let pending: Poll<()> = watcher.poll(&Context::from_waker(&owning), |_| Poll::Pending);
        assert!(pending.is_pending());
    }
}

#[test]
fn a_panic_under_the_lock_stops_no_reader() {
    let watched = Arc::new(Watched::new(1_u8));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        watched.change(|_| panic!("on purpose"))
    }));
    assert!(panicked.is_err());
    assert_eq!(watched.read(|value| *value), 1);
}
