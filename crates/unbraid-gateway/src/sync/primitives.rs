//! The types that the synchronization primitive is built from. `unbraid-model` replaces this module with loom's types.

pub(crate) use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
