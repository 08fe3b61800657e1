//! A value with one owner and any number of readers that wait for it to change.
//!
//! A choice's log and the state of a completion are such values. These rules keep every reader correct and cheap:
//!
//! - A reader that finds nothing registers its waker under the same lock under which it read, so it misses no change.
//! - A writer collects the wakers under the lock and wakes them after releasing it.
//! - A registered reader has already seen everything that was announced and concerns it; [`Shared::change_silently`] leaves the
//!   announcement to the next notification. Until that clears its flag, a poll returns `Pending` without taking the lock.
//! - A writer may defer work to the next task that takes the lock. Every read applies deferred work first, so no reader sees a
//!   stale value; and whenever work is deferred, some task that can apply it has been woken.

use std::{
    future::poll_fn,
    sync::PoisonError,
    task::{Context, Poll},
};

use super::{
    primitives::{Arc, Mutex, MutexGuard},
    wait_list::{Interest, WaitList, Waiter, WaiterSlot, WakeList, drop_waker},
};

/// A value that may hold work that a writer has deferred.
pub(crate) trait ApplyPending {
    /// What is left to do.
    fn pending(&self) -> Pending;

    /// Applies it.
    fn apply_pending(&mut self);
}

/// What is left to do with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    Nothing,
    /// Deferred work, which any task that takes the lock applies.
    Work,
    /// The owner has to learn that nothing will be deferred any more.
    End,
}

/// To whom work was deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deferred {
    /// There was none.
    Nothing,
    ToWaiter,
    ToOwner,
    /// Neither a waiter nor an owner would have applied it, so the writer did.
    ToNobody,
}

#[derive(Debug)]
pub(crate) struct Shared<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
#[repr(C)]
struct State<T> {
    wait_list: WaitList,
    /// The owner applies deferred work when no reader waits for it.
    owner: Option<WaiterSlot>,
    value: T,
}

