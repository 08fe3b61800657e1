//! A value with one owner and any number of readers that wait for it to change.
//!
//! Both logs are such values. A reader looks and, if there is nothing for it, leaves its waker under the same lock, so
//! that no change is missed. Who changes the value marks the wakers under the lock and wakes them behind it. As long as its
//! waker is not marked a reader need not look again, and takes no lock.

use std::{
    future::poll_fn,
    sync::PoisonError,
    task::{Context, Poll},
};

use crate::{
    sync::primitives::{Arc, Mutex, MutexGuard},
    sync::wait_list::{Due, Place, SharedWaker, Ticket, Topics, Waiting, release, share},
};

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
        state.waiting.tell(Topics::ALL, &mut wake.0);
        let result = work(&mut state.value);
        drop(state);
        drop(wake);
        result
    }

    /// Leaves work for whoever looks next, and says what it will change: those who wait for that are woken to look or,
    /// where nobody does, the owner.
    pub(crate) fn put(&self, due: &mut Due, work: impl FnOnce(&mut T) -> Topics) {
        let mut state = self.lock();
        let topics = work(&mut state.value);
        let State { waiting, owner, .. } = &mut *state;
        if !waiting.tell(topics, due)
            && let Some(owner) = owner
        {
            owner.tell(topics, due);
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
            owner.tell(Topics::ALL, &mut due);
        }
        drop(state);
        due.wake();
    }

    /// As [`change`](Self::change), by an owner that will look no more.
    pub(crate) fn retire(&self, work: impl FnOnce(&mut T)) {
        let owner = self.lock().owner.take();
        release(owner); // it may run foreign code: not under the lock
        self.change(work);
    }

    /// The owner settles the value, again and again, until it is over.
    pub(crate) async fn tend(&self, over: impl Fn(&T) -> bool) {
        let mut left = None;
        poll_fn(|cx| self.poll_tend(cx, &mut left, &over)).await
    }

    /// One turn of [`tend`](Self::tend); `left` is the waker that was left here before.
    pub(crate) fn poll_tend(
        &self,
        cx: &Context<'_>,
        left: &mut Option<SharedWaker>,
        over: impl Fn(&T) -> bool,
    ) -> Poll<()> {
        let mut fresh = None;
        let waker = share(cx.waker(), left.as_ref(), &mut fresh);
        let mut state = self.look();
        if over(&state.value) {
            return Poll::Ready(());
        }
        let old = match &mut state.owner {
            Some(owner) => owner.leave(waker),
            None => {
                state.owner = Some(Place::new(&Ticket::new(Topics::ALL), waker));
                None
            }
        };
        drop(state);
        // A waker's drop may run foreign code: not under the lock.
        if fresh.is_some() {
            *left = fresh;
        }
        drop(old);
        Poll::Pending
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}

/// What a look at a value came to.
#[derive(Debug)]
pub(crate) enum Look<R> {
    /// There is nothing to find yet.
    Nothing,
    /// This was found, and a further look may find more.
    Some(R),
    /// This was found, and before the next change a further look finds nothing.
    All(R),
}

/// One reader's place in the queue of those who wait. A clone waits on its own; dropping it leaves no waker behind.
///
/// While it waits, a further look finds nothing: the value is looked at again only once it was told of a change.
#[derive(Debug)]
pub(crate) struct Watcher<T: Settle> {
    watched: Arc<Watched<T>>,
    ticket: Arc<Ticket>,
    /// The waker that it left.
    left: Option<SharedWaker>,
}

impl<T: Settle> Watcher<T> {
    /// Waits for any change.
    pub(crate) fn new(watched: &Arc<Watched<T>>) -> Self {
        Self::of(Topics::ALL, watched)
    }

    /// Waits for changes of these topics.
    pub(crate) fn of(topics: Topics, watched: &Arc<Watched<T>>) -> Self {
        Self {
            watched: Arc::clone(watched),
            ticket: Ticket::new(topics),
            left: None,
        }
    }

    /// Looks at the value, and waits if there is nothing. Every look is for the same; [`wait`](Self::wait) begins anew.
    pub(crate) fn poll<R>(
        &mut self,
        cx: &Context<'_>,
        look: impl FnOnce(&T) -> Poll<R>,
    ) -> Poll<R> {
        self.poll_look(cx, |value| match look(value) {
            Poll::Ready(found) => Look::Some(found),
            Poll::Pending => Look::Nothing,
        })
    }

    /// As [`poll`](Self::poll), and who has found all waits for more at once, without another look.
    pub(crate) fn poll_look<R>(
        &mut self,
        cx: &Context<'_>,
        look: impl FnOnce(&T) -> Look<R>,
    ) -> Poll<R> {
        let left = self.left.as_ref();
        let known = left.is_some_and(|left| left.will_wake(cx.waker()));
        if known && self.ticket.waits() {
            return Poll::Pending;
        }
        let mut fresh = None;
        let waker = share(cx.waker(), left, &mut fresh);
        let mut state = self.watched.look();
        let (found, waits) = match look(&state.value) {
            Look::Nothing => (Poll::Pending, true),
            Look::Some(found) => (Poll::Ready(found), false),
            Look::All(found) => (Poll::Ready(found), true),
        };
        let mut old = None;
        if waits {
            old = state.waiting.leave(&self.ticket, waker);
        } else {
            self.ticket.withdraw();
        }
        drop(state);
        // A waker's drop may run foreign code, which may look here: not under the lock.
        if fresh.is_some() {
            self.left = fresh;
        }
        drop(old);
        found
    }

    /// Waits until the value has what is looked for.
    pub(crate) async fn wait<R>(&mut self, mut look: impl FnMut(&T) -> Option<R>) -> R {
        self.left = None;
        poll_fn(|cx| self.poll(cx, |value| look(value).map_or(Poll::Pending, Poll::Ready))).await
    }
}

impl<T: Settle> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self::of(self.ticket.topics(), &self.watched)
    }
}

impl<T: Settle> Drop for Watcher<T> {
    fn drop(&mut self) {
        let mut state = self.watched.lock();
        let place = state.waiting.remove(&self.ticket);
        // A waker's drop may run foreign code: not under the lock.
        drop(state);
        drop(place);
    }
}
