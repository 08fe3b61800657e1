//! The items of `unbraid`'s `sync` module, with the types of loom.

use std::task::Waker;

/// Not loom's `Arc`: no code depends on the order of reference counts, and each clone would multiply the interleavings.
pub(crate) use std::sync::Arc;

pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// As in `unbraid`, without what its tests need.
pub(crate) fn clone_waker(waker: &Waker) -> Waker {
    waker.clone()
}
