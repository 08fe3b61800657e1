//! Requests on their way to a task that looks for them at each of its turns.
//!
//! It leaves its waker under the lock that the requests are behind. A flag beside the lock spares it the lock at all those
//! turns where nothing was asked; the flag is set before the waker is taken to be woken, so that whoever is woken sees it.

use std::{
    sync::PoisonError,
    task::{Context, Poll},
};

use crate::{
    sync::primitives::{Arc, AtomicBool, Mutex, MutexGuard, Ordering},
    sync::wait_list::{SharedWaker, release, share, wake},
};

#[derive(Debug)]
pub(crate) struct Requests<R> {
    state: Mutex<State<R>>,
    /// Whether there may be a request: who looks for them looks here before it takes the lock.
    asked: AtomicBool,
}

#[derive(Debug)]
struct State<R> {
    requests: Vec<R>,
    waker: Option<SharedWaker>,
    /// Whether there is anybody to look for them.
    open: bool,
}

impl<R> Default for Requests<R> {
    /// Takes requests at once, before anybody polls it: what is asked while the task is being started must not be lost.
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                requests: Vec::new(),
                waker: None,
                open: true,
            }),
            asked: AtomicBool::new(false),
        }
    }
}

impl<R: PartialEq> Requests<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses all requests from here on, and gives those that nobody has polled.
    #[must_use]
    pub(crate) fn close(&self) -> Vec<R> {
        let mut state = self.lock();
        state.open = false;
        let requests = std::mem::take(&mut state.requests);
        let waker = state.waker.take();
        drop(state);
        release(waker); // it may run foreign code: not under the lock
        requests
    }

    /// Leaves a request for the task that polls; false if it is refused, because the task has ended.
    #[must_use]
    pub(crate) fn ask(&self, request: R) -> bool {
        let mut state = self.lock();
        if !state.open {
            return false;
        }
        if !state.requests.contains(&request) {
            state.requests.push(request);
        }
        self.asked.store(true, Ordering::Release);
        let waker = state.waker.take();
        drop(state);
        waker.iter().for_each(|waker| wake(waker));
        release(waker);
        true
    }

    /// Requests that have come; `left` is the waker that was left here before.
    pub(crate) fn poll(&self, cx: &Context<'_>, left: &mut Option<SharedWaker>) -> Poll<Vec<R>> {
        let known = left.as_ref().is_some_and(|left| left.will_wake(cx.waker()));
        if known && !self.asked.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let mut fresh = None;
        let waker = Arc::clone(share(cx.waker(), left.as_ref(), &mut fresh));
        *left = Some(Arc::clone(&waker));
        let mut state = self.lock();
        if state.requests.is_empty() {
            self.asked.store(false, Ordering::Release);
            let old = state.waker.replace(waker);
            drop(state);
            drop(old); // its drop may run foreign code: not under the lock
            return Poll::Pending;
        }
        self.asked.store(false, Ordering::Release);
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        *left = None; // it was taken to wake us; its drop may run foreign code: not under the lock
        Poll::Ready(requests)
    }
}
