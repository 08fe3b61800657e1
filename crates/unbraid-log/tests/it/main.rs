//! The contract of a log, with the log in memory; and producers and followers of a log that fails.
#![cfg(test)]

mod contract;
mod follower;
mod forever;
mod interruptible;
mod producer;
mod random_faults;
