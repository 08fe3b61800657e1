//! `Contact`: since when the server has answered.

use std::time::Duration;

use tokio::time::Instant;

/// How long the server may not answer without that counting as an outage. Shorter ones end before a lease does.
const OUTAGE: Duration = Duration::from_secs(1);

/// When the server answered last, and whether it has failed to since then.
#[derive(Debug)]
pub(super) struct Contact {
    answered: Instant,
    /// Since when no two answers were as far apart as an outage lasts.
    since: Instant,
    has_failed: bool,
    /// The end of the last outage.
    recovered: Option<Instant>,
    /// The first answer after the last failure, however short.
    answered_again: Option<Instant>,
}

impl Contact {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            answered: now,
            since: now,
            has_failed: false,
            recovered: None,
            answered_again: None,
        }
    }

    /// Notes the result of a call.
    pub(super) fn note(&mut self, is_answer: bool) {
        let now = Instant::now();
        if !is_answer {
            self.has_failed = true;
            return;
        }
        if now - self.answered >= OUTAGE {
            self.since = now;
        }
        if self.has_failed {
            self.answered_again = Some(now);
            if now - self.answered >= OUTAGE {
                self.recovered = Some(now);
            }
        }
        self.answered = now;
        self.has_failed = false;
    }

    /// Notes that the server answers and refuses to write: producers cannot renew their leases, so it is an outage that goes on.
    pub(super) fn note_refusal(&mut self) {
        self.note(true);
        self.recovered = Some(self.answered);
        self.answered_again = self.recovered;
    }

    /// Whether an outage has ended within this time. Producers may not have been able to renew their leases.
    pub(super) fn has_recovered_within(&self, time: Duration) -> bool {
        self.recovered
            .is_some_and(|recovered| recovered.elapsed() < time)
    }

    /// Whether the server has answered all the time for this long. Of a time in which nothing was asked that is not known.
    pub(super) fn has_answered_for(&self, time: Duration) -> bool {
        self.answered.elapsed() < OUTAGE && self.since.elapsed() >= time
    }

    /// Whether a call has failed within this time, or before the first answer within it.
    pub(super) fn has_failed_within(&self, time: Duration) -> bool {
        let again = self.answered_again;
        self.has_failed || again.is_some_and(|again| again.elapsed() < time)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn only_a_server_that_is_asked_is_known_to_answer() {
        let mut contact = Contact::new();
        for _ in 0..6 {
            assert!(!contact.has_answered_for(3 * SECOND));
            advance(SECOND / 2).await;
            contact.note(true);
        }
        assert!(contact.has_answered_for(3 * SECOND));
        advance(SECOND).await;
        assert!(!contact.has_answered_for(3 * SECOND));
        contact.note(true);
        assert!(!contact.has_answered_for(SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_a_failure_and_a_second_without_an_answer() {
        let mut contact = Contact::new();
        advance(60 * SECOND).await;
        // Nothing was asked.
        contact.note(true);
        assert!(!contact.has_recovered_within(SECOND));
        // A connection that was cut and replaced.
        contact.note(false);
        advance(SECOND / 2).await;
        contact.note(true);
        assert!(!contact.has_recovered_within(SECOND));
        assert!(contact.has_failed_within(SECOND));
        advance(SECOND).await;
        assert!(!contact.has_failed_within(SECOND));
        contact.note(false);
        assert!(contact.has_failed_within(SECOND));
        advance(2 * SECOND).await;
        contact.note(true);
        assert!(contact.has_recovered_within(SECOND));
        advance(2 * SECOND).await;
        assert!(!contact.has_recovered_within(SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_refuses_writes_recovers_after_the_last_refusal() {
        let mut contact = Contact::new();
        for _ in 0..6 {
            advance(SECOND / 2).await;
            contact.note_refusal();
            contact.note(true);
        }
        assert!(contact.has_recovered_within(SECOND) && contact.has_failed_within(SECOND));
        advance(SECOND).await;
        contact.note(true);
        assert!(!contact.has_recovered_within(SECOND) && !contact.has_failed_within(SECOND));
    }
}
