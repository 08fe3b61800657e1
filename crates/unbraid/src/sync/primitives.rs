//! What the synchronisation of our own is made of: `unbraid-model` puts the types of a model checker in their place.

use std::task::Waker;

pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// Clones a waker, which runs foreign code: a test makes it panic, since no waker can be made to without `unsafe`.
pub(crate) fn clone_waker(waker: &Waker) -> Waker {
    #[cfg(test)]
    crate::tests::wakers::in_clone();
    waker.clone()
}
