//! A value with one owner and any number of readers that wait for it to change.
//!
//! Both logs are such values. A reader looks and, if there is nothing for it, leaves its waker under the same lock, so
//! that no change is missed. Who changes the value marks the wakers under the lock and wakes them behind it.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use crate::waiting::{Due, Place, Waiting};

/// A value that may put work off until somebody looks at it.
pub(crate) trait Settle {
    /// Does what was put off.
    fn settle(&mut self);
}

#[derive(Debug)]
pub(crate) struct Watched<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    waiting: Waiting,
    /// Who settles the value where nobody else waits to.
    owner: Option<Place>,
}

impl<T: Settle> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State {
                value,
                waiting: Waiting::default(),
                owner: None,
            }),
        }
    }

    /// A panic under the lock leaves a value that readers can still read; its owner ends it.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`lock`](Self::lock), with nothing put off.
    fn look(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.lock();
        state.value.settle();
        state
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.look().value)
    }

    /// Changes the value, and wakes all who wait.
    pub(crate) fn change<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        /// Wakes also when `work` panics: what it had written is there to read.
        struct Wake(Due);
        impl Drop for Wake {
            fn drop(&mut self) {
                self.0.wake();
            }
        }
        // Declared behind the guard it would be dropped before it: wake only once the lock is free.
        let mut wake = Wake(Due::default());
        let mut state = self.look();
        state.waiting.tell(&mut wake.0);
        let result = work(&mut state.value);
        drop(state);
        drop(wake);
        result
    }

    /// Leaves work for whoever looks next: those who wait are woken to look or, where nobody does, the owner.
    pub(crate) fn put(&self, due: &mut Due, work: impl FnOnce(&mut T)) {
        let mut state = self.lock();
        work(&mut state.value);
        let State { waiting, owner, .. } = &mut *state;
        if !waiting.tell(due)
            && let Some(owner) = owner
        {
            owner.tell(due);
        }
        drop(state);
        due.wake();
    }

    /// Changes what only the owner looks at, and wakes it.
    pub(crate) fn tell_owner(&self, work: impl FnOnce(&mut T)) {
        let mut due = Due::default();
        let mut state = self.lock();
        work(&mut state.value);
        if let Some(owner) = &mut state.owner {
            owner.tell(&mut due);
        }
        drop(state);
        due.wake();
    }

    /// The owner settles the value, again and again, until it is over.
    pub(crate) async fn tend(&self, over: impl Fn(&T) -> bool) {
        poll_fn(|cx| self.poll_tend(cx, &over)).await
    }

    fn poll_tend(&self, cx: &Context<'_>, over: impl Fn(&T) -> bool) -> Poll<()> {
        let mut state = self.look();
        if over(&state.value) {
            return Poll::Ready(());
        }
        let old = match &mut state.owner {
            Some(owner) => owner.leave(cx.waker()),
            None => {
                state.owner = Some(Place::new(OWNER, cx.waker()));
                None
            }
        };
        drop(state);
        drop(old); // it may run foreign code: not under the lock
        Poll::Pending
    }

    fn poll<R>(&self, key: u64, cx: &Context<'_>, look: impl FnOnce(&T) -> Poll<R>) -> Poll<R> {
        let mut state = self.look();
        let result = look(&state.value);
        let mut old = None;
        if result.is_pending() {
            old = state.waiting.leave(key, cx.waker());
        }
        drop(state);
        // A waker's drop may run foreign code, which may look here: not under the lock.
        drop(old);
        result
    }
}

const OWNER: u64 = 0;

/// One reader's place in the queue of those who wait. A clone waits on its own; dropping it leaves no waker behind.
#[derive(Debug)]
pub(crate) struct Watcher<T: Settle> {
    watched: Arc<Watched<T>>,
    key: u64,
}

impl<T: Settle> Watcher<T> {
    pub(crate) fn new(watched: &Arc<Watched<T>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(OWNER + 1);
        Self {
            watched: Arc::clone(watched),
            key: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn poll<R>(&self, cx: &Context<'_>, look: impl FnOnce(&T) -> Poll<R>) -> Poll<R> {
        self.watched.poll(self.key, cx, look)
    }

    /// Waits until the value has what is looked for.
    pub(crate) async fn wait<R>(&self, mut look: impl FnMut(&T) -> Option<R>) -> R {
        poll_fn(|cx| self.poll(cx, |value| look(value).map_or(Poll::Pending, Poll::Ready))).await
    }
}

impl<T: Settle> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self::new(&self.watched)
    }
}

impl<T: Settle> Drop for Watcher<T> {
    fn drop(&mut self) {
        let mut state = self.watched.lock();
        let place = state.waiting.remove(self.key);
        // A waker's drop may run foreign code: not under the lock.
        drop(state);
        drop(place);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Wake, Waker};

    use super::*;

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
        assert_eq!(watched.lock().waiting.len(), 1);
        drop(watcher);
        assert_eq!(watched.lock().waiting.len(), 0);
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
}
