//! Claims on idempotency keys: one message for each key, exchanged by comparison.
//!
//! Until its stream is open, the holder renews a claim by claiming again. It is void once it has not changed for a lease, by the
//! rules by which a producer is declared lost.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use unbraid_log::{Claim, ClaimKey, LogError, LogStatus, StreamId};

use crate::{
    api::{Ack, Store, Stored},
    entry::{decode_value, value_draft},
    inner::Inner,
    leases::Observed,
};

/// What is stored for a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    /// The stream that holds it; `None` after it was released.
    id: Option<StreamId>,
    fingerprint: [u8; 32],
    /// After how many milliseconds without a renewal it ends, until its stream is open.
    lease_ms: u64,
}

/// The name of such messages.
const NAME: &str = "claim";

/// Each round follows the change of another gateway.
const MAX_ROUNDS: usize = 16;

impl Inner {
    async fn held(&self, key: &ClaimKey) -> Result<Option<(Stored, Held)>, LogError> {
        let stored = self.api.last(Store::Values, self.names.claim(key)).await?;
        let decode = |stored: Stored| decode_value(&stored, NAME).map(|held| (stored, held));
        stored.map(decode).transpose()
    }

    /// Replaces the message of a key, if it is still the one with this number.
    async fn exchange(
        &self,
        key: &ClaimKey,
        id: Option<&StreamId>,
        sequence: u64,
    ) -> Result<bool, LogError> {
        let held = Held {
            id: id.cloned(),
            fingerprint: key.fingerprint,
            lease_ms: u64::try_from(self.options.lease.as_millis()).unwrap_or(u64::MAX),
        };
        let draft = value_draft(self.names.claim(key), NAME, &held).after(sequence);
        let ack = self.api.publish_anew(Store::Values, draft).await?;
        Ok(matches!(ack, Ack::Stored(_)))
    }

    /// Claims a key, or renews the claim.
    pub(crate) async fn claim(&self, key: &ClaimKey, id: &StreamId) -> Result<Claim, LogError> {
        self.claim_or(key, id, true).await
    }

    /// Keeps the claim of a stream that is opened, if no other stream holds it.
    pub(crate) async fn keep_claim(&self, key: &ClaimKey, id: &StreamId) -> Result<(), LogError> {
        self.claim_or(key, id, false).await.map(drop)
    }

    async fn claim_or(
        &self,
        key: &ClaimKey,
        id: &StreamId,
        renews: bool,
    ) -> Result<Claim, LogError> {
        if self.exchange(key, Some(id), 0).await? {
            return Ok(Claim::Acquired);
        }
        for _ in 0..MAX_ROUNDS {
            self.lease_is_used();
            let sequence = match self.held(key).await? {
                None => 0,
                Some((stored, held)) => match &held.id {
                    Some(holder) if holder == id && !renews => return Ok(Claim::Acquired),
                    Some(holder) if holder != id && self.holds(holder, &stored, &held).await? => {
                        return Ok(Claim::Held {
                            id: holder.clone(),
                            fingerprint: held.fingerprint,
                        });
                    }
                    _ => stored.sequence,
                },
            };
            if self.exchange(key, Some(id), sequence).await? {
                return Ok(Claim::Acquired);
            }
        }
        Err(LogError::unavailable(
            "too many gateways claim the same key",
        ))
    }

    /// Whether a stream still holds the claim that was stored for it: for as long as it is kept, and while
    /// its gateway renews the claim if it is not opened.
    async fn holds(
        &self,
        holder: &StreamId,
        claim: &Stored,
        held: &Held,
    ) -> Result<bool, LogError> {
        match self.status(holder).await? {
            LogStatus::Expired { .. } => return Ok(false),
            LogStatus::Unknown => {}
            _ => return Ok(true),
        }
        let duration = Duration::from_millis(held.lease_ms);
        let observed = Observed {
            sequence: claim.sequence,
            previous: None,
            present_since: self.api.connection.present_since(),
        };
        if self.claim_leases.observe(holder, observed) >= duration {
            self.claim_leases.forget(holder);
            return Ok(false);
        }
        let now = self.server_time().await?;
        Ok(now < claim.time + self.options.claim_pending)
    }

    pub(crate) async fn release(&self, key: &ClaimKey, id: &StreamId) -> Result<(), LogError> {
        match self.held(key).await? {
            Some((stored, held)) if held.id.as_ref() == Some(id) => {
                // If it is not exchanged, the claim has changed, and belongs to another stream.
                self.exchange(key, None, stored.sequence).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}
