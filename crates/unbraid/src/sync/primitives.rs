//! The types that the synchronization primitives are built from. `unbraid-model` replaces this module with loom's types.

use std::task::Waker;

pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// Clones a waker, which runs foreign code. The test hook panics on request: no safe waker can be made to panic there.
pub(crate) fn clone_waker(waker: &Waker) -> Waker {
    #[cfg(test)]
    crate::tests::wakers::in_clone();
    waker.clone()
}
