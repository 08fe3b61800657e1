//! `Presence`: since when the server has stored values without a silence.

use std::time::Duration;

use tokio::time::Instant;

/// How long the same server may not have been heard of, without that counting as an outage: a connection that was cut and
/// replaced. Without this, connections that are cut again and again would be an outage that never ends, and would keep a lost
/// stream open.
pub(crate) const BRIEF: Duration = Duration::from_millis(1500);

/// Since when no silence of the server was so long that a producer may have missed to renew its lease.
///
/// Its connections may stay open meanwhile: those of a process that is suspended, of a disk that hangs, and of a network that
/// loses everything for a while. So only an answer counts, and only for the time at which its question was sent: the answer may
/// have waited anywhere since. What arrives unasked says nothing about when it was sent.
///
/// Only a value that is stored counts, because a renewal is one. A cluster whose servers elect a leader, or lack a majority, and
/// a server without space answer all other questions.
#[derive(Debug)]
pub(crate) struct Presence {
    /// The longest silence that is none.
    limit: Duration,
    /// When the last value that was stored was sent. The server stored values at that time or later.
    asked: Instant,
    /// The connection of the last one, and the server.
    epoch: u64,
    server: Option<u64>,
    since: Instant,
}

/// A producer renews after a third of its lease, so it still can after a silence of half of it.
pub(crate) fn limit(lease: Duration) -> Duration {
    BRIEF.min(lease / 2)
}

impl Presence {
    pub(crate) fn new(lease: Duration) -> Self {
        let now = Instant::now();
        Self {
            limit: limit(lease),
            asked: now,
            epoch: 0,
            server: None,
            since: now,
        }
    }

    /// Notes that a value is stored that was sent at this time.
    pub(crate) fn stored(&mut self, asked: Instant, epoch: u64, server: impl FnOnce() -> u64) {
        let now = Instant::now();
        let mut is_other = false;
        if self.epoch != epoch || self.server.is_none() {
            // One that was started again was away, however briefly.
            let server = server();
            let before = self.server.replace(server);
            is_other = before.is_some_and(|before| before != server);
            self.epoch = epoch;
        }
        if is_other || now - self.asked > self.limit {
            self.since = now;
        }
        self.asked = self.asked.max(asked);
    }

    /// Since when the server has stored values without a silence that was too long. During one, since now.
    pub(crate) fn since(&self) -> Instant {
        let now = Instant::now();
        if now - self.asked > self.limit {
            now
        } else {
            self.since
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Notes an answer of a server that took this long. Returns for how long it has been there.
    async fn answer(presence: &mut Presence, after: Duration, epoch: u64, server: u64) -> Duration {
        let asked = Instant::now();
        advance(after).await;
        presence.stored(asked, epoch, || server);
        presence.since().elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_ends_it_although_the_connection_stays() {
        let mut presence = Presence::new(3 * SECOND);
        let mut present = Duration::ZERO;
        for _ in 0..20 {
            advance(SECOND / 4).await;
            present = answer(&mut presence, SECOND / 100, 1, 1).await;
        }
        assert!(present >= 5 * SECOND, "{present:?}");
        // A short one is none.
        present = answer(&mut presence, SECOND, 1, 1).await;
        assert!(present >= 6 * SECOND, "{present:?}");
        advance(4 * SECOND).await;
        // Before anything else is stored, as well.
        assert_eq!(presence.since().elapsed(), Duration::ZERO);
        let after = answer(&mut presence, SECOND / 10, 1, 1).await;
        assert_eq!(after, Duration::ZERO);
        // Answers to questions from before the silence arrive together with it.
        presence.stored(Instant::now() - 3 * SECOND, 1, || 1);
        advance(SECOND / 4).await;
        let present = answer(&mut presence, Duration::ZERO, 1, 1).await;
        assert_eq!(present, SECOND / 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_the_time_of_its_question() {
        let mut presence = Presence::new(10 * SECOND);
        advance(SECOND).await;
        let present = answer(&mut presence, SECOND / 2, 1, 1).await;
        assert_eq!(present, SECOND * 3 / 2);
        // It may have been silent since the question before: the answer to that one may have waited.
        let after = answer(&mut presence, SECOND * 6 / 5, 1, 1).await;
        assert_eq!(after, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_replaced_at_once_does_not_end_it_and_another_server_does() {
        let mut presence = Presence::new(3 * SECOND);
        for epoch in 1..=10 {
            advance(SECOND / 2).await;
            let present = answer(&mut presence, Duration::ZERO, epoch, 1).await;
            assert!(present >= SECOND / 2);
        }
        assert_eq!(presence.since().elapsed(), 5 * SECOND);
        let restarted = answer(&mut presence, SECOND / 10, 11, 2).await;
        assert_eq!(restarted, Duration::ZERO);
    }
}
