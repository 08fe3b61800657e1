//! The values of claims: a byte for the kind, the request's fingerprint, and the id of its stream.
//!
//! A claim whose stream is not open yet has a lease, which its holder renews by claiming again. It is void once the lease has
//! expired, by the rules by which a producer is declared lost.

use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use unbraid_log::{Claim, ClaimKey, LogError, LogStatus, StreamId};

use crate::{
    entry::{array, bytes, foreign},
    inner::{Inner, millis},
    script::{CLAIM, KEEP_CLAIM, RELEASE_CLAIM, Request, Script},
};

/// What a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// That of a stream which is open.
    Kept = 1,
    /// That of a request whose stream is not open yet.
    Pending = 2,
}

fn encode(kind: Kind, key: &ClaimKey, id: &StreamId) -> Vec<u8> {
    let mut value = vec![kind as u8];
    value.extend_from_slice(&key.fingerprint);
    value.extend_from_slice(id.as_str().as_bytes());
    value
}

fn decode(value: &[u8]) -> Result<(StreamId, [u8; 32]), LogError> {
    match value.split_first() {
        Some((&kind, rest)) if kind == Kind::Kept as u8 || kind == Kind::Pending as u8 => {
            let (fingerprint, id) = rest
                .split_first_chunk()
                .ok_or_else(|| foreign("the claim is too short"))?;
            let id = std::str::from_utf8(id)
                .ok()
                .and_then(|id| id.parse().ok())
                .ok_or_else(|| foreign("the claim's stream id"))?;
            Ok((id, *fingerprint))
        }
        Some((&version, _)) => Err(LogError::UnsupportedVersion { version }),
        None => Err(foreign("the claim is empty")),
    }
}

/// The claim of another id.
struct Held {
    value: Bytes,
    /// Whether its holder has renewed its lease, or needs none.
    is_alive: bool,
}

impl Held {
    fn into_claim(self) -> Result<Claim, LogError> {
        let (id, fingerprint) = decode(&self.value)?;
        Ok(Claim::Held { id, fingerprint })
    }
}

impl Inner {
    fn claim_request(&self, script: &'static Script, key: &ClaimKey) -> Request {
        let [claim, lease] = self.keys.claim_and_lease(key);
        Request::script(script, &[&claim, &lease])
    }

    pub(crate) async fn claim(&self, key: &ClaimKey, id: &StreamId) -> Result<Claim, LogError> {
        let Some(held) = self.try_claim(key, id, b"").await? else {
            return Ok(Claim::Acquired);
        };
        let (holder, _) = decode(&held.value)?;
        // Not in the same request: that may arrive late, when the lease has expired because nobody could renew it.
        let void = if !held.is_alive && self.may_judge() {
            held.value
        } else if self.has_expired(&holder).await? {
            self.release(key, &holder).await?;
            Bytes::new()
        } else {
            return held.into_claim();
        };
        match self.try_claim(key, id, &void).await? {
            None => Ok(Claim::Acquired),
            Some(other) => other.into_claim(),
        }
    }

    /// Whether a stream has expired. Its claim may be kept longer: the requests that shorten it, or release it, follow those that
    /// end the stream, and may not have arrived. A request that waits for its key asks this each time, a few times a second.
    async fn has_expired(&self, id: &StreamId) -> Result<bool, LogError> {
        let found = self.find(id).await?;
        Ok(matches!(found.status, LogStatus::Expired { .. }))
    }

    /// Claims a key that nobody has, or the claim of another id that is known to be void. Returns the claim that stands.
    async fn try_claim(
        &self,
        key: &ClaimKey,
        id: &StreamId,
        void: &[u8],
    ) -> Result<Option<Held>, LogError> {
        let request = self
            .claim_request(&CLAIM, key)
            .arg(encode(Kind::Pending, key, id))
            .arg(id.as_str())
            .arg(millis(self.options.claim_pending))
            .arg(millis(self.options.lease))
            .arg(void)
            .arg(self.link.latest_time());
        // Each attempt writes, so the replicas that confirm it have the earlier ones.
        let replicas = self.options.replicas;
        let answer = self.link.claim(&request, replicas).await?;
        if answer == Value::Nil {
            return Ok(None);
        }
        let [value, is_alive] = array(answer)?;
        Ok(Some(Held {
            value: bytes(value)?,
            is_alive: is_alive == Value::Int(1),
        }))
    }

    /// Keeps the claim of a stream that is opened, for this long.
    pub(crate) async fn keep_claim(
        &self,
        key: &ClaimKey,
        id: &StreamId,
        duration: Duration,
    ) -> Result<(), LogError> {
        let request = self
            .claim_request(&KEEP_CLAIM, key)
            .arg(encode(Kind::Kept, key, id))
            .arg(id.as_str())
            .arg(millis(duration));
        self.link.call(&request).await?;
        Ok(())
    }

    pub(crate) async fn release(&self, key: &ClaimKey, id: &StreamId) -> Result<(), LogError> {
        let request = self.claim_request(&RELEASE_CLAIM, key).arg(id.as_str());
        self.link.call(&request).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_as_it_was_written() {
        let key = ClaimKey::new("p", "/", "k", [7; 32]);
        let id = StreamId::random().unwrap();
        for kind in [Kind::Kept, Kind::Pending] {
            let mut value = encode(kind, &key, &id);
            assert_eq!(decode(&value), Ok((id.clone(), [7; 32])));
            value[0] = 3;
            let later = LogError::UnsupportedVersion { version: 3 };
            assert_eq!(decode(&value), Err(later));
            assert!(decode(&[kind as u8; 20]).is_err());
            assert!(decode(&[kind as u8; 40]).is_err());
        }
        assert!(decode(b"").is_err());
    }
}
