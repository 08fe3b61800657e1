//! The pace of a model: a hundred updates a second for each of eight choices, evenly spaced.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Updates a second of all choices together.
pub(crate) const PER_SECOND: usize = 800;

/// What lies between two of them.
const EVERY: Duration = Duration::from_micros(1_250);

/// Gives the times at which something is due.
#[derive(Debug)]
pub(crate) struct Pace {
    next: Instant,
}

impl Pace {
    pub(crate) fn begin() -> Self {
        Self {
            next: Instant::now() + EVERY,
        }
    }

    /// Waits until the next one is due; late ones come one by one, each in a turn of its own.
    pub(crate) async fn next(&mut self) {
        sleep_until(self.next).await;
        tokio::task::yield_now().await;
        self.next += EVERY;
    }
}
