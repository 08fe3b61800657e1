//! Black-box tests: a gateway on a free port, in front of an upstream that follows a script.
#![cfg(test)]

mod access;
mod control;
mod create;
mod cut;
mod deploy;
mod drain;
mod fan_out;
mod faults;
mod handles;
mod hostile;
mod idempotency;
mod limits;
mod mounted;
mod not_streamed;
mod openapi;
mod operations;
mod pass_through;
mod properties;
mod read;
mod reports;
mod retries;
mod shared;
mod support;
mod tls;
mod unread;
