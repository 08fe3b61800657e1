//! How often the end of a large event is tried: the reads that may hold it are gathered, so that many small ones share a
//! job.
//!
//! A job costs a switch of threads and a new pipeline, which is nothing beside a large event, and far too much for each of
//! a million reads.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes that a job takes as soon as they have come.
pub(crate) const GATHER_BYTES: usize = 64 * 1024;

/// Time from one job to the next one that takes less: what has come whole is late by so much at most.
const PAUSE: Duration = Duration::from_millis(10);

/// The time of the last job.
#[derive(Debug, Default)]
pub(crate) struct Pace(Option<Instant>);

impl Pace {
    /// A job has ended.
    pub(crate) fn job_ended(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// When the next job may take whatever was gathered; `None` if it may do so now.
    pub(crate) fn next_job(&self) -> Option<Instant> {
        let next = self.0?.checked_add(PAUSE)?;
        (next > Instant::now()).then_some(next)
    }
}
