//! The integration tests, one binary: a real server on the loopback interface, and every fault that it can have.
#![cfg(test)]

mod answers;
mod bodies;
mod compressed;
mod compressed_ends;
mod connections;
mod fan_out;
mod faults;
mod other_clients;
mod pretty;
mod proxies;
mod refusals;
mod requests;
mod retries;
mod secrets;
mod server;
mod stream_secrets;
mod tls;
mod unasked;
