//! The integration tests in one binary, against a real server on the loopback interface that can have every fault.
#![cfg(test)]

mod bodies;
mod clock;
mod compressed;
mod compressed_ends;
mod connections;
mod error_responses;
mod extra_choices;
mod fan_out;
mod faults;
mod multiline_json;
#[cfg(feature = "native-tls")]
mod native_tls;
mod other_clients;
mod providers;
mod proxies;
mod replies;
mod requests;
mod responses;
mod retries;
mod secrets;
mod server;
mod sources;
mod stream_secrets;
mod tls;
