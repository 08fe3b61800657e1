//! `Contact`: when the server was away, by what this gateway has seen of it.

use std::time::Duration;

use tokio::time::Instant;
use unbraid_log::internal::REPAIR_TIME;

use crate::presence::{BRIEF, Presence};

/// How long a producer may take to write what it could not while its connection was replaced: a call that gets no answer,
/// and the one that succeeds.
const BRIEF_REPAIR: Duration = Duration::from_millis(1500);

/// The connections to the server, and its answers.
#[derive(Debug)]
pub(crate) struct Contact {
    is_up: bool,
    /// When the server answered last.
    answered: Instant,
    /// When the connection was made.
    connected: Option<Instant>,
    /// The server that was asked last.
    server: Option<u64>,
    /// The end of the last outage.
    outage: Option<Instant>,
    /// When a connection was replaced that was lost without an outage.
    replaced: Option<Instant>,
    pub(crate) presence: Presence,
}

impl Contact {
    pub(crate) fn new(lease: Duration) -> Self {
        Self {
            is_up: true,
            answered: Instant::now(),
            connected: None,
            server: None,
            outage: None,
            replaced: None,
            presence: Presence::new(lease),
        }
    }

    pub(crate) fn lost(&mut self) {
        self.is_up = false;
    }

    pub(crate) fn connected(&mut self) {
        let now = Instant::now();
        self.is_up = true;
        if self.connected.replace(now).is_none() {
            return;
        }
        if now - self.answered <= BRIEF {
            self.replaced = Some(now);
        } else {
            self.outage = Some(now);
        }
    }

    pub(crate) fn answered(&mut self) {
        self.answered = Instant::now();
    }

    /// Notes which process the server is now. One that was started again was away, however briefly.
    pub(crate) fn see(&mut self, server: u64) {
        let before = self.server.replace(server);
        if before.is_some_and(|before| before != server) {
            self.outage = self.connected;
        }
    }

    /// Whether producers may be about to write again what the server did not take, or has lost.
    pub(crate) fn may_lack_streams(&self) -> bool {
        let within = |time: Option<Instant>, limit| time.is_some_and(|time| time.elapsed() < limit);
        !self.is_up || within(self.outage, REPAIR_TIME) || within(self.replaced, BRIEF_REPAIR)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection to the server 1 that has answered.
    fn contact() -> Contact {
        let mut contact = Contact::new(5 * SECOND);
        contact.connected();
        contact.see(1);
        contact.answered();
        contact
    }

    /// Whether it lacks streams at each quarter of a second from now on.
    async fn lacks(contact: &mut Contact, server: u64, time: Duration) -> Duration {
        let start = Instant::now();
        let mut last = Duration::ZERO;
        while start.elapsed() < time {
            contact.answered();
            contact.see(server);
            if contact.may_lack_streams() {
                last = start.elapsed();
            }
            advance(SECOND / 4).await;
        }
        last
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_are_cut_again_and_again_are_no_outage() {
        let mut contact = contact();
        assert!(!contact.may_lack_streams());
        for _ in 0..5 {
            contact.lost();
            assert!(contact.may_lack_streams());
            advance(SECOND / 10).await;
            contact.connected();
            let lacking = lacks(&mut contact, 1, 3 * SECOND).await;
            // Until a call has failed and was repeated; and less than the client of a gateway waits.
            assert!((SECOND..=BRIEF_REPAIR).contains(&lacking), "{lacking:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_a_time_without_answers_or_another_server() {
        for (away, server) in [(SECOND / 10, 2), (2 * SECOND, 1), (2 * SECOND, 2)] {
            let mut contact = contact();
            contact.lost();
            advance(away).await;
            contact.connected();
            let lacking = lacks(&mut contact, server, 10 * SECOND).await;
            assert!(lacking >= REPAIR_TIME - SECOND / 4 && lacking < REPAIR_TIME);
            // A connection that is cut now begins no outage.
            contact.lost();
            contact.connected();
            let lacking = lacks(&mut contact, server, 10 * SECOND).await;
            assert!(lacking < BRIEF_REPAIR);
        }
        // A network that loses everything, and closes no connection until later.
        let mut contact = contact();
        advance(4 * SECOND).await;
        contact.lost();
        contact.connected();
        advance(REPAIR_TIME - SECOND).await;
        assert!(contact.may_lack_streams());
    }
}
