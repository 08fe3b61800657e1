//! The synchronisation that is our own, under a model checker.
//!
//! `unbraid`'s own source files are built here a second time, with the types of `loom` for those of the standard library.
//! Each scene runs in every order that its threads can take; one in which somebody sleeps for ever is told as a deadlock.
#![cfg(test)]

mod scenes;
mod sync;
