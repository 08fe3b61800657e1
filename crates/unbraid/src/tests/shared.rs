//! Which waiters a change of a shared value wakes, and what a dropped watcher leaves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::FutureExt;

use crate::{
    sync::shared::{ApplyPending, Pending, Read, Shared, Watcher},
    sync::wait_list::{Interest, WakeList},
};

impl ApplyPending for u8 {
    /// A task has to be woken for whatever the tests defer.
    fn pending(&self) -> Pending {
        Pending::Work
    }

    fn apply_pending(&mut self) {}
}

/// Counts its wake-ups.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that waits for a value, perhaps with two watchers, and a count of its wake-ups since the last call.
struct Task(Arc<Count>);

impl Task {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    fn wait(&self, watcher: &mut Watcher<u8>) {
        let pending: Poll<()> =
            watcher.poll(&Context::from_waker(&self.waker()), |_| Poll::Pending);
        assert!(pending.is_pending());
    }

    fn woken(&self) -> u64 {
        self.0.0.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn deferred_work_wakes_each_waiting_task_once_or_else_the_owner() {
    let shared = Arc::new(Shared::new(0_u8));
    let (mut one, mut two) = (Watcher::new(&shared), Watcher::new(&shared));
    let (reader, owner) = (Task::new(), Task::new());
    let mut wake_list = WakeList::default();
    let mut defer = || {
        shared.defer(&mut wake_list, |value| {
            *value += 1;
            Interest::ALL
        });
        (reader.woken(), owner.woken())
    };
    let driven = shared.poll_drive(&Context::from_waker(&owner.waker()), &mut None, |_| false);
    assert!(driven.is_pending());
    assert_eq!(defer(), (0, 1), "no other waiter");
    assert_eq!(defer(), (0, 0), "the owner has been woken already");
    reader.wait(&mut one);
    reader.wait(&mut two);
    assert_eq!(defer(), (1, 0));
    assert_eq!(defer(), (0, 0), "the reader has been woken already");
    let driven = shared.poll_drive(&Context::from_waker(&owner.waker()), &mut None, |_| false);
    assert!(driven.is_pending());
    assert_eq!(defer(), (0, 1), "the reader no longer waits");
    reader.wait(&mut two);
    drop(two);
    let driven = shared.poll_drive(&Context::from_waker(&owner.waker()), &mut None, |_| false);
    assert!(driven.is_pending());
    assert_eq!(defer(), (0, 1), "a dropped watcher does not wait");
    assert_eq!(shared.read(|value| *value), 6);
}

#[test]
fn a_waiter_is_woken_for_its_interest_only() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut texts = Watcher::with_interest(Interest::TEXT, &shared);
    let mut end = Watcher::with_interest(Interest::OTHER, &shared);
    let (reader, waits, owner) = (Task::new(), Task::new(), Task::new());
    let mut wake_list = WakeList::default();
    let mut defer = |interest| {
        reader.wait(&mut texts);
        waits.wait(&mut end);
        let driven = shared.poll_drive(&Context::from_waker(&owner.waker()), &mut None, |_| false);
        assert!(driven.is_pending());
        shared.defer(&mut wake_list, |_| interest);
        (reader.woken(), waits.woken(), owner.woken())
    };
    assert_eq!(defer(Interest::TEXT), (1, 0, 0));
    assert_eq!(defer(Interest::CALLS), (0, 0, 1), "no waiter is interested");
    assert_eq!(defer(Interest::ALL), (1, 1, 0));
}

#[test]
fn a_registered_watcher_reads_again_only_after_a_change_or_from_another_task() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut watcher = Watcher::new(&shared);
    let (one, two) = (Task::new(), Task::new());
    let mut reads = 0;
    let mut read = |task: &Task, found: bool| {
        let polled = watcher.poll(&Context::from_waker(&task.waker()), |_| {
            reads += 1;
            if found {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        (polled.is_ready(), reads)
    };
    let defer = || {
        shared.defer(&mut WakeList::default(), |_| Interest::ALL);
        (one.woken(), two.woken())
    };
    assert_eq!(read(&one, false), (false, 1));
    assert_eq!(read(&one, true), (false, 1), "nothing has changed");
    assert_eq!(
        read(&two, false),
        (false, 2),
        "another task registers its waker"
    );
    assert_eq!(defer(), (0, 1));
    assert_eq!(read(&two, false), (false, 3));
    assert_eq!(read(&one, true), (true, 4));
    assert_eq!(
        defer(),
        (0, 0),
        "a watcher that found something does not wait"
    );
}

#[test]
fn a_watcher_that_has_caught_up_waits_at_once() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut watcher = Watcher::new(&shared);
    let task = Task::new();
    let waker = task.waker();
    let cx = Context::from_waker(&waker);
    assert_eq!(
        watcher.poll_read(&cx, |value| Read::CaughtUp(*value)),
        Poll::Ready(0)
    );
    assert_eq!(
        watcher.poll_read(&cx, |value| Read::CaughtUp(*value)),
        Poll::Pending
    );
    shared.modify(|value| *value += 1);
    assert_eq!(task.woken(), 1);
    assert_eq!(
        watcher.poll_read(&cx, |value| Read::Partial(*value)),
        Poll::Ready(1)
    );
    assert_eq!(
        watcher.poll_read(&cx, |value| Read::Partial(*value)),
        Poll::Ready(1)
    );
}

#[test]
fn a_wait_for_something_else_reads_first() {
    let shared = Arc::new(Shared::new(1_u8));
    let mut watcher = Watcher::new(&shared);
    let first = watcher
        .wait_for(|value| (*value > 1).then_some(()))
        .now_or_never();
    assert_eq!(first, None);
    let second = watcher.wait_for(|value| Some(*value)).now_or_never();
    assert_eq!(second, Some(1));
}

#[test]
fn a_dropped_watcher_leaves_no_waker_behind() {
    let shared = Arc::new(Shared::new(0_u8));
    let mut watcher = Watcher::new(&shared);
    let cx = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        let pending: Poll<()> = watcher.poll(&cx, |_| Poll::Pending);
        assert!(pending.is_pending());
    }
    assert_eq!(shared.waiter_count(), 1);
    drop(watcher);
    assert_eq!(shared.waiter_count(), 0);
}

#[test]
fn a_waker_that_owns_a_watcher_may_be_replaced() {
    struct Owns(#[expect(dead_code, reason = "it is dropped with the waker")] Watcher<u8>);
    impl Wake for Owns {
        fn wake(self: Arc<Self>) {}
    }
    let shared = Arc::new(Shared::new(0_u8));
    let mut watcher = Watcher::new(&shared);
    for _ in 0..3 {
        let owning = Waker::from(Arc::new(Owns(watcher.clone())));
        let pending: Poll<()> = watcher.poll(&Context::from_waker(&owning), |_| Poll::Pending);
        assert!(pending.is_pending());
    }
}

#[test]
fn a_panic_under_the_lock_does_not_stop_readers() {
    let shared = Arc::new(Shared::new(1_u8));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        shared.modify(|_| panic!("on purpose"))
    }));
    assert!(panicked.is_err());
    assert_eq!(shared.read(|value| *value), 1);
}
