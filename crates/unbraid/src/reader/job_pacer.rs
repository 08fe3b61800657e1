//! Limits how often the end of a large event is tried: the reads that may hold it are gathered, so that many small reads
//! share one job on a blocking thread.
//!
//! A job costs a switch of threads and a new pipeline. That is little compared with a large event, and far too much for
//! each of a million reads.

use std::time::Duration;

use tokio::time::Instant;

/// The number of bytes that a job takes as soon as they have arrived.
pub(crate) const GATHER_BYTES: usize = 64 * 1024;

/// The time from one job to the next one that takes fewer bytes. A complete event is delayed by this much at most.
const PAUSE: Duration = Duration::from_millis(10);

/// The time of the last job.
#[derive(Debug, Default)]
pub(crate) struct JobPacer(Option<Instant>);

impl JobPacer {
    pub(crate) fn record_job(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// When the next job may take whatever was gathered; `None` if it may do so now.
    pub(crate) fn next_job(&self) -> Option<Instant> {
        let next = self.0?.checked_add(PAUSE)?;
        (next > Instant::now()).then_some(next) // a timer that is due is ready at once, so equal times make no difference
    }
}
