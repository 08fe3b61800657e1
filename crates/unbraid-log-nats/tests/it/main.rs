//! The log in NATS, with real servers.
#![cfg(test)]

mod contract;
mod support;
