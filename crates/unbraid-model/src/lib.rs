//! Loom models of our own synchronization primitives.
//!
//! The source files of `unbraid` are compiled here a second time, with the types of `loom` instead of the standard library's.
//! Each model runs in every interleaving of its threads. Loom reports a thread that sleeps forever as a deadlock.
#![cfg(test)]

#[path = "../../unbraid/src/requests.rs"]
mod requests;
mod scenes;
mod sync;
#[path = "../../unbraid/src/waiting.rs"]
mod waiting;
#[path = "../../unbraid/src/watched.rs"]
mod watched;
