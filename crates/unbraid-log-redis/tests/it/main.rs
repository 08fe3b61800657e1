//! The log in Redis, with a real server.
#![cfg(test)]
#![cfg(unix)]

mod appends;
mod claims;
mod contract;
mod faults;
mod foreign;
mod full;
mod hub;
mod keys;
mod replicas;
mod runtimes;
mod slots;
mod slow_link;
mod startup;
mod support;
mod suspended;
mod tls;
