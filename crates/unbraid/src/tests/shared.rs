//! Who is woken at a watched value, and what is left behind.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::FutureExt;

use crate::{
    sync::shared::{Look, Settle, Watched, Watcher},
    sync::wait_list::{Due, Topics},
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
fn what_is_put_wakes_each_waiting_task_once_or_else_the_owner() {
    let watched = Arc::new(Watched::new(0_u8));
    let (mut one, mut two) = (Watcher::new(&watched), Watcher::new(&watched));
    let (reader, owner) = (Task::new(), Task::new());
    let mut due = Due::default();
    let mut put = || {
        watched.put(&mut due, |value| {
            *value += 1;
            Topics::ALL
        });
        (reader.woken(), owner.woken())
    };
    let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), &mut None, |_| false);
    assert!(tended.is_pending());
    assert_eq!(put(), (0, 1), "nobody else waits");
    assert_eq!(put(), (0, 0), "the owner was told");
    reader.wait(&mut one);
    reader.wait(&mut two);
    assert_eq!(put(), (1, 0));
    assert_eq!(put(), (0, 0), "it was told, too");
    let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), &mut None, |_| false);
    assert!(tended.is_pending());
    assert_eq!(put(), (0, 1), "the reader is at other work");
    reader.wait(&mut two);
    drop(two);
    let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), &mut None, |_| false);
    assert!(tended.is_pending());
    assert_eq!(put(), (0, 1), "who is gone does not wait");
    assert_eq!(watched.read(|value| *value), 6);
}

#[test]
fn who_waits_is_woken_for_its_topics_alone() {
    let watched = Arc::new(Watched::new(0_u8));
    let mut texts = Watcher::of(Topics::TEXTS, &watched);
    let mut end = Watcher::of(Topics::REST, &watched);
    let (reader, waits, owner) = (Task::new(), Task::new(), Task::new());
    let mut due = Due::default();
    let mut put = |topics| {
        reader.wait(&mut texts);
        waits.wait(&mut end);
        let tended = watched.poll_tend(&Context::from_waker(&owner.waker()), &mut None, |_| false);
        assert!(tended.is_pending());
        watched.put(&mut due, |_| topics);
        (reader.woken(), waits.woken(), owner.woken())
    };
    assert_eq!(put(Topics::TEXTS), (1, 0, 0));
    assert_eq!(put(Topics::CALLS), (0, 0, 1), "nobody waits for those");
    assert_eq!(put(Topics::ALL), (1, 1, 0));
}

#[test]
fn who_waits_looks_again_only_if_it_was_told_or_is_another_task() {
    let watched = Arc::new(Watched::new(0_u8));
    let mut watcher = Watcher::new(&watched);
    let (one, two) = (Task::new(), Task::new());
    let mut looks = 0;
    let mut look = |task: &Task, found: bool| {
        let polled = watcher.poll(&Context::from_waker(&task.waker()), |_| {
            looks += 1;
            if found {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        (polled.is_ready(), looks)
    };
    let put = || {
        watched.put(&mut Due::default(), |_| Topics::ALL);
        (one.woken(), two.woken())
    };
    assert_eq!(look(&one, false), (false, 1));
    assert_eq!(look(&one, true), (false, 1), "it was not told of anything");
    assert_eq!(
        look(&two, false),
        (false, 2),
        "another task leaves its waker"
    );
    assert_eq!(put(), (0, 1));
    assert_eq!(look(&two, false), (false, 3));
    assert_eq!(look(&one, true), (true, 4));
    assert_eq!(put(), (0, 0), "who has found something does not wait");
}

#[test]
fn who_has_found_all_waits_at_once() {
    let watched = Arc::new(Watched::new(0_u8));
    let mut watcher = Watcher::new(&watched);
    let task = Task::new();
    let waker = task.waker();
    let cx = Context::from_waker(&waker);
    assert_eq!(
        watcher.poll_look(&cx, |value| Look::All(*value)),
        Poll::Ready(0)
    );
    assert_eq!(
        watcher.poll_look(&cx, |value| Look::All(*value)),
        Poll::Pending
    );
    watched.change(|value| *value += 1);
    assert_eq!(task.woken(), 1);
    assert_eq!(
        watcher.poll_look(&cx, |value| Look::Some(*value)),
        Poll::Ready(1)
    );
    assert_eq!(
        watcher.poll_look(&cx, |value| Look::Some(*value)),
        Poll::Ready(1)
    );
}

#[test]
fn a_wait_for_something_else_looks_first() {
    let watched = Arc::new(Watched::new(1_u8));
    let mut watcher = Watcher::new(&watched);
    let first = watcher
        .wait(|value| (*value > 1).then_some(()))
        .now_or_never();
    assert_eq!(first, None);
    let second = watcher.wait(|value| Some(*value)).now_or_never();
    assert_eq!(second, Some(1));
}

#[test]
fn a_dropped_watcher_leaves_no_waker_behind() {
    let watched = Arc::new(Watched::new(0_u8));
    let mut watcher = Watcher::new(&watched);
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
    let mut watcher = Watcher::new(&watched);
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
