//! A value with one writer and any number of readers that wait for it to change.
//!
//! Both logs are such values. A reader looks and, if there is nothing for it, leaves its waker under the same lock, so
//! that no change is missed. The writer takes all wakers and wakes them behind the lock, once a change.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

#[derive(Debug)]
pub(crate) struct Watched<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    waiting: Waiting,
}

/// Wakers by their readers' keys: two find room without an allocation, which is a choice's text and its calls.
#[derive(Debug, Default)]
struct Waiting {
    first: [Option<(u64, Waker)>; 2],
    more: Vec<(u64, Waker)>,
}

impl Waiting {
    /// Leaves a waker; the one that it replaces is for the caller to drop.
    fn leave(&mut self, key: u64, waker: &Waker) -> Option<Waker> {
        let known = self.first.iter_mut().flatten().chain(&mut self.more);
        for (of, waiting) in known {
            if *of == key {
                let same = waiting.will_wake(waker);
                return (!same).then(|| std::mem::replace(waiting, waker.clone()));
            }
        }
        let new = (key, waker.clone());
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(new),
            None => self.more.push(new),
        }
        None
    }

    fn remove(&mut self, key: u64) -> Option<Waker> {
        let mut first = self.first.iter_mut();
        let own = |place: &Option<(u64, Waker)>| place.as_ref().is_some_and(|(of, _)| *of == key);
        if let Some(place) = first.find(|place| own(place)) {
            return place.take().map(|(_, waker)| waker);
        }
        let own = self.more.iter().position(|(of, _)| *of == key)?;
        Some(self.more.swap_remove(own).1)
    }

    fn wake(&mut self) {
        let Self { first, more } = self;
        let all = first
            .iter_mut()
            .filter_map(Option::take)
            .chain(more.drain(..));
        for (_, waker) in all {
            waker.wake();
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.first.iter().flatten().count() + self.more.len()
    }
}

impl<T> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State {
                value,
                waiting: Waiting::default(),
            }),
        }
    }

    /// A panic under the lock leaves a value that readers can still read; its writer ends it.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock().value)
    }

    pub(crate) fn change<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        /// Wakes also when `work` panics: what it had written is there to read.
        struct Wake(Waiting);
        impl Drop for Wake {
            fn drop(&mut self) {
                self.0.wake();
            }
        }
        let mut state = self.lock();
        // Declared behind the guard would be dropped before it: wake only once the lock is free.
        let wake = Wake(std::mem::take(&mut state.waiting));
        let result = work(&mut state.value);
        drop(state);
        drop(wake);
        result
    }

    fn poll<R>(&self, key: u64, cx: &Context<'_>, look: impl FnOnce(&T) -> Poll<R>) -> Poll<R> {
        let mut state = self.lock();
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

/// One reader's place in the queue of those who wait. A clone waits on its own; dropping it leaves no waker behind.
#[derive(Debug)]
pub(crate) struct Watcher<T> {
    watched: Arc<Watched<T>>,
    key: u64,
}

impl<T> Watcher<T> {
    pub(crate) fn new(watched: &Arc<Watched<T>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
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

impl<T> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self::new(&self.watched)
    }
}

impl<T> Drop for Watcher<T> {
    fn drop(&mut self) {
        let mut state = self.watched.lock();
        let waker = state.waiting.remove(self.key);
        // A waker's drop may run foreign code: not under the lock.
        drop(state);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_dropped_watcher_leaves_no_waker_behind() {
        let watched = Arc::new(Watched::new(0));
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
        impl std::task::Wake for Owns {
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
        let watched = Arc::new(Watched::new(1));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            watched.change(|_| panic!("on purpose"))
        }));
        assert!(panicked.is_err());
        assert_eq!(watched.read(|value| *value), 1);
    }
}
