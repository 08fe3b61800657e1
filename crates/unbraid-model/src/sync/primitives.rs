//! What stands in `unbraid`'s `sync`, as the model checker has it.

use std::task::Waker;

/// Nothing of ours is ordered by how its owners are counted, and counted by the checker each clone would multiply the orders.
pub(crate) use std::sync::Arc;

pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// As in `unbraid`, without what its tests need.
pub(crate) fn clone_waker(waker: &Waker) -> Waker {
    waker.clone()
}
