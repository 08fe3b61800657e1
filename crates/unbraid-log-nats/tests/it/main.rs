//! The log in NATS, with real servers.
#![cfg(test)]

mod chaos;
mod claims;
mod cluster;
mod contract;
mod expiry;
mod faults;
mod foreign;
mod full;
mod lost;
mod network;
mod partial;
mod readers;
mod runtimes;
mod silence;
mod startup;
mod support;
mod tls;
