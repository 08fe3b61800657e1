//! The protocol between a producer, a log and its readers, as state machines without I/O and without a clock.
//!
//! A driver asks a machine what to do next ([`ProducerMachine::poll`], [`ReaderMachine::poll`]), does it, and reports the
//! result. Times are durations since the driver began, from any monotonic clock. The machines know numbers of events, and
//! no payload, so that the test in `model` can run them against a log that loses, delays and forgets, in every order.

mod backoff;
#[cfg(test)]
mod model;
mod producer;
mod reader;

pub(crate) use self::{
    producer::{ProducerAction, ProducerMachine, ProducerRules, Span},
    reader::{ReaderAction, ReaderMachine, ReaderRules, Take},
};
