//! The protocol between a producer, a log and its readers, as state machines without I/O and without a clock.
//!
//! A driver asks a machine what to do next ([`ProducerMachine::poll`], [`ReaderMachine::poll`]), does it, and reports the
//! result. Times are durations since the driver began, from any monotonic clock. The machines know numbers of events, and
//! no payload, so that the tests can run them against a log that loses, delays and forgets, in every order.

mod backoff;
mod producer;
mod reader;

use std::time::Duration;

pub(crate) use self::{
    producer::{ProducerAction, ProducerMachine, ProducerRules, Span},
    reader::{ReaderAction, ReaderMachine, ReaderRules, Take},
};

/// A hundred years: the most that is added to a time, because the sum must exist. `Duration::MAX` means forever.
pub(crate) const FAR: Duration = Duration::from_secs(3600 * 24 * 36_500);

#[cfg(test)]
mod tests;