impl<T: ApplyPending> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State {
                value,
                wait_list: WaitList::default(),
                owner: None,
            }),
        }
    }

    /// Takes the lock. A poisoned lock is ignored: a panic leaves a value that can still be read, and its owner ends it.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock and applies deferred work.
    fn lock_applied(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.lock();
        state.value.apply_pending();
        state
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        self.read_mut(|value| read(value))
    }

    /// As [`read`](Self::read). `read` may change how the value is stored, and nothing that another reader can see.
    pub(crate) fn read_mut<R>(&self, read: impl FnOnce(&mut T) -> R) -> R {
        read(&mut self.lock_applied().value)
    }

    /// Changes the value and wakes every waiter.
    pub(crate) fn modify<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        /// Wakes even if `change` panics: readers must see what it had written by then.
        struct WakeOnDrop(WakeList);
        impl Drop for WakeOnDrop {
            fn drop(&mut self) {
                self.0.wake();
            }
        }
        // It is declared before the guard, so that an unwind drops the guard first and wakes without the lock.
        let mut wake_list = WakeOnDrop(WakeList::default());
        let mut state = self.lock_applied();
        // The waiters are collected before the change, which may panic.
        state.wait_list.notify(Interest::ALL, &mut wake_list.0);
        let result = change(&mut state.value);
        drop(state);
        drop(wake_list);
        result
    }

    /// Changes the value and wakes nobody: nobody reads it yet, or the caller notifies the waiters with the next
    /// [`defer`](Self::defer).
    pub(crate) fn change_silently<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.lock().value)
    }

    /// Defers work to the next task that takes the lock. `work` stores it and returns what it will change.
    ///
    /// The waiters that it concerns are woken or, if there is none, the owner. One of them will apply the work, so an
    /// owner that is not needed stays asleep. If no owner is registered either, the work is applied here.
    pub(crate) fn defer(
        &self,
        wake_list: &mut WakeList,
        work: impl FnOnce(&mut T) -> Interest,
    ) -> Deferred {
        let mut state = self.lock();
        let changed = work(&mut state.value);
        let State {
            wait_list,
            owner,
            value,
        } = &mut *state;
        // Waiters that were woken earlier and have not read yet do not count here, so the owner is woken beside them: a
        // consumer may be slow, or gone by now, and the work must not depend on it.
        let is_noticed = wait_list.notify(changed, wake_list);
        let deferred = match (value.pending(), owner) {
            (Pending::End, Some(owner)) => {
                owner.notify(changed, wake_list);
                Deferred::Nothing
            }
            (Pending::Nothing | Pending::End, _) => Deferred::Nothing,
            (Pending::Work, _) if is_noticed => Deferred::ToWaiter,
            (Pending::Work, Some(owner)) => {
                owner.notify(changed, wake_list);
                Deferred::ToOwner
            }
            (Pending::Work, None) => {
                value.apply_pending();
                Deferred::ToNobody
            }
        };
        drop(state);
        wake_list.wake();
        deferred
    }

    /// Changes something that only the owner reads, and wakes the owner.
    pub(crate) fn notify_owner(&self, change: impl FnOnce(&mut T)) {
        let mut wake_list = WakeList::default();
        let mut state = self.lock();
        change(&mut state.value);
        if let Some(owner) = &mut state.owner {
            owner.notify(Interest::ALL, &mut wake_list);
        }
        drop(state);
        wake_list.wake();
    }

    /// Changes the value for the last time on behalf of the owner, which reads it no more.
    pub(crate) fn detach_owner(&self, change: impl FnOnce(&mut T)) {
        // The slot keeps the task of the owner alive, and handles may keep this value for as long as they like.
        let owner = self.lock().owner.take();
        drop_waker(owner); // it may run foreign code: not under the lock
        self.modify(change);
    }

    /// Applies deferred work as the owner until `is_finished` holds.
    pub(crate) async fn drive(&self, is_finished: impl Fn(&T) -> bool) {
        let mut registered = None;
        poll_fn(|cx| self.poll_drive(cx, &mut registered, &is_finished)).await
    }

    /// One poll of [`drive`](Self::drive). `registered` is the waiter that the owner registered last.
    pub(crate) fn poll_drive(
        &self,
        cx: &Context<'_>,
        registered: &mut Option<Arc<Waiter>>,
        is_finished: impl Fn(&T) -> bool,
    ) -> Poll<()> {
        let (waiter, former) = waiter_of(registered, Interest::ALL, cx);
        // The owner applies before it registers, under one lock. Work that is deferred later finds its waker.
        let mut state = self.lock_applied();
        if is_finished(&state.value) {
            return Poll::Ready(());
        }
        let replaced = match &mut state.owner {
            Some(owner) => owner.register(waiter),
            None => {
                state.owner = Some(WaiterSlot::new(waiter));
                None
            }
        };
        drop(state);
        drop((replaced, former)); // it may run foreign code: not under the lock
        Poll::Pending
    }

    #[cfg(test)]
    pub(crate) fn waiter_count(&self) -> usize {
        self.lock().wait_list.len()
    }
}

/// What a reader found in a value.
#[derive(Debug)]
pub(crate) enum Read<R> {
    /// Nothing yet: the reader waits.
    Pending,
    /// Something, and the value may hold more for this reader.
    Partial(R),
    /// Everything there is: another read would find nothing before the next change, so the reader waits at once.
    CaughtUp(R),
}

/// The waiter of a task: the one that is registered already, or a new one in its place, and then also the former one.
///
/// Must not be called under a lock, because cloning a waker runs foreign code.
fn waiter_of<'w>(
    registered: &'w mut Option<Arc<Waiter>>,
    interest: Interest,
    cx: &Context<'_>,
) -> (&'w Arc<Waiter>, Option<Arc<Waiter>>) {
    let mut former = None;
    if !is_of_task(registered.as_ref(), cx) {
        former = registered.replace(Waiter::new(interest, cx.waker()));
    }
    let waiter = registered.get_or_insert_with(|| Waiter::new(interest, cx.waker()));
    (waiter, former)
}

