//! The types that the synchronization primitives are built from, as loom provides them.

use std::task::Waker;

/// Our code does not rely on the order of reference counts, and modelling each clone would only multiply the orders.
pub(crate) use std::sync::Arc;

pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// As in `unbraid`, without the hook of its tests.
pub(crate) fn clone_waker(waker: &Waker) -> Waker {
    waker.clone()
}
