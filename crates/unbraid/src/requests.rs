//! Requests on their way to a task that looks for them at each of its turns.
//!
//! It leaves its waker under the lock that the requests are behind. A flag beside the lock spares it the lock at all those
//! turns where nothing was asked; the flag is set before the waker is taken to be woken, so that whoever is woken sees it.

use std::{
    sync::PoisonError,
    task::{Context, Poll, Waker},
};

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

#[derive(Debug)]
pub(crate) struct Requests<R> {
    state: Mutex<State<R>>,
    /// Whether there may be a request: who looks for them looks here before it takes the lock.
    asked: AtomicBool,
}

#[derive(Debug)]
struct State<R> {
    requests: Vec<R>,
    waker: Option<Waker>,
    /// Whether there is anybody to look for them.
    open: bool,
}

impl<R> Default for Requests<R> {
    /// Takes none until it is opened.
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                requests: Vec::new(),
                waker: None,
                open: false,
            }),
            asked: AtomicBool::new(false),
        }
    }
}

impl<R: PartialEq> Requests<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self) {
        self.lock().open = true;
    }

    /// Requests go nowhere from here on.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.open = false;
        state.requests.clear();
        let waker = state.waker.take();
        drop(state);
        drop(waker); // it may run foreign code: not under the lock
    }

    pub(crate) fn ask(&self, request: R) {
        let mut state = self.lock();
        if !state.open {
            return;
        }
        if !state.requests.contains(&request) {
            state.requests.push(request);
        }
        self.asked.store(true, Ordering::Release);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Requests that have come; `left` is the waker that was left here before.
    pub(crate) fn poll(&self, cx: &Context<'_>, left: &mut Option<Waker>) -> Poll<Vec<R>> {
        let known = left.as_ref().is_some_and(|left| left.will_wake(cx.waker()));
        if known && !self.asked.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        *left = Some(cx.waker().clone());
        let mut state = self.lock();
        if state.requests.is_empty() {
            self.asked.store(false, Ordering::Release);
            let old = state.waker.replace(cx.waker().clone());
            drop(state);
            drop(old); // its drop may run foreign code: not under the lock
            return Poll::Pending;
        }
        self.asked.store(false, Ordering::Release);
        *left = None; // it was taken to wake us
        Poll::Ready(std::mem::take(&mut state.requests))
    }
}
