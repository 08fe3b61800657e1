//! `Contact`: since when the server has answered.

use std::time::Duration;

use tokio::time::Instant;

/// How long the server may not answer without that counting as an outage. Shorter ones end before a lease does.
const OUTAGE: Duration = Duration::from_secs(1);

/// By how much the server's clock may differ from this one's pace without having been moved.
const SLACK: Duration = Duration::from_secs(1);

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
    /// What the server's clock showed at this moment or later, in microseconds.
    clock: Option<(u64, Instant)>,
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
            clock: None,
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

    /// Notes the time of the server's clock, for which it was asked at `sent`. If the clock was moved forward, leases and
    /// claims have expired that their holders renew soon. That counts as the end of an outage.
    pub(super) fn note_clock(&mut self, micros: u64, sent: Instant) {
        if micros > self.latest_time() {
            self.recovered = Some(Instant::now());
            self.answered_again = self.recovered;
        }
        self.clock = Some((micros, sent));
    }

    /// The time, in microseconds, that the server's clock does not exceed now unless it was moved.
    pub(super) fn latest_time(&self) -> u64 {
        let Some((micros, sent)) = self.clock else {
            return u64::MAX;
        };
        let since = (sent.elapsed() + SLACK).as_micros();
        micros.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
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

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_moved_forward_is_an_outage_that_ends() {
        let mut contact = Contact::new();
        assert_eq!(contact.latest_time(), u64::MAX);
        let mut micros: i64 = 1_700_000_000_000_000;
        for step in [0, 500, -3_600_000, 900, 3_600_000] {
            let sent = Instant::now();
            micros += 1_000 * step;
            let is_moved = step == 3_600_000;
            contact.note_clock(micros.unsigned_abs(), sent);
            assert_eq!(contact.has_recovered_within(SECOND), is_moved, "{step}");
            assert_eq!(contact.latest_time(), micros.unsigned_abs() + 1_000_000);
            advance(SECOND / 2).await;
            micros += 500_000;
        }
        advance(SECOND).await;
        contact.note_clock(micros.unsigned_abs() + 1_000_000, Instant::now());
        assert!(!contact.has_recovered_within(SECOND));
    }
}
