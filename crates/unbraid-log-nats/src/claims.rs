//! Claims on idempotency keys: one message for each key, exchanged by comparison.

use serde::{Deserialize, Serialize};
use unbraid_log::{Claim, ClaimKey, LogError, LogStatus, StreamId};

use crate::{
    api::{Ack, Store, Stored},
    entry::{decode_value, value_draft},
    inner::Inner,
};

/// What is stored for a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    /// The stream that holds it; `None` after it was released.
    id: Option<StreamId>,
    fingerprint: [u8; 32],
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
        };
        let draft = value_draft(self.names.claim(key), NAME, &held).after(sequence);
        let ack = self.api.publish_anew(draft).await?;
        Ok(matches!(ack, Ack::Stored(_)))
    }

    pub(crate) async fn claim(&self, key: &ClaimKey, id: &StreamId) -> Result<Claim, LogError> {
        if self.exchange(key, Some(id), 0).await? {
            return Ok(Claim::Acquired);
        }
        for _ in 0..MAX_ROUNDS {
            let sequence = match self.held(key).await? {
                None => 0,
                Some((stored, Held { id: None, .. })) => stored.sequence,
                Some((stored, held)) => match held.id {
                    Some(holder) if holder == *id => return Ok(Claim::Acquired),
                    Some(holder) if self.holds(&holder, &stored).await? => {
                        return Ok(Claim::Held {
                            id: holder,
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

    /// Whether a stream still holds the claim that was stored for it: for as long as it is kept, and for a while if it is
    /// not opened.
    async fn holds(&self, holder: &StreamId, claim: &Stored) -> Result<bool, LogError> {
        Ok(match self.status(holder).await? {
            LogStatus::Expired { .. } => false,
            LogStatus::Unknown => {
                let now = self.server_time().await?;
                now < claim.time + self.options.claim_pending
            }
            _ => true,
        })
    }

    /// Keeps the claim of a stream that is opened, if no other stream holds it.
    pub(crate) async fn keep_claim(&self, key: &ClaimKey, id: &StreamId) -> Result<(), LogError> {
        self.claim(key, id).await.map(drop)
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
