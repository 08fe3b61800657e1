//! The log in Redis, with a real server.
#![cfg(all(test, unix))]

mod contract;
mod support;
