//! Black-box tests: a gateway on a free port, in front of an upstream that follows a script.
#![cfg(test)]

mod access;
mod control;
mod create;
#[expect(
    dead_code,
    reason = "the tests of producers and followers use the rest"
)]
#[path = "../../../unbraid-log/tests/it/support/engine.rs"]
mod engine;
mod fan_out;
mod faults;
mod hostile;
mod idempotency;
mod limits;
mod mounted;
mod not_streamed;
mod openapi;
mod operations;
mod read;
mod reports;
mod shared;
mod support;
