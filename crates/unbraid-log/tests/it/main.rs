//! The contract of a log, with the log in memory.
#![cfg(test)]

mod contract;
mod interruptible;
