//! What the synchronisation of our own is made of: `unbraid-model` puts the types of a model checker in their place.

pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
