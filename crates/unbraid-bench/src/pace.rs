//! The pace of a model: a hundred evenly spaced updates per second for each of eight choices.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Updates per second of all choices together.
pub(crate) const PER_SECOND: usize = 800;

/// The time between two updates.
const INTERVAL: Duration = Duration::from_micros(1_250);

/// Waits for the time of each update.
#[derive(Debug)]
pub(crate) struct Pace {
    next: Instant,
}

impl Pace {
    pub(crate) fn start() -> Self {
        Self {
            next: Instant::now() + INTERVAL,
        }
    }

    /// Waits until the next update is due. Late updates are sent one by one, each in a separate poll.
    pub(crate) async fn next(&mut self) {
        sleep_until(self.next).await;
        tokio::task::yield_now().await;
        self.next += INTERVAL;
    }
}
