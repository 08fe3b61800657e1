//! The claim of a request whose stream is not in the log yet.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use unbraid_log::{Claim, ClaimKey, LogError, LogStore, StreamId};

use crate::{gateway::Gateway, streams::Streams};

/// How often a claim is repeated that the log does not confirm, and the pause between two attempts. A process that was
/// suspended during a call takes its answer for one that did not come.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// With a longer lease a request that is cut off from the log would wait longer than a client does.
const MAX_LEASE: Duration = Duration::from_secs(60);

/// The longest time between two renewals. A server that has lost its claims gets them again within this time, and then other
/// gateways may claim them: they wait longer after an outage.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// A claim, which is renewed like a lease: a gateway that dies before its stream is open keeps the key no longer than that, or
/// than its log keeps a claim that is not repeated.
pub(super) struct HeldClaim {
    store: Arc<dyn LogStore>,
    streams: Streams,
    lease: Duration,
    key: ClaimKey,
    id: StreamId,
    /// When the last claim that succeeded was begun. The log counts from a later moment.
    claimed_at: Instant,
}

/// Another request holds the key: this gateway was silent for longer than a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

impl HeldClaim {
    /// A claim that was begun at this time, and succeeded.
    pub(super) fn new(gateway: &Gateway, key: ClaimKey, id: StreamId, claimed_at: Instant) -> Self {
        let inner = &gateway.inner;
        Self {
            store: Arc::clone(&inner.store),
            streams: inner.streams.clone(),
            lease: inner.options.lease.min(MAX_LEASE),
            key,
            id,
            claimed_at,
        }
    }

    async fn renew(&mut self) -> Result<Result<(), Lost>, LogError> {
        let begun = Instant::now();
        match self.store.claim(&self.key, &self.id).await? {
            Claim::Acquired => self.claimed_at = begun,
            _ => return Ok(Err(Lost)),
        }
        Ok(Ok(()))
    }

    /// Asks the log if this request holds the key still, unless it is certain.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`] if the log does not answer.
    pub(super) async fn confirm(&mut self) -> Result<Result<(), Lost>, LogError> {
        if self.claimed_at.elapsed() < self.lease / 2 {
            return Ok(Ok(()));
        }
        let mut attempt = 1;
        loop {
            match self.renew().await {
                Err(_) if attempt < ATTEMPTS => sleep(PAUSE).await,
                renewed => return renewed,
            }
            attempt += 1;
        }
    }

    /// The same before the answer of the provider becomes a stream, which can begin without the log: others get the key only
    /// after a lease. Once a lease has passed, only the log knows who holds it, and this waits for it, at most until a second
    /// one has passed.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`] if the log does not answer.
    pub(super) async fn confirm_for_stream(&mut self) -> Result<Result<(), Lost>, LogError> {
        loop {
            let since = match self.confirm().await {
                Ok(confirmed) => return Ok(confirmed),
                Err(error) if self.claimed_at.elapsed() >= 2 * self.lease => return Err(error),
                Err(_) => self.claimed_at.elapsed(),
            };
            if since < self.lease {
                return Ok(Ok(()));
            }
            sleep(PAUSE).await;
        }
    }

    /// Does some work, and holds the claim meanwhile. The work is dropped once another request holds it.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Lost> {
        let mut work = std::pin::pin!(work);
        let every = self.renewal_interval();
        let mut renewals = interval_at(Instant::now() + every, every);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                result = &mut work => return Ok(result),
                _ = renewals.tick() => {}
            }
            let renewed = tokio::select! {
                result = &mut work => return Ok(result),
                renewed = self.renew() => renewed,
            };
            // A log that is down gives the key to nobody.
            renewed.unwrap_or(Ok(()))?;
        }
    }

    /// Holds the claim until the log has the stream, which then keeps it.
    pub(super) fn keep_until_written(mut self) {
        if !self.is_unwritten() {
            return;
        }
        tokio::spawn(async move {
            while self.is_unwritten() {
                if let Ok(Err(Lost)) = self.renew().await {
                    return;
                }
                sleep(self.renewal_interval()).await;
            }
        });
    }

    /// The time between two renewals.
    fn renewal_interval(&self) -> Duration {
        let third = self.lease / 3;
        third.clamp(Duration::from_millis(1), MAX_INTERVAL)
    }

    /// Whether this gateway produces the stream, and the log does not have all of it.
    fn is_unwritten(&self) -> bool {
        self.streams.is_degraded(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `first_byte_timeout` ends with the head; reading the whole body may take longer.
    #[tokio::test(start_paused = true)]
    async fn a_key_in_memory_is_held_for_longer_than_the_first_byte_may_take() {
        let hour = Duration::from_secs(3600);
        for lease in [Duration::from_secs(15), 2 * hour] {
            let builder = Gateway::builder("http://127.0.0.1:9/v1").lease(lease);
            let builder = builder.first_byte_timeout(Duration::from_secs(30));
            let gateway = builder.build().unwrap();
            let store = Arc::clone(&gateway.inner.store);
            let key = ClaimKey::new("alice", "/v1/completions", "k", [7; 32]);
            let [id, other] = [(); 2].map(|()| StreamId::random().unwrap());
            assert_eq!(store.claim(&key, &id).await, Ok(Claim::Acquired));
            let expected = Claim::Held {
                id: id.clone(),
                fingerprint: [7; 32],
            };
            let mut held = HeldClaim::new(&gateway, key.clone(), id, Instant::now());
            let work = async {
                for _ in 0..60 {
                    sleep(hour / 60).await;
                    assert_eq!(store.claim(&key, &other).await, Ok(expected.clone()));
                }
            };
            assert_eq!(held.during(work).await, Ok(()));
        }
    }
}
