//! Loom models of unbraid's own synchronization primitives.
//!
//! The source files of `unbraid` and `unbraid-gateway` are compiled here a second time, with loom's types in place of the standard library's. Each scene
//! runs in every order that its threads can take. An order in which a task sleeps forever is reported as a deadlock.
#![cfg(test)]

mod scenes;
mod sync;