/// Whether a waiter wakes the task that polls. A watcher may have moved to another one.
fn is_of_task(waiter: Option<&Arc<Waiter>>, cx: &Context<'_>) -> bool {
    waiter.is_some_and(|waiter| waiter.will_wake(cx.waker()))
}

/// One reader of a value. A clone waits on its own; dropping a watcher removes its waker.
#[derive(Debug)]
pub(crate) struct Watcher<T: ApplyPending> {
    shared: Arc<Shared<T>>,
    interest: Interest,
    /// The waiter that this watcher registered last.
    registered: Option<Arc<Waiter>>,
}

impl<T: ApplyPending> Watcher<T> {
    /// A watcher that waits for any change.
    pub(crate) fn new(shared: &Arc<Shared<T>>) -> Self {
        Self::with_interest(Interest::ALL, shared)
    }

    /// A watcher that waits for changes of these parts only.
    pub(crate) fn with_interest(interest: Interest, shared: &Arc<Shared<T>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            interest,
            registered: None,
        }
    }

    /// Reads the value, and waits if `read` finds nothing.
    ///
    /// Each poll of a watcher must look for the same thing, since a registered watcher does not read again before a
    /// change. [`wait_for`](Self::wait_for) starts afresh.
    pub(crate) fn poll<R>(
        &mut self,
        cx: &Context<'_>,
        read: impl FnOnce(&T) -> Poll<R>,
    ) -> Poll<R> {
        self.poll_read(cx, |value| match read(value) {
            Poll::Ready(found) => Read::Partial(found),
            Poll::Pending => Read::Pending,
        })
    }

    /// As [`poll`](Self::poll). A read that has caught up registers its waker under the same lock, which saves the next
    /// poll from taking it.
    ///
    /// `read` may change how the value is stored, and nothing that another reader can see.
    pub(crate) fn poll_read<R>(
        &mut self,
        cx: &Context<'_>,
        read: impl FnOnce(&mut T) -> Read<R>,
    ) -> Poll<R> {
        let registered = self.registered.as_ref();
        if is_of_task(registered, cx) && registered.is_some_and(|waiter| waiter.is_waiting()) {
            return Poll::Pending;
        }
        let (waiter, former) = waiter_of(&mut self.registered, self.interest, cx);
        let mut state = self.shared.lock_applied();
        let (found, waits) = match read(&mut state.value) {
            Read::Pending => (Poll::Pending, true),
            Read::Partial(found) => (Poll::Ready(found), false),
            Read::CaughtUp(found) => (Poll::Ready(found), true),
        };
        // A former waiter always gives its slot to the new one. Otherwise a watcher that has moved to another task would not
        // find the slot again.
        let mut replaced = None;
        if waits || former.is_some() {
            replaced = state.wait_list.register(waiter, former.as_deref());
        }
        if !waits {
            waiter.clear(); // the next poll must read
        }
        drop(state);
        // Dropping a waker may run foreign code, which may read this very value: not under the lock.
        drop((replaced, former));
        found
    }

    /// Waits until `read` finds something.
    pub(crate) async fn wait_for<R>(&mut self, mut read: impl FnMut(&T) -> Option<R>) -> R {
        // A former call may have waited for something else and been dropped. Without the flag the first poll reads.
        if let Some(waiter) = &self.registered {
            waiter.clear();
        }
        poll_fn(|cx| self.poll(cx, |value| read(value).map_or(Poll::Pending, Poll::Ready))).await
    }
}

impl<T: ApplyPending> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self::with_interest(self.interest, &self.shared)
    }
}

impl<T: ApplyPending> Drop for Watcher<T> {
    fn drop(&mut self) {
        let Some(waiter) = &self.registered else {
            return;
        };
        // Not `lock_applied`: dropping a cursor takes constant time, and the next reader applies what is pending.
        let mut state = self.shared.lock();
        let slot = state.wait_list.remove(waiter);
        // Dropping a waker may run foreign code: not under the lock.
        drop(state);
        drop(slot);
    }
}
