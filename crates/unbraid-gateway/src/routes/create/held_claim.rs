//! The claim of a request whose stream is not in the log yet.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use unbraid_log::{Claim, ClaimKey, LogError, LogStore, StreamId};

use crate::{gateway::Gateway, streams::Streams};

/// How often a claim is repeated that the log does not confirm, and the pause between two attempts. A process that was
/// suspended during a call takes its answer for one that did not come.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// A claim, which is renewed like a lease: a gateway that dies before its stream is open keeps the key no longer than that.
pub(super) struct HeldClaim {
    store: Arc<dyn LogStore>,
    streams: Streams,
    lease: Duration,
    /// A log in this process ends with the claim's holder.
    needs_renewal: bool,
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
            lease: inner.options.lease,
            needs_renewal: gateway.memory().is_none(),
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
        if !self.needs_renewal || self.claimed_at.elapsed() < self.lease / 2 {
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

    /// Does some work, and holds the claim meanwhile. The work is dropped once another request holds it.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Lost> {
        let mut work = std::pin::pin!(work);
        if !self.needs_renewal {
            return Ok(work.await);
        }
        let every = (self.lease / 3).max(Duration::from_millis(1));
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
                sleep((self.lease / 3).max(Duration::from_millis(1))).await;
            }
        });
    }

    /// Whether this gateway produces the stream, and the log does not have all of it.
    fn is_unwritten(&self) -> bool {
        self.streams.is_degraded(&self.id)
    }
}
