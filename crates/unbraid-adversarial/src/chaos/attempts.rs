//! What a client was answered lately, so that a reader without an end says why.

use std::{collections::VecDeque, fmt, time::Duration};

use tokio::time::Instant;

use super::client::{Failure, Stop};

/// How many are kept: with a client that waits for a head as long as it may, those of the longest time without an end.
const KEPT: usize = 8;

/// How a request for a view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With a status, and without a view.
    Status(u16),
    /// Without a response.
    Failed(Failure),
    /// With 200 and so many events. `None` if the client dropped it.
    Read { events: usize, stop: Option<Stop> },
}

/// The latest requests of one client.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    /// The gateway of a request that has not ended, and when it began.
    open: Option<(usize, Instant)>,
    ended: VecDeque<Attempt>,
}

#[derive(Debug, Clone, Copy)]
struct Attempt {
    gateway: usize,
    outcome: Outcome,
    took: Duration,
}

impl Attempts {
    /// A request is sent to a gateway.
    pub(super) fn begin(&mut self, gateway: usize) {
        self.open = Some((gateway, Instant::now()));
    }

    pub(super) fn end(&mut self, outcome: Outcome) {
        let Some((gateway, since)) = self.open.take() else {
            return;
        };
        if self.ended.len() == KEPT {
            self.ended.pop_front();
        }
        self.ended.push_back(Attempt {
            gateway,
            outcome,
            took: since.elapsed(),
        });
    }
}

/// The open request first, and then the earlier ones, the latest of them first.
impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.open {
            Some((gateway, since)) => write!(f, "at gateway {gateway} for {:.1?}", since.elapsed()),
            None => f.write_str("between two requests"),
        }?;
        for (position, attempt) in self.ended.iter().rev().enumerate() {
            f.write_str(if position == 0 { ", after " } else { ", " })?;
            match attempt.outcome {
                Outcome::Status(status) => write!(f, "{status}"),
                Outcome::Failed(Failure::NotSent) => f.write_str("no connection"),
                Outcome::Failed(Failure::Unknown) => f.write_str("no response"),
                Outcome::Read { events, stop } => {
                    let stop = match stop {
                        None => "dropped",
                        Some(Stop::End) => "ended",
                        Some(Stop::Broken) => "broke",
                        Some(Stop::Silence) => "silent",
                    };
                    write!(f, "200 with {events} events ({stop})")
                }
            }?;
            write!(f, " at {} in {:.1?}", attempt.gateway, attempt.took)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_latest_requests_are_kept_with_their_gateways_and_times() {
        let second = Duration::from_secs(1);
        let mut attempts = Attempts::default();
        assert_eq!(attempts.to_string(), "between two requests");
        for (gateway, outcome) in [
            (0, Outcome::Status(503)),
            (2, Outcome::Failed(Failure::Unknown)),
            (
                1,
                Outcome::Read {
                    events: 4,
                    stop: Some(Stop::Silence),
                },
            ),
        ] {
            attempts.begin(gateway);
            advance(second).await;
            attempts.end(outcome);
        }
        attempts.begin(2);
        advance(2 * second).await;
        assert_eq!(
            attempts.to_string(),
            "at gateway 2 for 2.0s, after 200 with 4 events (silent) at 1 in 1.0s, \
             no response at 2 in 1.0s, 503 at 0 in 1.0s"
        );
        for _ in 0..2 * KEPT {
            attempts.begin(1);
            attempts.end(Outcome::Status(404));
        }
        let text = attempts.to_string();
        assert_eq!(text.matches("404 at 1").count(), KEPT);
        assert!(!text.contains("503"));
    }
}
